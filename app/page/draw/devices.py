"""HTML of what a run's ranks and devices do: the parts of each rank's step, small lines of use."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from app.page.draw import heading, soft, table
from app.views.ranks import RankRow, RankSplit
from app.views.strip import Spark, StripRow
from ringside.words import say

WIDTH, HEIGHT = 120, 26


def rank_table(split: RankSplit | None) -> str:
    """A bar and the numbers of each rank; empty with fewer than two."""
    if split is None:
        return ""
    parts = split.rows[0].parts
    columns = [say("column.rank"), "", *(part.label for part in parts[:-1]), say("column.step")]
    rows = [[escape(row.name), _bar(row), *_times(row), escape(row.total)] for row in split.rows]
    return (
        f'<div class="rs-by-rank">{heading(say("ranks.title"))}{table(columns, rows, left=2)}'
        f"{soft(split.sentence)}</div>"
    )


def _times(row: RankRow) -> list[str]:
    """Without the rest, which is what the others leave of the step."""
    return [escape(part.time) for part in row.parts[:-1]]


def _bar(row: RankRow) -> str:
    """Widths are shares of the longest step, so the bars of ranks compare."""
    parts = "".join(
        f'<i class="rs-c-{part.key}" style="flex:0 0 {part.share * 100:.2f}%" '
        f'title="{escape(part.label)} {escape(part.time)}"></i>'
        for part in row.parts
    )
    return f'<div class="rs-bar rs-bar-small" aria-hidden="true">{parts}</div>'


def device_strip(rows: Sequence[StripRow], *, is_over: bool) -> str:
    """One row a device; its values stand beside the lines."""
    if not rows:
        sentence = say("strip.none" if is_over else "strip.empty")
        return heading(say("strip.title")) + soft(sentence)
    body = "".join(map(_device, rows))
    lead = say("strip.whole" if is_over else "strip.lead")
    return f'{heading(say("strip.title"), lead)}<ul class="rs-strip">{body}</ul>'


def _device(row: StripRow) -> str:
    note = f'<p class="rs-chip-warn">{escape(row.note)}</p>' if row.note else ""
    sparks = "".join(map(_spark, row.sparks))
    return f'<li><b>{escape(row.name)}</b><div class="rs-sparks">{sparks}</div>{note}</li>'


def _spark(spark: Spark) -> str:
    line = " ".join(f"{x * WIDTH:.1f},{1 + (1 - y) * (HEIGHT - 2):.1f}" for x, y in spark.points)
    return (
        f'<span class="rs-spark"><svg viewBox="0 0 {WIDTH} {HEIGHT}" preserveAspectRatio="none" '
        f'aria-hidden="true"><polyline points="{line}"/></svg>'
        f"<span>{escape(spark.label)}</span><b>{escape(spark.value)}</b></span>"
    )
