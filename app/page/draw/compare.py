"""The Compare page's HTML: the table, bars with one meaning each, and the remarks."""

from __future__ import annotations

from html import escape

from app.page.draw import badge, heading, items, table
from app.views.table import COLUMNS, Chart, CompareView, Row
from ringside.words import say


def comparison(view: CompareView) -> str:
    """The whole comparison."""
    columns = [say(f"column.{name}") for name in COLUMNS]
    lines = [[_cell(row, name) for name in COLUMNS] for row in view.rows]
    charts = "".join(_chart(chart) for chart in view.charts)
    notes = [f"{row.name}: {remark}" for row in view.rows for remark in row.remarks]
    remarks = heading(say("compare.remarks")) + items(notes) if notes else ""
    return (
        f'<section class="rs-card">{heading(say("compare.table"))}'
        f"{table(columns, lines, left=2)}{items(view.precision, 'rs-list rs-soft')}</section>"
        f'<section class="rs-charts">{charts}</section>'
        + (f'<section class="rs-card">{remarks}</section>' if remarks else "")
    )


def _cell(row: Row, name: str) -> str:
    text = escape(row.cells[name])
    if name == "run":
        text = f'<a href="runs?run={escape(row.id)}">{text}</a> {badge(row.state)}'
    under = row.under.get(name)
    return f"{text}<small>{escape(under)}</small>" if under else text


def _chart(chart: Chart) -> str:
    colour = f"rs-c-{chart.colour}"
    lines = "".join(
        f"<span>{escape(bar.label)}</span>"
        f'<div class="rs-track"><i class="{colour}" style="width:{bar.share or 0:.2%}"></i></div>'
        f"<b>{escape(bar.text)}</b>"
        for bar in chart.bars
    )
    head = heading(chart.title, chart.aside)
    return f'<figure class="rs-card">{head}<div class="rs-bars">{lines}</div></figure>'
