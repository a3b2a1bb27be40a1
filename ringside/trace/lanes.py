"""What each rank did during one step, as spans to draw in lanes.

A lane shows everything of its kind, hidden behind other work or not; `idle` is what is left when
nothing runs, less what the host waited for images in it (`data`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

import msgspec

from ringside.trace.activity import Activity, activity_of
from ringside.trace.events import Trace
from ringside.trace.idle import idle_of
from ringside.trace.intervals import clip, intersect, join, total
from ringside.trace.steps import Window, windows
from ringside.trace.waiting import Transfers, transfers

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ringside.trace.intervals import Spans

LaneName = Literal["compute", "transfer", "wait", "data", "idle"]
MAX_SPANS = 400
FINEST = 1000  # a gap shorter than this part of the step is too thin to be seen


class Lane(msgspec.Struct, frozen=True, kw_only=True):
    """`total_us` as measured; `spans` are (start, end) in microseconds after the picture's start.

    At most `MAX_SPANS`: neighbours are drawn as one where the gap between them is thin.
    """

    name: LaneName
    total_us: float
    spans: tuple[tuple[float, float], ...]


class RankLanes(msgspec.Struct, frozen=True, kw_only=True):
    """What one rank did during a step of the rank that sets the pace, `wall_us` long."""

    rank: int
    step: str
    wall_us: float
    lanes: tuple[Lane, ...]


def lanes(traces: Sequence[Trace]) -> tuple[RankLanes, ...]:
    """The same stretch of time on all ranks: a middle step of the rank that waits least.

    Clocks of two files need not agree, so ranks are laid beside each other by the ends of their
    collectives, which are one moment for all; without collectives, by the starts of their steps.
    """
    chosen = [_middle(trace, traces) for trace in traces]
    moved = transfers(traces)
    zeros = _zeros(traces, chosen, moved)
    parts = [activity_of(trace, calls) for trace, calls in zip(traces, moved, strict=True)]
    waits = [
        total(clip(part.wait, window.start, window.end))
        for part, window in zip(parts, chosen, strict=True)
    ]
    pace = waits.index(min(waits))
    first, wall = chosen[pace].start - zeros[pace], chosen[pace].end - chosen[pace].start
    return tuple(
        _rank(traces[at], parts[at], chosen[pace].name, first + zeros[at], wall)
        for at in range(len(traces))
    )


def _middle(trace: Trace, traces: Sequence[Trace]) -> Window:
    own = {window.name: window for window in windows(trace)}
    shared = set.intersection(*({window.name for window in windows(one)} for one in traces))
    names = [name for name in own if name in shared] or list(own)
    return own[names[len(names) // 2]]


def _zeros(
    traces: Sequence[Trace], chosen: Sequence[Window], moved: Sequence[Transfers]
) -> list[int]:
    """One moment of each file's clock that stands for the same moment of the world."""
    import numpy as np

    ends = [_collective_ends(*three) for three in zip(traces, chosen, moved, strict=True)]
    if len({len(found) for found in ends}) > 1 or not len(ends[0]):
        return [window.start for window in chosen]
    return [int(np.median(found - ends[0])) for found in ends]


def _collective_ends(trace: Trace, window: Window, moved: Transfers) -> NDArray[np.int64]:
    """Ends of the collectives that the step launched, in the order of the calls."""
    import numpy as np

    marks = [mark.name for mark in trace.steps]
    step = marks.index(window.name) if window.name in marks else -1
    rows = np.array([call.index for call in trace.collectives], np.int64)
    return np.asarray(trace.work.end[rows[moved.step == step]], np.int64)


def _rank(trace: Trace, parts: Activity, step: str, start: int, wall: int) -> RankLanes:
    idle = idle_of(trace, start, start + wall)
    rest = join(join(idle.host_wait, idle.kernel_wait), idle.other)
    found: dict[LaneName, Spans] = {
        "compute": parts.compute,
        "transfer": parts.transfer,
        "wait": parts.wait,
        "data": idle.data,
        "idle": intersect(rest, _recorded(trace)),
    }
    return RankLanes(
        rank=trace.rank,
        step=step,
        wall_us=wall / 1000,
        lanes=tuple(
            _lane(name, clip(spans, start, start + wall), wall, start)
            for name, spans in found.items()
        ),
    )


def _recorded(trace: Trace) -> Spans:
    """First to last work: where the file begins later or ends earlier, idle is not known."""
    work = trace.work
    return work.start[:1], work.end.max(keepdims=True) if len(work) else work.end


def _lane(name: LaneName, spans: Spans, wall: int, zero: int) -> Lane:
    starts, ends = _drawn(spans, wall)
    pairs = zip(((starts - zero) / 1000).tolist(), ((ends - zero) / 1000).tolist(), strict=True)
    return Lane(name=name, total_us=total(spans) / 1000, spans=tuple(pairs))


def _drawn(spans: Spans, wall: int) -> Spans:
    """Neighbours as one where the gap is thin; thicker gaps too while there are too many."""
    import numpy as np

    starts, ends = spans
    gap = max(wall // FINEST, 1)
    while len(starts):
        apart = starts[1:] - ends[:-1] > gap
        if np.count_nonzero(apart) < MAX_SPANS:
            return starts[np.append(True, apart)], ends[np.append(apart, True)]
        gap *= 2
    return spans
