"""Where one step goes: a stacked bar for each rank, from traces or from the run's own clocks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from app.views import figures
from app.views.charts import palette
from app.views.charts.figure import Figure
from app.views.step import parts_ms
from ringside.events import WindowTimed
from ringside.rank_windows import RankParts, slowest
from ringside.trace import Facts
from ringside.words import say

MAX_RANKS = 16
WORTH_SAYING_RATIO = 0.1
LABEL_RATIO, NARROW_LABEL_RATIO = 0.09, 0.16

TRACE_PARTS = {
    "compute": "compute_us", "transfer": "exposed_transfer_us", "wait": "exposed_wait_us",
    "data": "data_idle_us", "copies": "memory_us", "host": "host_wait_us",
    "gaps": "kernel_wait_us", "other": "other_idle_us",
}  # fmt: skip
WORK = frozenset({"compute", "forward", "backward", "optimizer", "rest"})
"""What nobody loses time with."""


@dataclass(frozen=True)
class Bar:
    """One step in milliseconds by part; the parts add up to it. `who` begins a sentence."""

    label: str
    who: str
    parts: Mapping[str, float]

    @property
    def total_ms(self) -> float:
        """The whole step."""
        return sum(self.parts.values())

    def share(self, part: str) -> float:
        """A part of it, from 0 to 1."""
        return self.parts[part] / self.total_ms if self.total_ms else 0.0


def trace_waterfall(facts: Facts) -> Figure:
    """The mean step of each rank's trace; the rank that sets the pace gives the headline."""
    bars = []
    for rank in facts.ranks:
        num, parts = rank.num_counted_steps, {}
        for name, field in TRACE_PARTS.items():
            parts[name] = getattr(rank.breakdown, field) / 1000 / num
        bars.append(_bar_of(rank.rank, parts))
    pace = bars[facts.ranks.index(facts.pace)]
    key = "waterfall_estimate" if facts.pace.is_cpu_estimate else "waterfall_trace"
    return _figure(bars, _headline(pace), say(f"charts.{key}"))


def rank_waterfall(ranks: Sequence[RankParts]) -> Figure | None:
    """The mean step of each rank by its own clocks; None with fewer than two ranks.

    Who is late is long in a part of its own and short in backward, where the others wait for it.
    """
    late = slowest(ranks)
    if not late:
        return None
    bars = [_rank_bar(rank) for rank in ranks]
    first = late[0]
    place = next(at for at, rank in enumerate(ranks) if rank.rank == first.rank)
    headline = _by_clocks(bars[place], "even")
    if first.excess_ratio >= WORTH_SAYING_RATIO:
        headline = say(f"charts.late_{first.part}", who=bars[place].who,
                       excess=figures.milliseconds(first.excess_ms))  # fmt: skip
    return _figure(bars, headline, say("charts.waterfall_ranks"))


def _rank_bar(rank: RankParts) -> Bar:
    """Its parts, and what is left of the step."""
    parts = {name: getattr(rank, f"{name}_ms") for name in ("data", "forward", "backward")}
    parts["optimizer"] = rank.optimizer_ms
    parts["rest"] = max(0.0, rank.step_ms - sum(parts.values()))
    return _bar_of(rank.rank, parts)


def _bar_of(rank: int, parts: Mapping[str, float]) -> Bar:
    name = say("charts.rank", rank=rank)
    return Bar(name, name[:1].upper() + name[1:], parts)


def run_waterfall(windows: Sequence[WindowTimed]) -> Figure | None:
    """The mean step of the newest epoch by the run's own clocks; None before the first window.

    Each part is the slowest rank's, so the bar stands for all ranks together.
    """
    newest = [window for window in windows if window.epoch == windows[-1].epoch]
    steps = sum(window.num_steps for window in newest)
    if not steps:
        return None
    parts: dict[str, float] = {}
    for window in newest:
        for name, ms in parts_ms(window).items():
            parts[name] = parts.get(name, 0.0) + ms * window.num_steps / steps
    bar = Bar(say("charts.all_ranks"), say("charts.the_run"), parts)
    return _figure([bar], _by_clocks(bar, "longest"), say("charts.waterfall_run"))


