"""The controlled experiment: the same step with one thing taken away at a time."""

from __future__ import annotations

from typing import Literal

import msgspec

from ringside.spec import RunSpec

ArmName = Literal[
    "one", "many", "many_without_reduction", "many_synthetic", "many_synthetic_without_reduction"
]
"""One process with its own input; all processes; without gradient reduction; with made-up input
that is on the device already; without both."""


class Arm(msgspec.Struct, frozen=True, kw_only=True):
    """One set-up in fresh processes without a profiler.

    `step_ms`: one figure for each block of free-running steps, the block's time on the slowest rank
    over its steps; warm-up left out, and several blocks so that their spread is known. `data_ms`:
    waiting for the loader in a step, the mean of all blocks on the rank that waited most.
    `problem`: why there is no figure. `collectives_per_step` of the process group; None where it
    cannot be counted. `decoder`: of its images, cpu or gpu; None where they were made up.
    """

    name: ArmName
    num_processes: int
    step_ms: tuple[float, ...] = ()
    data_ms: float | None = None
    memory_bytes: int | None = None
    collectives_per_step: float | None = None
    decoder: str | None = None
    problem: str | None = None


class Experiment(msgspec.Struct, frozen=True, kw_only=True):
    """All arms of one request. `spec`: of the arm `many`, from which the others derive.

    `transport`: the variables of the ranks that may change how collectives travel, whoever set
    them; see `transport_variables`. `num_cores`: those that the processes could use.
    """

    format: int = 1
    t: float
    key: str
    spec: RunSpec
    device_name: str
    arms: tuple[Arm, ...]
    versions: dict[str, str] = {}
    transport: dict[str, str] = {}
    num_cores: int | None = None
