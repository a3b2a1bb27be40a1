"""What the Doctor's page does: it polls, and gets only what it does not hold yet."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gradio as gr
from gradio.components import Component

from app.audit import about
from app.guard import require_token
from app.page.doctor.files import taken
from app.page.draw import soft
from app.page.draw.doctor import (
    chart_grid,
    empty_doctor,
    machine_card,
    measuring_panel,
    missing_list,
    other_findings,
    progress_note,
    six_points,
    traces_card,
    verdict_card,
)
from app.page.frame import acts, careful, changed, quiet, read_seen
from app.page.settings import PageSettings
from app.views.consultations import ConsultState
from app.views.desk import ListRow
from ringside.errors import RingsideError, RunDirError
from ringside.rundir import RunDir
from ringside.spec import RunSpec
from ringside.words import say

Changes = dict[Component, Any]


@dataclass(frozen=True)
class Parts:
    """The components of the page. What `seen` holds comes back with every poll."""

    token: gr.Textbox
    run: gr.Textbox
    seen: gr.Textbox
    choice: gr.Dropdown
    notice: gr.HTML
    note: gr.HTML
    verdict: gr.HTML
    charts: gr.HTML
    points: gr.HTML
    others: gr.HTML
    missing: gr.HTML
    traces_box: gr.Column
    traces: gr.HTML
    take: gr.Button
    files: gr.File
    machine: gr.HTML
    check: gr.Button
    measure: gr.Button
    stop: gr.Button
    confirm: gr.Column
    question: gr.HTML
    yes: gr.Button
    no: gr.Button
    progress: gr.HTML

    def polled(self) -> list[Any]:
        """What a poll may change."""
        return [
            self.seen, self.notice, self.note, self.verdict, self.charts, self.points,
            self.others, self.missing, self.traces_box, self.traces, self.take, self.machine,
            self.check,
            self.measure, self.stop, self.progress,
        ]  # fmt: skip


class Handlers:
    """What the page does. Everything polled goes through `_changes`."""

    def __init__(self, parts: Parts, settings: PageSettings) -> None:
        self.parts = parts
        self.settings = settings
        self.desk = settings.desk

    @quiet
    def open(self, request: gr.Request) -> Changes:
        """The run of `?run=`, else the newest finished one, else the newest."""
        rows, notice, run_id = self.desk.rows(), "", ""
        asked = request.query_params.get("run")
        try:
            if asked:
                found = self.desk.find(asked)
                run_id = found.id if found else ""
            elif asked is None:
                run_id = _first(rows)
        except RingsideError as error:
            notice = soft(str(error))
        choices = [(_choice(row), row.id) for row in rows]
        choice = gr.Dropdown(choices=[*choices, (say("consult.machine_only"), "")], value=run_id)
        return {
            self.parts.run: run_id,
            self.parts.choice: choice,
            **self._changes(run_id, {}),
            self.parts.notice: notice,
        }

    @quiet
    def poll(self, data: Changes) -> Changes:
        """What changed since the browser last heard of it."""
        return self._changes(data[self.parts.run] or "", read_seen(data[self.parts.seen]))

    @acts("check the machine")
    def check(self, data: Changes) -> Changes:
        """Look at this machine and time its collectives."""
        self._require_token(data)
        self.settings.measuring.start("machine", self.settings.hardware)
        return self._changes(data[self.parts.run] or "", read_seen(data[self.parts.seen]))

    @careful
    def ask(self, data: Changes) -> Changes:
        """Say what the experiment costs before it begins."""
        run, _ = self._measurable(data)
        return {
            self.parts.confirm: gr.Column(visible=True),
            self.parts.question: soft(say("consult.sure_to_measure", run=run.name)),
        }

    @acts("measure a run")
    def measure(self, data: Changes) -> Changes:
        """Begin the controlled experiment."""
        about(data[self.parts.run])
        self._require_token(data)
        run, _ = self._measurable(data)
        self.settings.measuring.start("experiment", self.settings.hardware, run.id)
        changes = self._changes(run.id, read_seen(data[self.parts.seen]))
        return {**changes, self.parts.confirm: gr.Column(visible=False)}

    @careful
    def cancel(self) -> Changes:
        """Close the question."""
        return {self.parts.confirm: gr.Column(visible=False)}

    @acts("stop measuring")
    def stop(self, data: Changes) -> Changes:
        """End the measurement that is under way."""
        self._require_token(data)
        self.settings.measuring.stop()
        return self._changes(data[self.parts.run] or "", read_seen(data[self.parts.seen]))

    @acts("take traces")
    def take(self, data: Changes) -> Changes:
        """Put the traces where the server may hand them out."""
        about(data[self.parts.run])
        self._require_token(data)
        cache = Path(self.parts.files.GRADIO_CACHE)
        files = taken(self._run(data), cache)
        return {self.parts.files: gr.File(value=files, visible=True)}

    def _require_token(self, data: Changes) -> None:
        require_token(data[self.parts.token], self.settings.token)

    def _run(self, data: Changes) -> RunDir:
        run = self.desk.exact(data[self.parts.run])
        if run is None:
            raise RunDirError(say("consult.no_run", run=data[self.parts.run] or ""))
        return run

    def _measurable(self, data: Changes) -> tuple[RunDir, RunSpec]:
        """The run, if an experiment of it makes sense now; else a RingsideError says why not."""
        run = self._run(data)
        spec = run.read(run.spec, RunSpec)
        if spec is None:
            raise RunDirError(say("consult.no_run", run=run.id))
        if spec.num_devices == 1:
            raise RingsideError(say("consult.one_device"))
        if not run.exit.exists():
            raise RingsideError(say("consult.needs_end", run=run.name))
        return run, spec

    def _changes(self, run_id: str, seen: dict[str, Any]) -> Changes:
        run = self.desk.exact(run_id) if run_id else None
        state = self.settings.consultations.state(run.id if run else None)
        measuring = self.settings.measuring.state
        values = _texts(state, run) | {"progress": measuring_panel(measuring)}
        busy = measuring.under_way
        several = run is not None and _num_devices(run) > 1
        has_traces = state.view is not None and bool(state.view.traces)
        buttons = {
            "traces_box": (bool(run), lambda: gr.Column(visible=bool(run))),
            "take": (has_traces, lambda: gr.Button(visible=has_traces)),
            "check": (busy, lambda: gr.Button(interactive=not busy)),
            "measure": ((busy, several),
                        lambda: gr.Button(interactive=not busy, visible=several)),
            "stop": (measuring.kind, lambda: gr.Button(
                visible=busy, interactive=measuring.kind == "running")),
        }  # fmt: skip
        states = {name: key for name, (key, _) in buttons.items()}
        new = changed({**values, **states}, seen)
        seen |= {name: digest for name, (_, digest) in new.items()}
        found = {
            getattr(self.parts, name): buttons[name][1]() if name in buttons else value
            for name, (value, _) in new.items()
        }
        return {**found, self.parts.seen: json.dumps(seen)}


def _texts(state: ConsultState, run: RunDir | None) -> dict[str, str]:
    """The HTML of every place; all is kept while the doctor looks again."""
    is_live = run is not None and not run.exit.exists()
    texts = {"note": progress_note(state, is_live=is_live)}
    view = state.view
    if run is None:
        texts |= {"verdict": empty_doctor(), "points": "", "traces": ""}
    if view is None:
        return texts | ({} if state.kind == "running" else {"machine": machine_card(None)})
    name = run.name if run else ""
    if run is not None or view.machine is not None:
        texts["verdict"] = verdict_card(view.verdict)
    return texts | {
        "charts": chart_grid(view, name),
        "points": six_points(view.points),
        "others": other_findings(view.others),
        "missing": missing_list(view),
        "traces": traces_card(view, name) if run else "",
        "machine": machine_card(view.machine),
    }


def _num_devices(run: RunDir) -> int:
    spec = run.read(run.spec, RunSpec)
    return spec.num_devices if spec else 0


def _first(rows: list[ListRow]) -> str:
    ended = (row.id for row in rows if row.state in ("completed", "stopped"))
    return next(ended, rows[0].id if rows else "")


def _choice(row: ListRow) -> str:
    return f"{row.name} · {row.preset} · {say(f'state.{row.state}')}"
