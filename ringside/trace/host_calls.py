"""Which of the host's waits belong to training, and what each waits for.

The driver's calls are recorded on all threads of a process, operators only on those that train and
on autograd's. A thread that decodes images with the GPU waits for it dozens of times a step, beside
training, and counts for nothing here.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from ringside.trace.clock import nanoseconds
from ringside.trace.events import HostCalls

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ringside.trace.intervals import Times

    Rows = NDArray[np.bool_]


class CallColumns:
    """Calls of one kind of one file: start and duration in µs, and a number for the thread."""

    def __init__(self) -> None:
        self.start: list[float] = []
        self.duration: list[float] = []
        self.thread: list[int] = []

    def add(self, start: float, duration: float, thread: int) -> None:
        """One more call."""
        self.start.append(start)
        self.duration.append(duration)
        self.thread.append(thread)

    def calls(self) -> Calls:
        """All of them as arrays."""
        import numpy as np

        start = nanoseconds(self.start)
        end = start + nanoseconds(self.duration)
        order = np.argsort(start, kind="stable")
        return Calls(start[order], end[order], np.array(self.thread, np.int64)[order])


class Calls(NamedTuple):
    """Calls with their threads, in the order of their starts; moments in ns."""

    start: Times
    end: Times
    thread: Times

    def where(self, keep: Rows | Times) -> Calls:
        """Some of them, by a mask or in an order."""
        return Calls(self.start[keep], self.end[keep], self.thread[keep])

    def on(self, threads: Iterable[int]) -> Calls:
        """Those on these threads; all where there are none."""
        import numpy as np

        known = np.array(sorted(threads), np.int64)
        return self.where(np.isin(self.thread, known)) if len(known) else self

    def without_thread(self) -> HostCalls:
        """What is kept of them."""
        return HostCalls(self.start, self.end)


def joined(first: Calls, second: Calls) -> Calls:
    """The calls of both, in the order of their starts."""
    import numpy as np

    together = Calls(*map(np.concatenate, zip(first, second, strict=True)))
    return together.where(np.argsort(together.start, kind="stable"))


def holding(calls: Calls, waits: Calls, *, by_thread: bool = True) -> Rows:
    """Which calls hold a wait, of their own thread or, where threads mean nothing, of any.

    `aten::item` of a tensor that lies on the host waits for nothing: a fused AdamW on a CPU reads
    161 of them a step.
    """
    import numpy as np

    result = np.zeros(len(calls.start), bool)
    for thread in np.unique(calls.thread):
        own = calls.thread == thread
        starts = waits.start[waits.thread == thread] if by_thread else waits.start
        first = np.searchsorted(starts, calls.start[own], side="left")
        result[own] = np.searchsorted(starts, calls.end[own], side="right") > first
    return result


def of_ddp_log(events: Calls, forwards: Calls, operators: tuple[list[float], list[int]]) -> Rows:
    """Which waits for a CUDA event are DistributedDataParallel's own, for its log.

    In the forwards after each of its first ten, and then in every hundredth, DDP asks how far apart
    events of the step before were: four differences, two waits each, before anything is computed.
    `operators`: starts in µs and threads.
    Source: `Logger::set_runtime_stats_and_log` in torch/csrc/distributed/c10d/logger.cpp, and
    `kDDPRuntimeLoggingSampleRate` in reducer.hpp.
    """
    import numpy as np

    result = np.zeros(len(events.start), bool)
    if not len(events.start) or not len(forwards.start):
        return result
    begin, threads = nanoseconds(operators[0]), np.array(operators[1], np.int64)
    for thread in np.unique(forwards.thread):
        around = forwards.where(forwards.thread == thread)
        # Behind the last one, there is no operator before the forward ends.
        first = np.append(np.sort(begin[threads == thread]), np.iinfo(np.int64).max)
        until = np.minimum(around.end, first[np.searchsorted(first, around.start)])
        own = events.thread == thread
        at = np.searchsorted(around.start, events.start[own], side="right") - 1
        result[own] = (at >= 0) & (events.start[own] < until[np.maximum(at, 0)])
    return result
