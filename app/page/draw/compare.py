"""The Compare page's HTML: verdicts, the table, bars with one meaning each, classes, contrast."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from app.page.draw import badge, heading, items, soft, table, with_code
from app.page.draw.pictures import file_link, picture_card
from app.views.charts.figure import Picture
from app.views.class_deltas import COLUMNS as CLASS_COLUMNS
from app.views.class_deltas import ClassDeltas, DeltaCell
from app.views.contrast import ContrastLine
from app.views.gates import GateLine
from app.views.table import COLUMNS, Chart, CompareView, Row
from ringside.words import say

MARKS = {"up": "▲", "down": "▼"}
WORDS_LEFT = 2

# Typing hides the classes that do not fit, in every table; nothing is asked from the server.
FIND_CLASSES = """
element.addEventListener('input', event => {
  if (event.target.type !== 'search') return;
  const word = event.target.value.toLowerCase();
  for (const row of element.querySelectorAll('tbody tr')) {
    row.hidden = !row.cells[0].dataset.value.toLowerCase().includes(word);
  }
});
"""


def comparison(
    view: CompareView, gates: Sequence[GateLine], csv: bytes, notes: Iterable[str]
) -> str:
    """Verdicts, the table, the bars, and why a number is missing."""
    columns = [say(f"column.{name}") for name in COLUMNS]
    lines = [[_cell(row, name) for name in COLUMNS] for row in view.rows]
    charts = "".join(_chart(chart) for chart in view.charts)
    found = [f"{row.name}: {remark}" for row in view.rows for remark in row.remarks]
    missing = heading(say("compare.remarks")) + items(found) if found else ""
    save = file_link("ringside-compare.csv", "text/csv", csv, say("compare.csv"))
    return (
        f'<section class="rs-card">{_verdicts(gates, notes)}</section>'
        f'<section class="rs-card">{heading(say("compare.table"))}'
        f"{table(columns, lines, left=WORDS_LEFT)}"
        f'<div class="rs-under rs-figure-foot">{soft(say("compare.cost"))}'
        f'<span class="rs-files">{save}</span></div>'
        f"{items(view.precision, 'rs-list rs-soft')}</section>"
        f'<section class="rs-charts">{charts}</section>'
        + (f'<section class="rs-card">{missing}</section>' if missing else "")
    )


def _verdicts(gates: Sequence[GateLine], notes: Iterable[str]) -> str:
    lines = "".join(
        f'<li data-verdict="{escape(gate.word)}"><span class="rs-badge rs-gate-{gate.tone}">'
        f'<span aria-hidden="true">{gate.sign}</span> {escape(gate.word)}</span>'
        f"<div><b>{escape(gate.run)}</b> {with_code(gate.sentence)}</div></li>"
        for gate in gates
    )
    under = "".join(map(soft, notes))
    return f'{heading(say("compare.verdicts"))}<ul class="rs-gates">{lines}</ul>{under}'


def _cell(row: Row, name: str) -> str:
    text = escape(row.cells[name])
    if name == "run":
        text = f'<a href="runs?run={escape(row.id)}">{text}</a><br>{badge(row.state)}'
    lines = row.under.get(name, "").splitlines()
    return text + "".join(f"<small>{escape(line)}</small>" for line in lines)


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


def pictures(found: Iterable[Picture], empty: tuple[str, str] | None = None) -> str:
    """Drawn charts side by side; for none a card with the title and the sentence of `empty`."""
    cards = "".join(picture_card(picture, "compare") for picture in found)
    if cards:
        return f'<div class="rs-figures">{cards}</div>'
    if empty is None:
        return ""
    title, sentence = map(say, empty)
    return f'<section class="rs-card">{heading(title)}{soft(sentence)}</section>'


def class_tables(tables: Sequence[ClassDeltas]) -> str:
    """One folded table a run, the first open; a field above finds a class in all of them."""
    if not tables:
        return ""
    word = escape(say("compare.classes_search"))
    search = (
        f'<input type="search" class="rs-search" aria-label="{word}" placeholder="{word}">'
        if any(one.rows for one in tables)
        else ""
    )
    first = next((i for i, one in enumerate(tables) if one.rows), -1)
    folds = "".join(_class_fold(one, is_open=at == first) for at, one in enumerate(tables))
    return f"{heading(say('compare.classes'))}{search}{folds}"


def _class_fold(found: ClassDeltas, *, is_open: bool) -> str:
    if not found.rows:
        return "".join(map(soft, found.notes))
    head = "".join(
        f'<th class="{_side(at)}">{escape(say(f"compare.class_{name}"))}</th>'
        for at, name in enumerate(CLASS_COLUMNS)
    )
    body = "".join(
        f"<tr>{''.join(_class_cell(cell, at) for at, cell in enumerate(row))}</tr>"
        for row in found.rows
    )
    return (
        f'<details class="rs-setup rs-class-fold"{" open" if is_open else ""}>'
        f"<summary>{escape(found.aside)}</summary>"
        f'<div class="rs-scroll rs-tall"><table class="rs-table rs-sortable"><thead><tr>{head}</tr>'
        f"</thead><tbody>{body}</tbody></table></div>{''.join(map(soft, found.notes))}</details>"
    )


def _class_cell(one: DeltaCell, at: int) -> str:
    value = "" if one.cell.value is None else escape(str(one.cell.value))
    mark = ""
    if one.mark:
        word = escape(say("compare.outside"))
        mark = (
            f'<span class="rs-mark-{one.mark}" title="{word}" role="img" aria-label="{word}">'
            f"{MARKS[one.mark]}</span> "
        )
    under = f"<small>{escape(one.under)}</small>" if one.under else ""
    text = escape(one.cell.text)
    return f'<td class="{_side(at)}" data-value="{value}">{mark}{text}{under}</td>'


def _side(at: int) -> str:
    return "r" if at else "l"


def contrast_table(lines: Sequence[ContrastLine], names: Sequence[str]) -> str:
    """What differs between the runs; nothing that is equal."""
    title = heading(say("compare.different"))
    if not lines:
        return title + soft(say("compare.equal"))
    columns = (say("compare.group"), say("compare.setting"), *names)
    rows = [
        [
            escape(line.group) if not at or lines[at - 1].group != line.group else "",
            *(escape(text) for text in (line.name, *line.values)),
        ]
        for at, line in enumerate(lines)
    ]
    return f'{title}<div class="rs-contrast">{table(columns, rows, left=len(columns))}</div>'


def predicted_table(rows: Sequence[Sequence[str]]) -> str:
    """What was predicted beside what came of it; empty where nothing was."""
    if not rows:
        return ""
    columns = [say(f"compare.{name}") for name in ("what", "predicted", "measured", "error")]
    cells = [[escape(cell) for cell in row] for row in rows]
    return (
        heading(say("compare.predicted_title"))
        + table((say("column.run"), *columns), cells, left=2)
        + soft(say("compare.predicted_note"))
    )
