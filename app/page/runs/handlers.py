"""What the Runs page does: it polls, and gets only what it does not hold yet.

Most ticks bring nothing, so a tick asks one small question (`tick`), and the page is sent what
changed (`poll`) only when the answer says so.
"""

from __future__ import annotations

import secrets
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import gradio as gr
from gradio.components import Component
from gradio.context import LocalContext

from app.page.draw import soft
from app.page.draw.classes import class_cards
from app.page.draw.devices import device_strip, rank_table
from app.page.draw.doctor import doctor_line
from app.page.draw.runs import (
    ending_card,
    epoch_table,
    hang_banner,
    remarks,
    run_head,
    setup_card,
    stamp,
    standing,
    step_card,
    tiles,
)
from app.page.frame import changed, quiet
from app.page.runs.actions import ActionHandlers
from app.page.runs.curves import curve_changes
from app.page.runs.listing import ListHandlers
from app.page.runs.log import LogParts, log_changes
from app.page.runs.shelf import ShelfHandlers
from app.page.runs.trying import TryHandlers
from app.page.settings import PageSettings
from app.views.listing import ListRow
from app.views.logs import CONSOLE
from app.views.pace import Pace
from app.views.run import RunView
from app.views.strip import StripRow
from ringside.errors import RingsideError
from ringside.rundir import RunDir
from ringside.shelf.finding import Query
from ringside.shelf.notes import NOTHING
from ringside.words import spoken

Changes = dict[Component, Any]
MAX_DRAWN = 64


@dataclass(frozen=True)
class Parts:
    """The components of the page.

    `seen` is a token for what the browser has (`app.views.memory`); it comes back with every poll,
    so an answer that was lost on the way is sent again. A new `pulse` makes the page ask, and
    `timer` makes it tick.
    """

    token: gr.Textbox
    run: gr.Textbox
    seen: gr.Textbox
    pulse: gr.Textbox
    timer: gr.Timer
    notice: gr.HTML
    live: gr.Column
    head: gr.HTML
    hang: gr.HTML
    tiles: gr.HTML
    ending: gr.HTML
    doctor: gr.HTML
    epochs: gr.HTML
    step: gr.HTML
    strip: gr.HTML
    curves: gr.HTML
    classes: gr.HTML
    remarks: gr.HTML
    setup: gr.HTML
    log: LogParts


@dataclass(frozen=True)
class Cards:
    """The parts of the page that have handlers of their own."""

    actions: ActionHandlers
    trial: TryHandlers
    shelf: ShelfHandlers
    listing: ListHandlers


