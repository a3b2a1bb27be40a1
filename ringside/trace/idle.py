"""Why the GPU does nothing: each gap of its timeline has one reason.

HolisticTraceAnalysis' classes, applied to all streams together: the host issued the next launch
after the gap had begun (host wait); else the gap is shorter than 30 µs, which is what one kernel
after the other takes (kernel wait); else the next work waited for an event of another stream or
rank (other). The part of a gap in which the host waited for images is set apart (data).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ringside.trace.events import NO_LAUNCH, Trace
from ringside.trace.intervals import intersect, subtract, union

if TYPE_CHECKING:
    from ringside.trace.intervals import Spans

KERNEL_DELAY_NS = 30_000  # HTA's `consecutive_kernel_delay`


@dataclass(frozen=True, eq=False)
class Idle:
    """The gaps of a timeline by reason."""

    data: Spans
    host_wait: Spans
    kernel_wait: Spans
    other: Spans


def idle_of(trace: Trace, start: int, end: int) -> Idle:
    """The gaps between two moments in ns, cut where the host's waits for data begin and end."""
    import numpy as np

    work = trace.work
    busy = union(work.start, work.end)
    begin = np.concatenate([[start], busy[1]])
    finish = np.concatenate([busy[0], [end]])
    # The work that ends each gap: the first row that starts there.
    row = np.clip(np.searchsorted(work.start, finish), 0, len(work) - 1)
    launch = np.where(finish < end, work.launch[row], NO_LAUNCH)
    by_host = launch > begin
    if not trace.steps or end > trace.steps[-1].start:
        by_host |= finish >= end  # nothing follows: the host did not launch more
    short = finish - begin < KERNEL_DELAY_NS
    waits = union(trace.data_waits.start, trace.data_waits.end)
    whole = intersect((np.array([start]), np.array([end])), union(begin, finish))
    classes = [
        intersect(whole, union(begin[keep], finish[keep]))
        for keep in (by_host, ~by_host & short, ~by_host & ~short)
    ]
    host, kernel, other = (subtract(gaps, waits) for gaps in classes)
    return Idle(intersect(whole, waits), host, kernel, other)
