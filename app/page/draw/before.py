"""What stands in the way of a start, and what the form changes, as HTML."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from app.page.draw import heading, soft, table, with_code
from app.views.before import Before
from app.views.contrast import ContrastLine
from app.views.difference import DifferenceView
from ringside.preflight import Item, Level
from ringside.words import catalogue, say

# A sign beside the word, so that nothing is told by colour alone.
SIGNS: dict[Level, str] = {"error": "✕", "warning": "▲", "unknown": "?", "fine": "✓"}

# The accepted codes are the component's value; the list comes from the server.
ACCEPT = """
const read = () => {
  try { return JSON.parse(props.value || '[]'); } catch { return []; }
};
const show = () => {
  const codes = read();
  for (const input of element.querySelectorAll('input[name=accept]')) {
    input.checked = codes.includes(input.value);
  }
};
element.addEventListener('change', (event) => {
  const {name, value, checked} = event.target;
  if (name !== 'accept') return;
  const codes = read().filter((code) => code !== value);
  if (checked) codes.push(value);
  props.value = JSON.stringify(codes);
  trigger('change');
});
watch(['value', 'list'], show);
new MutationObserver(show).observe(element, {childList: true, subtree: true});
show();
"""


def before_list(before: Before, told: str = "") -> str:
    """Errors, warnings and unknowns one by one, what is fine folded away.

    `told` is a sentence that stands above the list already.
    """
    items = [item for item in before.found.items if item.sentence != told]
    open_items = [item for item in items if item.level != "fine"]
    fine = [item for item in items if item.level == "fine"]
    lines = "".join(_line(item, before) for item in open_items)
    shown = f'<ul class="rs-before">{lines}</ul>' if lines else ""
    return f"{_summary(before)}{shown}{_folded(fine)}"


def _summary(before: Before) -> str:
    counts = [
        say(f"preflight.{key}", n=len(some))
        for key, some in (
            ("errors", before.found.errors),
            ("warnings", before.found.open_warnings(before.accepted)),
        )
        if some
    ]
    if counts:
        return heading(say("preflight.title"), ", ".join(counts))
    fine = f'<span class="rs-text-good" aria-hidden="true">{SIGNS["fine"]}</span> '
    return (
        heading(say("preflight.title"))
        + f'<p class="rs-soft" role="status">{fine}{escape(say("preflight.all_fine"))}</p>'
    )


def _line(item: Item, before: Before) -> str:
    level = escape(say(f"preflight.level_{item.level}"))
    choice = _choice(item) if item.level == "warning" and not _is_chosen(item, before) else ""
    return (
        f'<li class="rs-before-{item.level}" data-code="{escape(item.code)}">'
        f'<span aria-hidden="true">{SIGNS[item.level]}</span>'
        f"<div><b>{level} · {escape(title_of(item))}</b> {with_code(item.sentence)}{choice}</div>"
        "</li>"
    )


def _is_chosen(item: Item, before: Before) -> bool:
    """Whether the choice was made in a field of its own: to start beside others."""
    case = before.case
    return item.code == "beside" and case is not None and case.request.beside


def _choice(item: Item) -> str:
    words = escape(say("preflight.anyway"))
    name = escape(f"{say('preflight.anyway')}: {title_of(item)}")
    return (
        f'<label><input type="checkbox" name="accept" value="{escape(item.code)}" '
        f'aria-label="{name}"> {words}</label>'
    )


def _folded(items: Iterable[Item]) -> str:
    lines = [
        f'<li class="rs-before-fine"><span aria-hidden="true">{SIGNS["fine"]}</span>'
        f"<div><b>{escape(title_of(item))}</b> {with_code(item.sentence)}</div></li>"
        for item in items
    ]
    if not lines:
        return ""
    return (
        f'<details class="rs-more"><summary>{escape(say("preflight.checked", n=len(lines)))}'
        f'</summary><ul class="rs-before">{"".join(lines)}</ul></details>'
    )


def title_of(item: Item) -> str:
    """What an item is about: the field that is at fault, or the check."""
    words = catalogue()
    by_field = words.get(f"field.{item.field}") if item.field else None
    return by_field or words[f"preflight.title_{item.code}"]


def difference_table(view: DifferenceView) -> str:
    """What differs, one line a setting; what agrees is folded away."""
    columns = [say("train.setting"), *view.columns]
    changed = (
        table(columns, map(_cells, view.differing), left=len(columns))
        if view.differing
        else soft(say("difference.none"))
    )
    same = (
        f'<details class="rs-more"><summary>'
        f"{escape(say('difference.same', n=len(view.agreed)))}</summary>"
        f"{table(columns, map(_cells, view.agreed), left=len(columns))}</details>"
    )
    last = say("difference.last", name=view.last) if view.last else say("difference.no_last")
    return heading(say("difference.title")) + changed + soft(last) + same


def _cells(line: ContrastLine) -> list[str]:
    return [escape(line.name), *map(escape, line.values)]
