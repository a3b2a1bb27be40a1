"""Which stretch of a trace is looked at, and to which profiler step a moment belongs."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import msgspec

from ringside.trace.events import Trace

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ringside.trace.intervals import Times


class Window(msgspec.Struct, frozen=True):
    """A stretch of time in ns; `name` of the profiler step, empty for a trace without marks."""

    name: str
    start: int
    end: int


def windows(trace: Trace) -> tuple[Window, ...]:
    """Steps from their start to the next one's; the last is left out when there are several.

    The work that the last step launched runs on after the trace has ended. A trace without marks
    is one window, from the first piece of work to the last; never empty.
    """
    marks, work = trace.steps, trace.work
    if len(marks) > 1:
        pairs = itertools.pairwise(marks)
        return tuple(Window(mark.name, mark.start, after.start) for mark, after in pairs)
    last = int(work.end.max()) if len(work) else 0
    if marks:
        return (Window(marks[0].name, marks[0].start, max(marks[0].end, last)),)
    first = int(work.start[0]) if len(work) else 0
    return (Window("", first, last),)


def step_of(trace: Trace, moments: Times) -> NDArray[np.int64]:
    """The number of the step in which each moment lies; -1 before the first one."""
    import numpy as np

    starts = np.array([mark.start for mark in trace.steps], np.int64)
    return np.asarray(np.searchsorted(starts, moments, side="right") - 1)
