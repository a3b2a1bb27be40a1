"""The list of runs, what is said about one of them, and the processes that are left over."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from app.page.draw import badge, heading, soft, table, with_code
from app.views import figures
from app.views.leftovers import LeftoverState
from app.views.listing import Found, ListRow
from app.views.queue import place_sentence, try_sentence
from ringside.launch.queue import Place
from ringside.shelf.figures import Figures
from ringside.shelf.leftovers import Leftover
from ringside.shelf.notes import Notes
from ringside.words import say

COLUMNS = ("run", "state", "preset", "data", "started", "epochs")
FIGURES = ("epoch_time", "speedup", "auc", "f1")
MOVES = {"first": "⤒", "up": "↑", "down": "↓"}
MAX_NOTE = 90
MAX_COMMAND = 60


def run_list(found: Found, chosen: str | None) -> str:
    """The runs that were asked for; each name opens its run."""
    if not found.num_runs:
        return _empty_list()
    if not found.rows:
        is_bare = found.query.archived and not found.query.narrows
        return soft(say("shelf.none_archived" if is_bare else "shelf.none_fits"))
    columns = [say(f"runs.{name}") for name in (*COLUMNS, *FIGURES)]
    lines = [_line(row, row.id == chosen) for row in found.rows]
    more = ""
    if found.num_found > len(found.rows):
        more = soft(say("shelf.more", shown=len(found.rows), total=found.num_found))
    return f'<div class="rs-runs">{table(columns, lines, left=len(COLUMNS))}</div>{more}'


def paused_line(paused: bool) -> str:
    """That the queue of this machine is paused; else empty."""
    return soft(say("queue.is_paused")) if paused else ""


def said_about(notes: Notes) -> str:
    """Tags and note of a run, as they stand under its name; empty without any."""
    if not (notes.tags or notes.note or notes.archived):
        return ""
    put_away = f"<em>{escape(say('shelf.put_away'))}</em>" if notes.archived else ""
    note = f"<p>{escape(notes.note)}</p>" if notes.note else ""
    return f'<div class="rs-said">{put_away}{tags(notes.tags)}{note}</div>'


def tags(found: Iterable[str]) -> str:
    """Tags as small labels."""
    return "".join(f'<span class="rs-tag">{escape(tag)}</span>' for tag in found)


def leftover_card(state: LeftoverState) -> str:
    """The processes and the runs that they belong to; empty without any."""
    if not state.found:
        return ""
    n = len(state.found)
    lead = say("shelf.left_one") if n == 1 else say("shelf.left_lead", n=n)
    if state.cleaning:
        lead = say("shelf.left_cleaning")
    names = ("run", "left_pid", "left_command", "left_since", "left_memory")
    columns = [say(f"runs.{name}" if name == "run" else f"shelf.{name}") for name in names]
    fault = f'<p class="rs-bad">{with_code(state.sentence)}</p>' if state.sentence else ""
    lines = [_leftover(one) for one in state.found[:20]]
    return heading(say("shelf.left_title"), lead) + table(columns, lines, left=4) + fault


def _line(row: ListRow, is_chosen: bool) -> list[str]:
    mark = ' aria-current="true"' if is_chosen else ""
    link = f'<a href="runs?run={escape(row.id)}"{mark}>{escape(row.name)}</a>'
    said = tags(row.notes.tags)
    if row.notes.note:
        said += f"<small>{escape(_short(row.notes.note, MAX_NOTE))}</small>"
    found = row.figures or Figures()
    numbers = (
        figures.seconds(found.epoch_time_s),
        figures.ratio(found.speedup),
        figures.score(found.auc_macro),
        figures.score(found.f1_macro),
    )
    said += "".join(_try(*one) for one in row.tries)
    state = badge(row.state) + (_queue_cell(row.place, row.name) if row.place else "")
    preset = f"{escape(row.preset)}<small>{escape(row.model)}</small>"
    words = (row.data, row.started, row.progress)
    return [f"{link} {said}", state, preset, *map(escape, (*words, *numbers))]


def _try(kind: str, run_id: str) -> str:
    link = f'<a href="runs?run={escape(run_id)}">{escape(try_sentence(kind, run_id))}</a>'
    return f"<small>{link}</small>"


def _queue_cell(place: Place, name: str) -> str:
    """Where a run stands in the queue, and buttons that move it."""
    buttons = "".join(
        f'<button type="button" data-move="{direction}" data-run="{escape(place.run_id)}" '
        f'title="{escape(say(f"queue.{direction}_of", name=name))}" '
        f'aria-label="{escape(say(f"queue.{direction}_of", name=name))}">{sign}</button>'
        for direction, sign in MOVES.items()
    )
    return (
        f'<small>{with_code(place_sentence(place))}</small><span class="rs-moves">{buttons}</span>'
    )


def _leftover(one: Leftover) -> list[str]:
    name = "-".join(one.run.split("-")[2:])
    link = f'<a href="runs?run={escape(one.run)}">{escape(name)}</a> {badge(one.state)}'
    words = escape(_short(one.command, MAX_COMMAND))
    command = f'<code title="{escape(one.command[:1000])}">{words}</code>'
    size = figures.size(one.memory_bytes)
    return [link, str(one.pid), command, escape(figures.clock(one.started)), escape(size)]


def _short(text: str, limit: int) -> str:
    """One line of at most so many characters."""
    line = " ".join(text.split())
    return line if len(line) <= limit else line[: limit - 1].rstrip() + "…"


def _empty_list() -> str:
    """What to do when there is nothing yet."""
    return (
        f'<div class="rs-empty"><b>{escape(say("runs.empty_title"))}</b>'
        f"{soft(say('runs.empty'))}"
        f'<a class="rs-link-button" href="./">{escape(say("runs.to_train"))}</a></div>'
    )
