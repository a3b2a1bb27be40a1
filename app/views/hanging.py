"""A run whose ranks stand still: since when, where each of them is, and what their stacks say."""

from __future__ import annotations

from dataclasses import dataclass

from app.views import figures
from ringside.launch.blame import place
from ringside.run import RunRecord
from ringside.words import say


@dataclass(frozen=True)
class HangView:
    """`since` in seconds since 1970; `places` say of each rank where it stands."""

    since: float
    sentence: str
    places: tuple[str, ...]


def hang_view(record: RunRecord) -> HangView | None:
    """The standstill that goes on; None for a run that moves or is over."""
    now = record.hang.now if record.hang else None
    if now is None or record.final:
        return None
    limit = figures.whole_seconds(now.limit_s)
    if now.p95_step_ms is None:
        sentence = say("hang.first", limit=limit)
    else:
        usual = figures.milliseconds(now.p95_step_ms)
        sentence = say("hang.usual", usual=usual, limit=limit)
    places = (say("hang.place", rank=mark.rank, place=place(mark)) for mark in now.marks)
    return HangView(now.since, sentence, tuple(places))


def hang_lines(record: RunRecord) -> tuple[str, ...]:
    """A sentence for each standstill that ended: `stood still for 41 s at step 120`."""
    return tuple(
        say("stacks.past", seconds=one.lasted_s(one.since), step=one.step)
        for one in (record.hang.past if record.hang else ())
    )
