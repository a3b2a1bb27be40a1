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
    finish = np.concatenate([busy[0], [max([end, *busy[1][-1:].tolist()])]])
    # The work that ends each gap is the first row that starts there; nothing ends the last gap.
    launch = np.append(work.launch[np.searchsorted(work.start, busy[0])], NO_LAUNCH)
    by_host = launch > begin
    by_host[-1] = True  # the host did not launch more
    short = finish - begin < KERNEL_DELAY_NS
    waits = union(trace.data_waits.start, trace.data_waits.end)
    whole = intersect((np.array([start]), np.array([end])), union(begin, finish))
    classes = [
        intersect(whole, union(begin[keep], finish[keep]))
        for keep in (by_host, ~by_host & short, ~by_host & ~short)
    ]
    host, kernel, other = (subtract(gaps, waits) for gaps in classes)
    return Idle(intersect(whole, waits), host, kernel, other)
