"""How long a collective of each size takes, on the slowest rank.

Before each repeat the ranks meet in a collective of one element, so that none is timed while it
waits for a late one; the times of one repeat are then exchanged and the longest counts. On a GPU
both are queued behind a pause, and events in the stream enclose the collective: what the host needs
to launch it is not in the figure. gloo works on the host, and the clock is read there.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence

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
    ("all_gather", "fp32"),
)  # fmt: skip
DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}
# torch 2.14 has new names for both, and warns of the old ones.
reduce_scatter: Callable[[torch.Tensor, torch.Tensor], object] = getattr(
    distributed, "reduce_scatter_single", distributed.reduce_scatter_tensor
)
all_gather: Callable[[torch.Tensor, torch.Tensor], object] = getattr(
    distributed, "all_gather_single", distributed.all_gather_into_tensor
)
WARM_UP = {"cpu": 2, "cuda": 5}
AT_ONCE = 5
MAX_REPEATS = 100
PAUSE_S = 2e-3


def usual_sizes(device: torch.device) -> list[int]:
    """Bytes to measure on this kind of device."""
    return [size for size in SIZES if device.type == "cuda" or size <= LARGEST_ON_CPU]


def rounded(sizes: Iterable[int], world: int) -> list[int]:
    """Smallest first, each a multiple of one fp32 element a rank."""
    least = torch.float32.itemsize * world
    return sorted({max(1, size // least) * least for size in sizes})


class Sweeper:
    """Measures series on the default process group of `device`'s backend.

    `seconds` is the time for all repeats of `num_points` points; a point that has had its share
    gets no more repeats, and each gets AT_ONCE at least.
    """

    def __init__(
        self, control: Control, device: torch.device, seconds: float, num_points: int
    ) -> None:
        self.control, self.device = control, device
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
        begin = time.perf_counter()
        share_s = (self._end - begin) / max(1, self._points_left)
        self._points_left -= 1
        while True:
            own = self._repeats(call)
            table = self.control.gather([time.perf_counter() - begin, share_s, *own])
            found += table[:, 2:].max(axis=0).tolist()
            # Of exchanged values, so that all ranks come to the same end.
            if table[:, 0].max() >= table[:, 1].min() or len(found) >= MAX_REPEATS:
                break
        return Point(
            num_bytes=size,
            median_us=float(np.median(found)),
            p90_us=float(np.quantile(found, 0.9)),
            repeats=len(found),
        )

    def _repeats(self, call: Callable[[], object]) -> list[float]:
        """Microseconds of this rank."""
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)
            hold_back(PAUSE_S)
        pairs = []
        for _ in range(AT_ONCE):
            distributed.all_reduce(self._one)
            begin = mark(self.device)
            call()
            pairs.append((begin, mark(self.device)))
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)
        return [elapsed_us(*pair) for pair in pairs]

    def _prepared(self, operation: Operation, dtype: Dtype, size: int) -> Callable[[], object]:
        """The call on an array of `size` bytes, of which each rank has or gets an equal part."""
        kind = DTYPES[dtype]
        whole = torch.zeros(size // kind.itemsize, dtype=kind, device=self.device)
        own = torch.zeros(len(whole) // self.world, dtype=kind, device=self.device)
        calls: dict[Operation, Callable[[], object]] = {
            "all_reduce": lambda: distributed.all_reduce(whole),
            "reduce_scatter": lambda: reduce_scatter(own, whole),
            "all_gather": lambda: all_gather(whole, own),
        }
        return calls[operation]


def measure_sweep(
    control: Control, device: torch.device, *, seconds: float, wanted: Iterable[int]
) -> tuple[Series, ...]:
    """All series of one visit, in about `seconds`. A collective of both groups."""
    sizes = rounded([*usual_sizes(device), *wanted], control.world)
    sweeper = Sweeper(control, device, seconds, len(KINDS) * len(sizes))
    return tuple(sweeper.series(operation, dtype, sizes) for operation, dtype in KINDS)