class Handlers:
    """What the page does. Everything polled goes through `_changes`."""

    def __init__(self, parts: Parts, cards: Cards, settings: PageSettings) -> None:
        self.parts = parts
        self.cards = cards
        self.desk = settings.desk
        self.memory = settings.memory
        self.consultations = settings.consultations
        self._drawings, self._pace = Drawings(), Pace()

    @quiet
    def open(self, request: gr.Request) -> Changes:
        """The run of `?run=`, else the newest; and the list."""
        notice, run = "", None
        try:
            run = self.desk.find(request.query_params.get("run"))
        except RingsideError as error:
            notice = soft(str(error))
        run_id = run.id if run else ""
        changes = self._changes(run_id, {}, CONSOLE, Query())
        filled = {**self.cards.shelf.fill(run_id), **self.cards.actions.opened()}
        return {self.parts.notice: notice, self.parts.run: run_id, **changes, **filled}

    @quiet
    def tick(self, data: Changes) -> Changes:
        """A new pulse when there is anything that the browser lacks; the time of the next tick."""
        found: Changes = {self.parts.pulse: secrets.token_hex(4)} if self._news(data) else {}
        seconds = self._pace.news(LocalContext.request.get(None).session_hash or "")
        return found | ({self.parts.timer: gr.Timer(seconds)} if seconds else {})

    @quiet
    def poll(self, data: Changes) -> Changes:
        """What changed since the browser last heard of it."""
        return self._news(data)

    @quiet
    def resend(self, data: Changes) -> Changes:
        """A log or a curve lacks a piece, or is wanted from its end again."""
        seen = self.memory.recall(data[self.parts.seen])
        for name in ("log", "curves"):
            seen.pop(name, None)
        return self._news({**data, self.parts.seen: self.memory.keep(seen)})

    def _news(self, data: Mapping[Any, Any]) -> Changes:
        parts, cards = self.parts, self.cards
        run_id, seen = str(data[parts.run] or ""), self.memory.recall(data[parts.seen])
        if seen.get("run") != run_id:
            seen = {}
        query, trial = cards.listing.query(data), str(data[cards.trial.parts.trial] or "")
        return self._changes(run_id, seen, data[parts.log.choice], query, trial)

    def _changes(
        self, run_id: str, seen: dict[str, Any], log_key: object, query: Query,
        trial_id: str | None = None,
    ) -> Changes:  # fmt: skip
        cards, rows, before = self.cards, self.desk.rows(), dict(seen)
        seen["run"] = run_id
        row = next((row for row in rows if row.id == run_id), None)
        view, values = self._look(run_id, row)
        new = changed(values, seen)
        seen |= {name: digest for name, (_, digest) in new.items()}
        found: Changes = {
            getattr(self.parts, name): stamp(value) for name, (value, _) in new.items()
        }
        if view is not None:
            found |= self._run_changes(view, seen, log_key)
            found |= cards.trial.changes(view, trial_id, seen)
            found |= cards.shelf.changes(row.notes if row else NOTHING, seen)
        found |= cards.listing.changes(rows, query, run_id, seen)
        return found if seen == before else {**found, self.parts.seen: self.memory.keep(seen)}

    def _look(self, run_id: str, row: ListRow | None) -> tuple[RunView | None, dict[str, str]]:
        """The run and its texts; of one that cannot be read, only the notice that says so."""
        if not run_id:
            return None, {}
        try:
            view, life = self.desk.look(run_id)
            strip = self.desk.strip(run_id)
        except RingsideError as error:
            return None, {"notice": soft(str(error))}
        texts = self._drawings.of(view, strip)
        verdict = doctor_line(self.consultations.state(view.id), view.id) if view.is_over else ""
        head = run_head(view, life, standing(row) if row else ())
        return view, {"notice": "", "head": head, **texts, "doctor": verdict}

    def _run_changes(self, view: RunView, seen: dict[str, Any], log_key: object) -> Changes:
        """What is more than text: the buttons, the curves, the log."""
        parts, run = self.parts, RunDir(self.desk.root / view.id)
        found: Changes = {}
        if changed({"live": True}, seen):
            seen["live"] = changed({"live": True}, {})["live"][1]
            found[parts.live] = gr.Column(visible=True)
        return {
            **found,
            **self.cards.actions.changes(view, seen),
            **curve_changes(parts.curves, self.desk, view, seen),
            **log_changes(parts.log, run, log_key, seen),
        }


class Drawings:
    """The HTML of runs, drawn once for all viewers of a language until something changes."""

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[str, str], tuple[object, object, dict[str, str]]] = (
            OrderedDict()
        )

    def of(self, view: RunView, strip: tuple[StripRow, ...]) -> dict[str, str]:
        """All texts of a run by the names of their parts; views are compared by identity."""
        key = (view.id, spoken())
        known = self._kept.get(key)
        if known is None or known[0] is not view or known[1] is not strip:
            known = self._kept[key] = (view, strip, _texts(view, strip))
        self._kept.move_to_end(key)
        while len(self._kept) > MAX_DRAWN:
            self._kept.popitem(last=False)
        return known[2]


def _texts(view: RunView, strip: tuple[StripRow, ...]) -> dict[str, str]:
    return {
        "hang": hang_banner(view.hang),
        "tiles": tiles(view.tiles),
        "ending": ending_card(view.ending),
        "epochs": epoch_table(view),
        "step": step_card(view.step, view.step_lines) + rank_table(view.ranks),
        "strip": device_strip(strip, is_over=view.is_over),
        "classes": class_cards(view.classes),
        "remarks": remarks(view),
        "setup": setup_card(view),
    }
