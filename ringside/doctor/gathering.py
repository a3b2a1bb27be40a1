"""From a run's folder, or from somebody's files, to everything that the checks look at.

A part that is not there is None; a file that cannot be read costs a sentence in `problems`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from ringside.doctor.case import Case
from ringside.environment_lint import lint
from ringside.errors import RingsideError
from ringside.hardware import Hardware
from ringside.launch.plan import LaunchPlan
from ringside.machine import Machine
from ringside.nccl_log import NcclLog, read_nccl_log
from ringside.rank_windows import rank_parts
from ringside.run import RunRecord, fold_run
from ringside.rundir import RunDir, iter_files
from ringside.speedup import find_baseline
from ringside.trace import Facts, analyse, read_traces

CONSOLE_BYTES = 64 * 1024
MACHINE_FILE = "machine.json"


def case_of_run(run: RunDir, root: Path) -> Case:
    """All that is known of a run: its own files, and what was measured beside it below `root`."""
    record = fold_run(run)
    problems: list[str] = []
    traces = tuple(iter_files(run.trace, "*.json.gz"))
    logs = tuple(iter_files(run.nccl, "*.log"))
    hardware = run.read(run.hardware, Hardware)
    return Case(
        machine=machine_of(root, hardware),
        record=record,
        baseline=find_baseline(root, record),
        facts=facts_of(traces, problems),
        nccl=log_of(logs, problems),
        variables=lint(foreign_variables(run, record)),
        console=end_of(run.console),
        ranks=rank_parts(run),
        traces=tuple(str(path) for path in traces),
        problems=tuple(problems),
        **_measured(root, record, hardware),
    )


def case_of_files(traces: Sequence[Path] = (), logs: Sequence[Path] = ()) -> Case:
    """Somebody's traces and NCCL logs of one job; the log tells which variables were set.

    Raises the RingsideError of a file that does not exist or cannot be used.
    """
    facts, bad = None, list[str]()
    if traces:
        read, bad = read_traces(traces)
        facts = analyse(read)
    log = read_nccl_log(logs) if logs else None
    return Case(
        facts=facts,
        nccl=log,
        variables=lint(log.environment) if log is not None else (),
        traces=tuple(str(path) for path in traces),
        problems=tuple(bad),
    )


def facts_of(traces: Sequence[Path], problems: list[str]) -> Facts | None:
    """The facts of the traces that can be read; a sentence for each of the others."""
    if not traces:
        return None
    try:
        read, bad = read_traces(traces)
    except RingsideError as error:
        problems.append(str(error))
        return None
    problems += bad
    return analyse(read)


def log_of(logs: Sequence[Path], problems: list[str]) -> NcclLog | None:
    """What NCCL logged, None without a line of it."""
    if not logs:
        return None
    try:
        return read_nccl_log(list(logs))
    except RingsideError as error:
        problems.append(str(error))
        return None


def machine_of(root: Path, hardware: Hardware | None) -> Machine | None:
    """The machine as it was last looked at, if it is the run's; else what the run itself noted."""
    from ringside.measurements.store import FOLDER

    looked = _decoded(root / FOLDER / MACHINE_FILE, Machine)
    if looked is not None and (hardware is None or _same(looked.hardware, hardware)):
        return looked
    if hardware is None:
        return None
    return Machine(t=0.0, hardware=hardware, num_cores=hardware.num_cores)


def end_of(path: Path, num_bytes: int = CONSOLE_BYTES) -> str:
    """The end of a text file; empty when there is none."""
    try:
        with path.open("rb") as stream:
            stream.seek(0, 2)
            stream.seek(max(0, stream.tell() - num_bytes))
            return stream.read().decode(errors="replace")
    except OSError:
        return ""


def environment_of(record: RunRecord) -> dict[str, str] | None:
    """The variables that a rank of the run had; None where the run never said."""
    return record.observed.environment if record.observed is not None else None


def foreign_variables(run: RunDir, record: RunRecord) -> dict[str, str]:
    """The variables of the run that Ringside did not set itself; those of the preset count.

    Its own stand in the plan, or point into the run's folder (torch's flight recorder),
    which may have moved since.
    """
    spec, observed = record.spec, record.observed
    if spec is None or observed is None:
        return {}
    plan = run.read(run.plan, LaunchPlan)
    added = plan.environment if plan is not None else {}
    return {
        name: value
        for name, value in observed.environment.items()
        if name in spec.environment or not (added.get(name) == value or run.id in value)
    }


def _measured(root: Path, record: RunRecord, hardware: Hardware | None) -> dict[str, Any]:
    """What the store holds for this request on this machine."""
    from ringside.measurements.store import Store

    spec = record.spec
    if spec is None:
        return {}
    store, inherited = Store(root), environment_of(record)
    name = record.observed.device_name if record.observed is not None else None
    found = {
        "experiment": store.experiment(spec, name, inherited=inherited, hardware=hardware),
        "description": store.description(spec, name, hardware=hardware),
    }
    if hardware is None or spec.num_processes < 2:
        return found
    sweep = store.sweep(hardware, spec.num_processes, spec.environment, inherited=inherited)
    return {**found, "sweep": sweep}


def _same(one: Hardware, other: Hardware) -> bool:
    """Whether two looks were at the same machine: by its GPUs, without any by its cores."""

    def devices(hardware: Hardware) -> Iterable[object]:
        return [gpu.uuid for gpu in hardware.gpus] or [hardware.num_cores, hardware.memory_bytes]

    return list(devices(one)) == list(devices(other))


def _decoded(path: Path, kind: type[Machine]) -> Machine | None:
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except (OSError, msgspec.DecodeError, ValueError):
        return None
