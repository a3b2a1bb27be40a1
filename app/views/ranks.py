"""Where each rank's step goes, side by side, and which of them keeps the others waiting.

These are a rank's own times: what it waits for another one stands in its backward.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from app.views import figures
from app.views.step import WORTH_SAYING_RATIO, StepPart
from ringside.rank_windows import RankParts, rank_parts, slowest
from ringside.rundir import RunDir
from ringside.words import say

PARTS = ("data", "forward", "backward", "optimizer")


@dataclass(frozen=True)
class RankRow:
    """One rank: its name, the time of its step, and the parts that add up to it."""

    name: str
    total: str
    parts: tuple[StepPart, ...]


@dataclass(frozen=True)
class RankSplit:
    """All ranks, and the sentence about the slowest where there is one worth naming."""

    rows: tuple[RankRow, ...]
    sentence: str


def rank_lines(run: RunDir) -> tuple[str, ...]:
    """The same for a terminal: a line for each rank, then the sentence; empty with fewer than two.

    `rank 0: 100.0 ms a step (data 5.0 ms, forward 20.0 ms, …)`.
    """
    split = rank_split(run)
    if split is None:
        return ()
    lines = (
        say(
            "ranks.line", rank=row.name, total=row.total,
            parts=", ".join(f"{part.label} {part.time}" for part in row.parts),
        )
        for row in split.rows
    )  # fmt: skip
    return (*lines, split.sentence)


def rank_split(run: RunDir) -> RankSplit | None:
    """Means over the last windows of the newest epoch; None with fewer than two ranks."""
    ranks = rank_parts(run)
    if len(ranks) < 2:
        return None
    longest = max(rank.step_ms for rank in ranks)
    return RankSplit(tuple(_row(rank, longest) for rank in ranks), _sentence(ranks))


def _row(rank: RankParts, longest: float) -> RankRow:
    """Shares are of the longest step of all ranks, so that bars compare."""
    parts = tuple(
        StepPart(
            name, say(f"step.{name}"), figures.milliseconds(ms), ms / longest if longest else 0.0
        )
        for name, ms in own_parts_ms(rank).items()
    )
    return RankRow(say("log.rank", rank=rank.rank), figures.milliseconds(rank.step_ms), parts)


def own_parts_ms(rank: RankParts) -> Mapping[str, float]:
    """Milliseconds of each part and of the rest; each gets at most what those before it left."""
    left, found = rank.step_ms, {}
    for name in PARTS:
        found[name] = max(0.0, min(getattr(rank, f"{name}_ms"), left))
        left -= found[name]
    return {**found, "rest": left}


def _sentence(ranks: tuple[RankParts, ...]) -> str:
    found = slowest(ranks)
    if not found or found[0].excess_ratio < WORTH_SAYING_RATIO:
        return say("ranks.even")
    late = found[0]
    return say(
        f"ranks.late_{late.part}", rank=late.rank, ms=figures.milliseconds(late.excess_ms),
        share=figures.percent(late.excess_ratio),
    )  # fmt: skip
