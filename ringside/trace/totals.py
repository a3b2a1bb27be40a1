"""Compute, communication, overlap and idle time of one rank, by HolisticTraceAnalysis' rule.

The rule (HTA 0.5 and traceinsight 0.6, MIT): GPU work without a launch record is left out, and so
is what the last of several profiler steps launched, because the trace ends before its work does.
A clock finer than a microsecond is rounded inwards, start up and end down; `keep_fractions` does
without. Kernels that communicate are communication, other kernels compute, the rest is memory.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from ringside.trace.events import COMMUNICATION, COMPUTE, NO_LAUNCH, Trace
from ringside.trace.intervals import intersect, total, union

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class Totals(msgspec.Struct, frozen=True, kw_only=True):
    """Sums over the counted work of one rank, in microseconds.

    `overlapped_us` is communication during which compute runs, `exposed_us` the rest of it;
    `idle_us` is the part of `span_us` (first start to last end) in which nothing runs.
    """

    num_events: int
    comm_us: float
    overlapped_us: float
    compute_us: float
    idle_us: float
    span_us: float

    @property
    def exposed_us(self) -> float:
        return self.comm_us - self.overlapped_us

    @property
    def overlap_ratio(self) -> float | None:
        """Overlapped ÷ communication; None without communication, which is neither 0 nor 1."""
        return self.overlapped_us / self.comm_us if self.comm_us else None


def counted(trace: Trace) -> NDArray[np.bool_]:
    """Which rows of the GPU work the rule counts."""
    import numpy as np

    keep: NDArray[np.bool_] = trace.work.launch != NO_LAUNCH
    if len(trace.steps) > 1:
        keep = keep & (trace.work.launch < trace.steps[-1].start)
    return np.asarray(keep)


def totals(trace: Trace, *, keep_fractions: bool = True) -> Totals:
    """The sums of one rank. All zero when nothing is counted."""
    import numpy as np

    work = trace.work
    keep = counted(trace)
    start, end = work.start[keep], work.end[keep]
    if trace.has_fractions and not keep_fractions:
        start, end = -(-start // 1000) * 1000, end // 1000 * 1000
    if not len(start):
        return Totals(num_events=0, comm_us=0, overlapped_us=0, compute_us=0, idle_us=0, span_us=0)
    kind = work.kind[keep]
    compute = union(start[kind == COMPUTE], end[kind == COMPUTE])
    comm = union(start[kind == COMMUNICATION], end[kind == COMMUNICATION])
    busy = union(start, end)
    span = int(np.max(end) - np.min(start))
    return Totals(
        num_events=len(start),
        comm_us=total(comm) / 1000,
        overlapped_us=total(intersect(comm, compute)) / 1000,
        compute_us=total(compute) / 1000,
        idle_us=(span - total(busy)) / 1000,
        span_us=span / 1000,
    )
