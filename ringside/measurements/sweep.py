"""How long collectives of each size take between the ranks of one machine."""

from __future__ import annotations

from typing import Literal

import msgspec

Operation = Literal["all_reduce", "reduce_scatter", "all_gather"]
Dtype = Literal["fp32", "bf16", "fp16"]


class Point(msgspec.Struct, frozen=True, kw_only=True):
    """One size: `num_bytes` of the whole array, microseconds of the slowest rank.

    The quartiles are None where nobody kept them. `num_late` repeats in which one rank began later
    than the others are left out, unless nearly all were so; `repeats` are those that count.
    """

    num_bytes: int
    median_us: float
    p90_us: float
    repeats: int
    p25_us: float | None = None
    p75_us: float | None = None
    num_late: int = 0


class Series(msgspec.Struct, frozen=True, kw_only=True):
    """One collective over sizes, smallest first.

    `environment`: the variables that differ from the caller's for this series (an experiment);
    empty for the machine as it is. `transport`: what NCCL's own log says (`P2P/CUMEM`, `SHM`,
    `NET/Socket`), None where there is no log; gloo has none.
    """

    operation: Operation
    dtype: Dtype
    backend: Literal["nccl", "gloo"]
    num_ranks: int
    points: tuple[Point, ...]
    environment: dict[str, str] = {}
    transport: str | None = None


class Sweep(msgspec.Struct, frozen=True, kw_only=True):
    """All series of one visit. `key`: devices, ranks and transport variables, see the store.

    `control`: the machine as it is once more, launched and timed as the experiments are. What it
    differs by from the plain series, two launches of the same thing differ by.
    """

    format: int = 1
    t: float
    key: str
    device_name: str
    num_ranks: int
    versions: dict[str, str] = {}
    series: tuple[Series, ...] = ()
    control: Series | None = None
    failed: tuple[str, ...] = ()
    """A sentence for each experiment that did not run, such as NCCL_ALGO=Tree refusing to start."""
