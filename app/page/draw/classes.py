"""The tables of classes: a click on the name of a column sorts by it."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from app.page.draw import heading, soft
from app.views.classes import COLUMNS, Cell, ClassTable
from ringside.words import say

# Numbers fall first and names rise; a second click turns the order round; a dash is always last.
# The order survives new content, because a running run sends the table again after each epoch.
SORT_CLASSES = """
const orders = new Map();
const compare = (a, b, column) => column ? b - a : a.localeCompare(b, undefined, {numeric: true});
const sort = (table, column, turned) => {
  const value = row => row.cells[column].dataset.value;
  const rows = [...table.tBodies[0].rows].sort((a, b) => {
    const [x, y] = [value(a), value(b)];
    if (x === '' || y === '') return (x === '') - (y === '');
    return compare(x, y, column) * (turned ? -1 : 1);
  });
  table.tBodies[0].append(...rows);
  table.dataset.sorted = 'yes';
  const falls = column > 0 !== turned;
  [...table.tHead.rows[0].cells].forEach((cell, at) => {
    if (at === column) cell.setAttribute('aria-sort', falls ? 'descending' : 'ascending');
    else cell.removeAttribute('aria-sort');
  });
};
element.addEventListener('click', event => {
  const button = event.target.closest('button[data-column]');
  if (!button) return;
  const table = button.closest('table');
  const column = Number(button.dataset.column);
  const before = orders.get(table.dataset.kind);
  const turned = Boolean(before) && before.column === column && !before.turned;
  orders.set(table.dataset.kind, {column, turned});
  sort(table, column, turned);
});
new MutationObserver(() => {
  for (const table of element.querySelectorAll('table[data-kind]')) {
    const order = orders.get(table.dataset.kind);
    if (order && !table.dataset.sorted) sort(table, order.column, order.turned);
  }
}).observe(element, {childList: true, subtree: true});
"""


def class_cards(tables: Sequence[ClassTable]) -> str:
    """One table for each epoch that is kept; empty without any."""
    return "".join(_card(table, str(number)) for number, table in enumerate(tables))


def _card(table: ClassTable, kind: str) -> str:
    head = "".join(
        f'<th class="{_side(at)}"><button type="button" data-column="{at}">'
        f"{escape(say(f'classes.{name}'))}</button></th>"
        for at, name in enumerate(COLUMNS)
    )
    body = "".join(f"<tr>{''.join(map(_cell, row, range(len(row))))}</tr>" for row in table.rows)
    return (
        f"{heading(say('classes.title'), table.title)}"
        f'<div class="rs-scroll rs-tall"><table class="rs-table rs-sortable" data-kind="{kind}">'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
        f"{''.join(map(soft, table.notes))}"
    )


def _cell(cell: Cell, at: int) -> str:
    value = "" if cell.value is None else escape(str(cell.value))
    return f'<td class="{_side(at)}" data-value="{value}">{escape(cell.text)}</td>'


def _side(at: int) -> str:
    return "r" if at else "l"