def _figure(bars: Sequence[Bar], headline: str, source: str) -> Figure:
    names = list(bars[0].parts)
    shown = bars[:MAX_RANKS]
    rows = tuple(
        (bar.label, *(f"{figures.milliseconds(bar.parts[n])} · {figures.percent(bar.share(n))}"
                      for n in names), figures.milliseconds(bar.total_ms))
        for bar in bars
    )  # fmt: skip
    return Figure(
        name="waterfall",
        title=say("charts.waterfall"),
        headline=headline,
        description=f"{source} {'; '.join(map(_in_words, shown))}.",
        columns=("", *(say(f"charts.{name}") for name in names), say("charts.step")),
        rows=rows,
        draw=partial(_draw, shown),
    )


def _headline(bar: Bar) -> str:
    """The largest loss of time if it is worth saying; else how much is work."""
    lost = sum(bar.share(name) for name in _losses(bar))
    return _loss(bar) or say("charts.works", who=bar.who, share=figures.percent(1 - lost))


def _by_clocks(bar: Bar, key: str) -> str:
    """The same without a trace: the exchange lies in backward then, so nobody knows what is work.

    `key` names the sentence where no loss is worth saying.
    """
    longest = max(bar.parts, key=bar.share)
    said = say(f"charts.{key}", part=say(f"charts.{longest}"),
               share=figures.percent(bar.share(longest)))  # fmt: skip
    return _loss(bar) or said


def _loss(bar: Bar) -> str | None:
    """The largest loss of time, images before all; None where none is worth saying."""
    worst = max(_losses(bar), key=bar.share)
    if bar.share("data") >= WORTH_SAYING_RATIO:
        worst = "data"
    share = bar.share(worst)
    if share < WORTH_SAYING_RATIO:
        return None
    return say(f"charts.spends_{worst}", who=bar.who, share=figures.percent(share))


def _losses(bar: Bar) -> list[str]:
    return [name for name in bar.parts if name not in WORK]


def _in_words(bar: Bar) -> str:
    parts = ", ".join(
        f"{say(f'charts.{name}')} {figures.percent(bar.share(name))}"
        for name in bar.parts
        if bar.share(name) >= 0.005
    )
    return f"{bar.label}: {figures.milliseconds(bar.total_ms)} ({parts})"


def _segments(bars: Sequence[Bar], width: int) -> list[dict[str, Any]]:
    """Rows of the picture; a part says its share where there is room for it."""
    longest = max(bar.total_ms for bar in bars) or 1.0
    least = LABEL_RATIO if width > 400 else NARROW_LABEL_RATIO
    rows = []
    for bar in bars:
        at = 0.0
        for name, ms in bar.parts.items():
            colour = palette.PARTS[name]
            rows.append({
                "rank": bar.label, "part": say(f"charts.{name}"), "from": at, "to": at + ms,
                "middle": at + ms / 2, "colour": palette.text_on(colour),
                "label": figures.percent(bar.share(name)) if ms / longest >= least else "",
            })  # fmt: skip
            at += ms
    return rows


def _draw(bars: Sequence[Bar], width: int) -> Any:
    import altair as alt

    names = [name for name in bars[0].parts if any(bar.share(name) >= 0.005 for bar in bars)]
    rows = _segments(bars, width)
    longest = max(bar.total_ms for bar in bars)
    y = alt.Y(
        "rank:N", title=None, sort=None, axis=alt.Axis(domain=False, ticks=False, minExtent=64)
    )
    x = alt.X("from:Q", title=say("charts.milliseconds"), scale=alt.Scale(domain=[0, longest]),
              axis=alt.Axis(grid=False, tickCount=5 if width > 400 else 3))  # fmt: skip
    base = alt.Chart(alt.InlineData(values=rows)).encode(y=y)
    parts = base.mark_bar(height=26, stroke=palette.CARD, strokeWidth=1).encode(
        x=x,
        x2="to:Q",
        color=alt.Color(
            "part:N",
            scale=alt.Scale(
                domain=[say(f"charts.{name}") for name in names],
                range=[palette.PARTS[name] for name in names],
            ),
            legend=alt.Legend(columns=len(names) if width > 400 else 3),
        ),
    )
    labels = base.mark_text(fontWeight=600).encode(
        x="middle:Q", text="label:N", color=alt.Color("colour:N", scale=None)
    )
    return alt.layer(parts, labels).properties(width=width - 90, height=38 * len(bars))
