"""Everything a check may look at; each part is None where it was not measured."""

from __future__ import annotations

from dataclasses import dataclass

from ringside.environment_lint import Finding as Variable
from ringside.machine import Machine
from ringside.measurements import Description, Experiment, Sweep
from ringside.nccl_log import NcclLog
from ringside.rank_windows import RankParts
from ringside.run import RunRecord
from ringside.trace import Facts


@dataclass(frozen=True, kw_only=True)
class Case:
    """A run, a machine, or only somebody's traces and logs.

    `baseline`: the run on one device that this one is compared with. `console`: the end of what
    the processes printed, where libraries leave their warnings. `ranks`: what each rank measured of
    its own steps. `traces`: the files behind `facts`.
    `problems`: a sentence for each file that cannot be read.
    """

    machine: Machine | None = None
    record: RunRecord | None = None
    baseline: RunRecord | None = None
    facts: Facts | None = None
    nccl: NcclLog | None = None
    variables: tuple[Variable, ...] = ()
    sweep: Sweep | None = None
    experiment: Experiment | None = None
    description: Description | None = None
    console: str = ""
    ranks: tuple[RankParts, ...] = ()
    traces: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
