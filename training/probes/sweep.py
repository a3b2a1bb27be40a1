"""How long a collective of each size takes, on the slowest rank.

Before each repeat the ranks meet in a collective of one element, so that none is timed while it
waits for a late one; the times of one repeat are then exchanged and the longest counts. On a GPU
both are queued behind a pause, and events in the stream enclose the collective: what the host needs
to launch it is not in the figure. gloo works on the host, and the clock is read there.

A repeat is late when a rank's device ran ahead of its host, or when the ranks' own times are far
apart: one came to the collective after the others, and what they waited is not the link's.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import torch
from torch import distributed

from ringside.measurements.sweep import Dtype, Operation, Point, Series
from training.control import Control
from training.probes.device_clock import elapsed_us, hold_back, mark

KIB, MIB = 2**10, 2**20
# Powers of 4, and powers of 2 where the buckets of DDP lie.
SIZES = tuple(KIB * 4**i for i in (2, 3, 4)) + tuple(MIB * 2**i for i in range(9))
LARGEST_ON_CPU = 16 * MIB
KINDS: tuple[tuple[Operation, Dtype], ...] = (
    ("all_reduce", "fp32"), ("all_reduce", "bf16"), ("reduce_scatter", "fp32"),
    ("all_gather", "fp32"), ("reduce_scatter", "bf16"), ("all_gather", "bf16"),
)  # fmt: skip
# On GPUs gloo carries only what the ranks agree on.
CONTROL_SIZES = (KIB, 64 * KIB, MIB)
CONTROL_SHARE = 0.05
DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}
# torch 2.14 has new names for both, and warns of the old ones.
reduce_scatter: Callable[..., object] = getattr(
    distributed, "reduce_scatter_single", distributed.reduce_scatter_tensor
)
all_gather: Callable[..., object] = getattr(
    distributed, "all_gather_single", distributed.all_gather_into_tensor
)
WARM_UP = {"cpu": 2, "cuda": 5}
AT_ONCE = 5
MAX_REPEATS = 100
PAUSE_S = 2e-3
LATE_US = {"cpu": 1000.0, "cuda": 50.0}
LATE_RATIO = 0.25
"""Ranks' own times of one repeat that are farther apart than both mean that one came late."""


def usual_sizes(device: torch.device) -> list[int]:
    """Bytes to measure on this kind of device."""
    return [size for size in SIZES if device.type == "cuda" or size <= LARGEST_ON_CPU]


