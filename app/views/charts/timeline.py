"""One step of each rank in lanes: compute, transfer, waiting, data, idle."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from app.views import figures
from app.views.charts import palette
from app.views.charts.figure import Figure
from ringside.trace.lanes import RankLanes
from ringside.words import say

MAX_RANKS = 8
LANE_HEIGHT = 17


def timeline(ranks: Sequence[RankLanes]) -> Figure:
    """The lanes of all ranks over one step; at least one rank."""
    names = [lane.name for lane in ranks[0].lanes]
    rows = tuple(
        (say("charts.rank", rank=rank.rank),
         *(figures.milliseconds(lane.total_us / 1000) for lane in rank.lanes),
         figures.milliseconds(rank.wall_us / 1000))
        for rank in ranks
    )  # fmt: skip
    return Figure(
        name="timeline",
        title=say("charts.timeline"),
        headline=_headline(ranks),
        description=" ".join(_in_words(rank) for rank in ranks[:MAX_RANKS]),
        columns=("", *(say(f"charts.{name}") for name in names), say("charts.step")),
        rows=rows,
        draw=partial(_draw, ranks[:MAX_RANKS]),
    )


def _share(rank: RankLanes, name: str) -> float:
    lane = next(lane for lane in rank.lanes if lane.name == name)
    return lane.total_us / rank.wall_us if rank.wall_us else 0.0


def _headline(ranks: Sequence[RankLanes]) -> str:
    """Who waits for whom, where somebody does; else how much of the exchange is hidden."""
    waiting = max(ranks, key=lambda rank: _share(rank, "wait"))
    if len(ranks) > 1 and _share(waiting, "wait") >= 0.1:
        late = min(ranks, key=lambda rank: _share(rank, "wait"))
        return say("charts.waits_for", rank=waiting.rank, late=late.rank,
                   share=figures.percent(_share(waiting, "wait")))  # fmt: skip
    busiest = max(ranks, key=lambda rank: _share(rank, "transfer"))
    return say("charts.transfers", rank=busiest.rank,
               share=figures.percent(_share(busiest, "transfer")))  # fmt: skip


def _in_words(rank: RankLanes) -> str:
    parts = ", ".join(
        f"{say(f'charts.{lane.name}')} {figures.milliseconds(lane.total_us / 1000)}"
        for lane in rank.lanes
    )
    step = figures.milliseconds(rank.wall_us / 1000)
    return say("charts.timeline_words", rank=rank.rank, step=step, parts=parts)


def _draw(ranks: Sequence[RankLanes], width: int) -> Any:
    import altair as alt

    last = ranks[0].wall_us / 1000
    charts = [_rank(rank, last, width, is_last=rank is ranks[-1]) for rank in ranks]
    return alt.vconcat(*charts, spacing=8)


def _rank(rank: RankLanes, last: float, width: int, *, is_last: bool) -> Any:
    import altair as alt

    words = [say(f"charts.{lane.name}") for lane in rank.lanes]
    spans = [
        {"lane": say(f"charts.{lane.name}"), "from": a / 1000, "to": b / 1000}
        for lane in rank.lanes
        for a, b in lane.spans
    ]
    tracks = [{"lane": word, "from": 0, "to": last} for word in words]
    axis = alt.Axis(grid=False, tickCount=5 if width > 400 else 3) if is_last else None
    y = alt.Y("lane:N", title=None, sort=words, scale=alt.Scale(domain=words),
              axis=alt.Axis(domain=False, ticks=False, minExtent=64))  # fmt: skip
    x = alt.X("from:Q", title=say("charts.milliseconds"), axis=axis,
              scale=alt.Scale(domain=[0, last], nice=False))  # fmt: skip
    colours = [palette.PARTS[lane.name] for lane in rank.lanes]
    height = LANE_HEIGHT - 5
    below = alt.Chart(alt.InlineData(values=tracks)).mark_bar(height=height, color=palette.TRACK)
    above = alt.Chart(alt.InlineData(values=spans)).mark_bar(height=height)
    colour = alt.Color("lane:N", legend=None, scale=alt.Scale(domain=words, range=colours))
    return alt.layer(
        below.encode(y=y, x=x, x2="to:Q"), above.encode(y=y, x=x, x2="to:Q", color=colour)
    ).properties(
        width=width - 90,
        height=LANE_HEIGHT * len(words),
        title=say("charts.rank", rank=rank.rank),
    )
