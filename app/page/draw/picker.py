"""Runs by checkbox, their baseline by radio button; the choice itself is made in the browser."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from app.page.draw import badge
from app.views.listing import ListRow
from app.views.table import MAX_RUNS
from ringside.words import say

# The order is that in which runs were ticked; the first is what the others are compared with.
PICK = """
const most = Number(props.most);
const read = () => {
  try { return JSON.parse(props.value || '{}'); } catch { return {}; }
};
const show = () => {
  const {runs = [], baseline = ''} = read();
  for (const input of element.querySelectorAll('input[name=pick]')) {
    input.checked = runs.includes(input.value);
    input.disabled = !input.checked && runs.length >= most;
    input.title = input.disabled ? props.full : '';
  }
  for (const input of element.querySelectorAll('input[name=pick-baseline]')) {
    input.checked = input.value === baseline;
    input.disabled = input.value !== '' && !runs.includes(input.value);
  }
  const count = element.querySelector('[data-count]');
  if (count) count.textContent = runs.length;
};
element.addEventListener('change', event => {
  const {name, value, checked} = event.target;
  let {runs = [], baseline = ''} = read();
  if (name === 'pick') {
    runs = runs.filter(id => id !== value);
    if (checked && runs.length < most) runs.push(value);
    if (!runs.includes(baseline)) baseline = '';
  } else if (name === 'pick-baseline') {
    baseline = value;
  } else return;
  props.value = JSON.stringify({runs, baseline});
  show();
  trigger('change');
});
element.addEventListener('input', event => {
  if (event.target.type !== 'search') return;
  const words = event.target.value.toLowerCase().split(/\\s+/).filter(Boolean);
  for (const row of element.querySelectorAll('tbody tr')) {
    const text = row.textContent.toLowerCase();
    row.hidden = !words.every(word => text.includes(word));
  }
});
watch(['value', 'rows'], show);
show();
"""


def picker(rows: Sequence[ListRow], *, is_open: bool) -> str:
    """All runs as lines of a table; open where there is still something to choose."""
    title = say("compare.choose", n="{n}", most=MAX_RUNS)
    before, _, after = escape(title).partition("{n}")
    lines = "".join(map(_line, rows))
    columns = "".join(
        f'<th class="l">{escape(say(key))}</th>'
        for key in ("compare.choose_pick", "compare.choose_baseline", "runs.run", "runs.state",
                    "runs.preset", "runs.data", "runs.started")
    )  # fmt: skip
    search = escape(say("compare.choose_search"))
    own = escape(say("compare.choose_none"))
    return (
        f'<details class="rs-setup rs-picker"{" open" if is_open else ""}>'
        f"<summary>{before}<b data-count>0</b>{after}</summary>"
        f'<p class="rs-soft">{escape(say("compare.choose_help"))}</p>'
        f'<div class="rs-picker-head"><input type="search" aria-label="{search}" '
        f'placeholder="{search}">'
        f'<label><input type="radio" name="pick-baseline" value=""> '
        f"{escape(say('compare.choose_baseline'))}: {own}</label></div>"
        f'<div class="rs-scroll rs-tall"><table class="rs-table"><thead><tr>{columns}</tr></thead>'
        f"<tbody>{lines}</tbody></table></div></details>"
    )


def _line(row: ListRow) -> str:
    run_id, name = escape(row.id), escape(row.name)
    pick = escape(f"{say('compare.choose_pick')}: {row.name}")
    base = escape(f"{say('compare.choose_baseline')}: {row.name}")
    cells = (
        f'<input type="checkbox" name="pick" value="{run_id}" aria-label="{pick}">',
        f'<input type="radio" name="pick-baseline" value="{run_id}" aria-label="{base}">',
        name, badge(row.state), f"{escape(row.preset)}<small>{escape(row.model)}</small>",
        escape(row.data), escape(row.started),
    )  # fmt: skip
    return "<tr>" + "".join(f'<td class="l">{cell}</td>' for cell in cells) + "</tr>"