def rounded(sizes: Iterable[int], world: int) -> list[int]:
    """Smallest first, each a multiple of one fp32 element a rank."""
    least = torch.float32.itemsize * world
    return sorted({max(1, size // least) * least for size in sizes})


class Sweeper:
    """Measures series on `group`, whose backend is that of `device`; None: the default group.

    `seconds` is the time for all repeats of `num_points` points; a point that has had its share
    gets no more repeats, and each gets AT_ONCE at least.
    """

    def __init__(
        self, control: Control, device: torch.device, seconds: float, num_points: int,
        group: Any = None,
    ) -> None:  # fmt: skip
        self.control, self.device, self.group = control, device, group
        self.world = control.world
        self._end = time.perf_counter() + seconds
        self._points_left = num_points
        self._one = torch.ones(1, device=device)

    def series(self, operation: Operation, dtype: Dtype, sizes: Sequence[int]) -> Series:
        """One collective over `sizes`. A collective of both groups."""
        points = [self._point(operation, dtype, size) for size in sizes]
        return Series(
            operation=operation,
            dtype=dtype,
            backend="nccl" if self.device.type == "cuda" else "gloo",
            num_ranks=self.world,
            points=tuple(points),
        )

    def _point(self, operation: Operation, dtype: Dtype, size: int) -> Point:
        call = self._prepared(operation, dtype, size)
        for _ in range(WARM_UP[self.device.type]):
            call()
        found: list[float] = []
        late: list[bool] = []
        begin = time.perf_counter()
        share_s = (self._end - begin) / max(1, self._points_left)
        self._points_left -= 1
        while True:
            own_us, own_late = self._repeats(call)
            mine = [time.perf_counter() - begin, share_s, *own_us, *own_late]
            table = self.control.gather(mine)
            times_us, behind = np.split(table[:, 2:], 2, axis=1)
            found += times_us.max(axis=0).tolist()
            late += (behind.any(axis=0) | came_late(times_us, self.device.type)).tolist()
            # Of exchanged values, so that all ranks come to the same end.
            if table[:, 0].max() >= table[:, 1].min() or len(found) >= MAX_REPEATS:
                break
        return point_of(size, found, late)

    def _repeats(self, call: Callable[[], object]) -> tuple[list[float], list[bool]]:
        """Microseconds of this rank, and whether its device was ahead of its host."""
        held = None
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)
            hold_back(PAUSE_S)
            held = mark(self.device)
        pairs, late = [], []
        for _ in range(AT_ONCE):
            distributed.all_reduce(self._one, group=self.group)
            begin = mark(self.device)
            call()
            pairs.append((begin, mark(self.device)))
            late.append(held is not None and held.query())
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)
        return [elapsed_us(*pair) for pair in pairs], late

    def _prepared(self, operation: Operation, dtype: Dtype, size: int) -> Callable[[], object]:
        """The call on an array of `size` bytes, of which each rank has or gets an equal part."""
        kind = DTYPES[dtype]
        whole = torch.zeros(size // kind.itemsize, dtype=kind, device=self.device)
        own = torch.zeros(len(whole) // self.world, dtype=kind, device=self.device)
        calls: dict[Operation, Callable[[], object]] = {
            "all_reduce": lambda: distributed.all_reduce(whole, group=self.group),
            "reduce_scatter": lambda: reduce_scatter(own, whole, group=self.group),
            "all_gather": lambda: all_gather(whole, own, group=self.group),
        }
        return calls[operation]


def measure_sweep(
    control: Control, device: torch.device, *, seconds: float, wanted: Iterable[int]
) -> tuple[Series, ...]:
    """All series of one visit, in about `seconds`; gloo's, on GPUs, is the last. A collective of
    both groups."""
    sizes = rounded([*usual_sizes(device), *wanted], control.world)
    of_control_s = CONTROL_SHARE * seconds if device.type == "cuda" else 0.0
    sweeper = Sweeper(control, device, seconds - of_control_s, len(KINDS) * len(sizes))
    found = [sweeper.series(operation, dtype, sizes) for operation, dtype in KINDS]
    if device.type == "cuda":
        found.append(control_series(control, of_control_s))
    return tuple(found)


def control_series(control: Control, seconds: float) -> Series:
    """All-reduce on the side group itself. A collective of it."""
    sizes = rounded(CONTROL_SIZES, control.world)
    sweeper = Sweeper(control, torch.device("cpu"), seconds, len(sizes), control.group)
    return sweeper.series("all_reduce", "fp32", sizes)


def came_late(times_us: np.ndarray, device_type: str) -> np.ndarray:
    """Whether the ranks' times [world, repeats] of each repeat are too far apart: bool [repeats].

    All leave a collective together, so who came to it first was in it longest.
    """
    shortest = times_us.min(axis=0)
    apart: np.ndarray = times_us.max(axis=0) - shortest
    return apart > np.maximum(LATE_US[device_type], LATE_RATIO * shortest)


def point_of(num_bytes: int, times_us: Sequence[float], late: Sequence[bool]) -> Point:
    """Figures over the repeats that were not late, or over all where fewer than AT_ONCE are left.

    `times_us`: of the slowest rank.
    """
    in_time = [us for us, is_late in zip(times_us, late, strict=True) if not is_late]
    counted = in_time if len(in_time) >= AT_ONCE else list(times_us)
    p25, median, p75, p90 = np.quantile(counted, [0.25, 0.5, 0.75, 0.9]).tolist()
    return Point(
        num_bytes=num_bytes, median_us=median, p90_us=p90, repeats=len(counted), p25_us=p25,
        p75_us=p75, num_late=sum(late),
    )  # fmt: skip
