"""What the Runs page does: it polls, and gets only what it does not hold yet."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import gradio as gr
import pandas as pd
from gradio.components import Component

from app.audit import about
from app.guard import require_token
from app.page.draw import soft
from app.page.draw.classes import class_cards
from app.page.draw.doctor import doctor_line
from app.page.draw.runs import (
    ending_card,
    epoch_table,
    remarks,
    run_head,
    setup_card,
    step_card,
    tiles,
)
from app.page.frame import acts, changed, quiet, read_seen
from app.page.runs.listing import ListHandlers
from app.page.runs.shelf import ShelfHandlers
from app.page.runs.trying import TryHandlers
from app.page.settings import PageSettings
from app.views.logs import CONSOLE, log_choices, read_log
from app.views.run import Point, RunView
from ringside.errors import RingsideError, RunDirError
from ringside.launch.stop import stop_in_background
from ringside.profile_request import ask_for_profile
from ringside.run import FINAL_STATES
from ringside.rundir import RunDir
from ringside.shelf.finding import Query
from ringside.shelf.notes import NOTHING
from ringside.words import say

Changes = dict[Component, Any]

SERIES = {
    "loss": ("curve.train_loss", "curve.val_loss"),
    "scores": ("curve.auc", "curve.f1"),
}


@dataclass(frozen=True)
class Parts:
    """The components of the page. What `seen` holds comes back with every poll.

    `seen` says which parts the browser has, so an answer that was lost on the way is sent again;
    a server that kept this itself would believe it had been read.
    """

    token: gr.Textbox
    run: gr.Textbox
    seen: gr.Textbox
    notice: gr.HTML
    live: gr.Column
    head: gr.HTML
    profile: gr.Button
    stop: gr.Button
    tiles: gr.HTML
    ending: gr.HTML
    doctor: gr.HTML
    epochs: gr.HTML
    step: gr.HTML
    log_choice: gr.Dropdown
    log: gr.HTML
    loss: gr.LinePlot
    scores: gr.LinePlot
    classes: gr.HTML
    remarks: gr.HTML
    setup: gr.HTML


def points_frame(points: Iterable[Point], series: Iterable[str]) -> pd.DataFrame:
    """Points as a native plot wants them.

    The plot fixes axes and colours when it first sees data, so an empty one needs the types, and a
    point without a value for every series.
    """
    seeds = [(0.0, float("nan"), name) for name in series]
    frame = pd.DataFrame([*seeds, *points], columns=["epoch", "value", "series"])
    return frame.astype({"epoch": float, "value": float, "series": str})


class Handlers:
    """What the page does. Everything polled goes through `_changes`."""

    def __init__(
        self,
        parts: Parts,
        trial: TryHandlers,
        shelf: ShelfHandlers,
        listing: ListHandlers,
        settings: PageSettings,
    ) -> None:
        self.parts = parts
        self.trial = trial
        self.shelf = shelf
        self.listing = listing
        self.desk = settings.desk
        self.consultations = settings.consultations
        self.token = settings.token
        self.series = {name: [say(key) for key in keys] for name, keys in SERIES.items()}

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
        filled = self.shelf.fill(run_id)
        return {self.parts.notice: notice, self.parts.run: run_id, **changes, **filled}

    @quiet
    def poll(self, data: Changes) -> Changes:
        """What changed since the browser last heard of it."""
        parts = self.parts
        seen = read_seen(data[parts.seen])
        query, trial = self.listing.query(data), data[self.trial.parts.trial]
        return self._changes(data[parts.run], seen, data[parts.log_choice], query, trial)

    @quiet
    def switch_log(self, data: Changes) -> Changes:
        """Another log, from near its end."""
        parts = self.parts
        run = self.desk.exact(data[parts.run])
        if run is None:
            return {}
        seen = read_seen(data[parts.seen])
        seen.pop("log", None)
        chunk = self._log(run, seen, data[parts.log_choice])
        return {parts.log: chunk, parts.seen: json.dumps(seen)}

    @acts("stop")
    def stop(self, data: Changes) -> Changes:
        """Leave the request; the run's owner sees to it, and the next poll shows it."""
        about(data[self.parts.run])
        require_token(data[self.parts.token], self.token)
        run = self.desk.exact(data[self.parts.run])
        if run is None:
            raise RunDirError(say("runs.no_run", run=data[self.parts.run] or ""))
        stop_in_background(run)
        return {self.parts.stop: gr.Button(say("runs.stopping"), interactive=False)}

    @acts("profile")
    def profile(self, data: Changes) -> Changes:
        """Leave the request; the ranks agree on the steps and write their traces."""
        about(data[self.parts.run])
        require_token(data[self.parts.token], self.token)
        run = self.desk.exact(data[self.parts.run])
        if run is None:
            raise RunDirError(say("runs.no_profile", run=data[self.parts.run] or ""))
        ask_for_profile(run)
        return {self.parts.profile: gr.Button(say("runs.profile_asked"), interactive=False)}

    def _changes(
        self, run_id: str, seen: dict[str, Any], log_key: str, query: Query,
        trial_id: str | None = None,
    ) -> Changes:  # fmt: skip
        rows, before = self.desk.rows(), dict(seen)
        plots: dict[str, Any] = {}
        view, values = self._look(run_id)
        if view is not None:
            plots = {"loss": view.loss_points, "scores": view.score_points}
        new = changed({**values, **plots}, seen)
        seen |= {name: digest for name, (_, digest) in new.items()}
        found = {
            getattr(self.parts, name): points_frame(value, self.series[name])
            if name in plots
            else value
            for name, (value, _) in new.items()
        }
        if view is not None:
            found |= self._run_changes(view, seen, log_key)
            found |= self.trial.changes(view, trial_id, seen)
            notes = next((row.notes for row in rows if row.id == view.id), NOTHING)
            found |= self.shelf.changes(notes, seen)
        found |= self.listing.changes(rows, query, run_id, seen)
        return found if seen == before else {**found, self.parts.seen: json.dumps(seen)}

    def _look(self, run_id: str) -> tuple[RunView | None, dict[str, str]]:
        """The run and its texts; of one that cannot be read, only the notice that says so."""
        if not run_id:
            return None, {}
        try:
            view, sign_of_life = self.desk.look(run_id)
        except RingsideError as error:
            return None, {"notice": soft(str(error))}
        return view, {"notice": "", **_texts(view, sign_of_life), "doctor": self._verdict(view)}

    def _verdict(self, view: RunView) -> str:
        """The doctor's one sentence, once the run has ended."""
        if view.state not in FINAL_STATES:
            return ""
        return doctor_line(self.consultations.state(view.id), view.id)

    def _run_changes(self, view: RunView, seen: dict[str, Any], log_key: str) -> Changes:
        """What is more than text: the buttons, the logs to choose from, the log."""
        parts, run = self.parts, RunDir(self.desk.root / view.id)
        choices, asked = log_choices(run), run.requested("profile")
        states = {"profile": [view.state, asked], "stop": view.state}
        new = changed({**states, "log_choice": choices, "live": True}, seen)
        seen |= {name: digest for name, (_, digest) in new.items()}
        updates = {
            "profile": _profile_button(view, asked=asked),
            "stop": _stop_button(view),
            "log_choice": gr.Dropdown(choices=choices),
            "live": gr.Column(visible=True),
        }
        found = {getattr(parts, name): updates[name] for name in new}
        chunk = self._log(run, seen, log_key)
        if chunk:
            found[parts.log] = chunk
        return found

    def _log(self, run: RunDir, seen: dict[str, Any], key: str) -> dict[str, Any] | None:
        """New text of the log, noting in `seen` how far the browser is then; None without any."""
        shown, offset = _read_offset(seen.get("log"))
        chunk = read_log(run, key, offset if shown == key else None)
        seen["log"] = [key, chunk.offset]
        if not chunk.text and shown == key:
            return None
        return {"text": chunk.text, "reset": chunk.reset, "offset": chunk.offset}


def _texts(view: RunView, sign_of_life: str) -> dict[str, str]:
    return {
        "head": run_head(view, sign_of_life),
        "tiles": tiles(view.tiles),
        "ending": ending_card(view.ending),
        "epochs": epoch_table(view),
        "step": step_card(view.step, view.step_lines),
        "classes": class_cards(view.classes),
        "remarks": remarks(view),
        "setup": setup_card(view),
    }


def _profile_button(view: RunView, *, asked: bool) -> gr.Button:
    return gr.Button(
        say("runs.profile_asked" if asked else "runs.profile"),
        visible=view.can_profile,
        interactive=not asked,
    )


def _stop_button(view: RunView) -> gr.Button:
    stopping = view.state == "stopping"
    return gr.Button(
        say("runs.stopping" if stopping else "runs.stop"),
        visible=view.stoppable or stopping,
        interactive=not stopping,
    )


def _read_offset(value: Any) -> tuple[str | None, int | None]:
    match value:
        case [str(key), int(offset)] if offset >= 0:
            return key, offset
    return None, None
