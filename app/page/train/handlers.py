"""What the Train page does; every handler takes the values by component and returns changes."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from html import escape
from pathlib import Path
from typing import Any

import gradio as gr
from gradio.components import Component

from app.audit import about
from app.guard import require_token
from app.page.draw.train import (
    baseline_panel,
    plan_panel,
    settings_list,
    strategy_about,
    strategy_cards,
)
from app.page.frame import acts, careful, quiet, warn
from app.page.settings import PageSettings
from app.page.train.data import DataHandlers, DataStep
from app.page.train.form import Form
from app.views.estimates import CardEstimates
from app.views.form import (
    Plan,
    Reports,
    find_card,
    plan,
    preview,
    start,
    start_baseline,
    strategies,
)
from app.views.prefill import prefilled
from ringside.errors import RingsideError
from ringside.hardware import Hardware
from ringside.run import running_beside
from ringside.rundir import RunDir
from ringside.sentences import beside_note
from ringside.spec import RunSpec

Changes = dict[Component, Any]
Starter = Callable[[Mapping[str, Any], Hardware, Path, Reports], RunDir]


@dataclass(frozen=True)
class Panels:
    """Everything that is shown and not filled in, and the buttons."""

    data: DataStep
    about: gr.HTML
    plan: gr.HTML
    start: gr.Button
    preview: gr.Button
    baseline_box: gr.Column
    baseline: gr.HTML
    baseline_start: gr.Button
    preview_box: gr.Column
    command: gr.Code
    preset_file: gr.Code
    accelerate_file: gr.Code
    settings: gr.HTML
    advanced: gr.Accordion
    notice: gr.HTML
    token: gr.Textbox
    go: gr.Textbox


class Handlers:
    """What the page does; every method takes the values by component and returns changes."""

    def __init__(self, form: Form, panels: Panels, settings: PageSettings) -> None:
        self.form = form
        self.panels = panels
        self.settings = settings
        self.data = DataHandlers(form, panels.data, settings)
        self.reports = settings.checks.report
        self.estimates = CardEstimates(settings.hardware, settings.runs_root)

    @quiet
    def open(self, request: gr.Request) -> Changes:
        """A fresh page: the library as it is now, the data, the plan, and a new request id.

        An address may fill the form, as the doctor's Apply does.
        """
        given, fault = self._given(request)
        values = self.form.defaults() | given
        cards = strategy_cards(strategies(self.settings.hardware), values["preset"])
        changes: Changes = {
            self.form.request_id: _new_request_id(),
            self.panels.notice: fault,
            **self.data.changes(values, ""),
            **self._plan_changes(values, empty=True),
            **self.form.filled(given),
        }
        estimates = self.estimates.of(values)
        preset = gr.HTML(value=values["preset"], cards=cards, estimates=estimates)
        # What an address sets is not to be overlooked.
        if given.get("overrides"):
            changes[self.panels.advanced] = gr.Accordion(open=True)
        return {**changes, self.form.preset: preset}

    def _given(self, request: gr.Request) -> tuple[dict[str, Any], str]:
        """What the address fills in, or why it fills in nothing."""
        try:
            query = request.query_params.multi_items()
            return prefilled(query, self.settings.runs_root), ""
        except RingsideError as error:
            return {}, f'<p class="rs-bad" role="alert">{escape(str(error))}</p>'

    @quiet
    def settle(self, data: Changes, request: gr.Request) -> Changes:
        """The plan of a form that an address filled, once the browser has all of its values.

        The browser announces each value as it arrives, while empty numbers are still 0 (6.31).
        """
        given, _ = self._given(request)
        return self._plan_changes(self.form.values(data)) if given else {}

    @quiet
    def show_plan(self, data: Changes) -> Changes:
        """The plan in words, the defaults as placeholders, the state of the baseline.

        While a page loads, Gradio 6.31 announces changes in which empty numbers read 0; Start,
        which comes later, refuses a 0 that somebody typed.
        """
        values = self.form.values(data)
        empty = {name: None for name in self.form.left_open() if values[name] == 0}
        return self._plan_changes(values | empty)

    @careful
    def show_preview(self, data: Changes) -> Changes:
        """The preset's own file; Accelerate's file, command and settings as Start will use them."""
        settings, panels = self.settings, self.panels
        found = preview(self.form.values(data), settings.hardware, settings.runs_root, self.reports)
        return {
            panels.preview_box: gr.Column(visible=True),
            panels.command: found.command,
            panels.preset_file: found.preset_yaml,
            panels.accelerate_file: found.accelerate_yaml,
            panels.settings: settings_list(found),
        }

    @acts("start")
    def start(self, data: Changes) -> Changes:
        """Start the run and go to its page; pressed twice it is one run, refused it is none."""
        return self._start(start, data)

    @acts("start the baseline")
    def start_baseline(self, data: Changes) -> Changes:
        """Start the baseline of what the form asks for."""
        return self._start(start_baseline, data)

    def _start(self, starter: Starter, data: Changes) -> Changes:
        require_token(data[self.panels.token], self.settings.token)
        try:
            settings = self.settings
            values = self.form.values(data)
            run = starter(values, settings.hardware, settings.runs_root, self.reports)
            about(run.id)
        except RingsideError as error:
            warn(error)
            # What was refused may have left a run behind, which the same id would find again.
            return {self.panels.go: "", self.form.request_id: _new_request_id()}
        return {self.panels.go: run.id}

    def _plan_changes(self, values: Mapping[str, Any], *, empty: bool = False) -> Changes:
        found, panels = self._plan(values), self.panels
        can_start = found.spec is not None
        card = find_card(values["preset"], self.settings.hardware)
        estimates: Changes = {}
        if not empty:
            words = self.estimates.of(values)
            estimates = {self.form.preset: gr.HTML(estimates=words)} if words else {}
        return {
            **estimates,
            panels.about: strategy_about(card),
            panels.plan: plan_panel(found),
            panels.start: gr.Button(interactive=can_start),
            panels.preview: gr.Button(interactive=can_start),
            **self._baseline_changes(found),
            **(self._placeholders(found.spec, empty) if found.spec else {}),
        }

    def _plan(self, values: Mapping[str, Any]) -> Plan:
        """The plan, with a note when it would run beside others on the same devices."""
        hardware = self.settings.hardware
        found = plan(values, hardware, self.reports)
        if found.spec is None:
            return found
        names = running_beside(self.settings.desk.root, found.spec, hardware.num_cores)
        notes = (*found.notes, beside_note(names)) if names else found.notes
        return replace(found, notes=notes)

    def _baseline_changes(self, found: Plan) -> Changes:
        panels = self.panels
        if found.spec is None:
            return {panels.baseline_box: gr.Column(visible=False)}
        state = self.settings.desk.baseline_state(found.spec)
        return {
            panels.baseline_box: gr.Column(visible=True),
            panels.baseline: baseline_panel(state),
            panels.baseline_start: gr.Button(visible=state.kind == "none"),
        }

    def _placeholders(self, spec: RunSpec, empty: bool) -> Changes:
        """A field that is empty shows the value that it stands for; `empty` makes it so."""
        asked = spec.global_batch
        if not spec.keeps_global_batch:
            asked //= spec.training.accumulation_steps
        form = self.form
        shown: Changes = {
            form.batch: asked,
            form.processes: spec.num_devices,
            form.image_size: spec.data.image_size,
        }
        if empty:
            shown |= {form.seed: spec.seed, form.learning_rate: spec.training.learning_rate}
        content = {"value": None} if empty else {}
        return {number: gr.Number(placeholder=str(v), **content) for number, v in shown.items()}


def _new_request_id() -> str:
    return uuid.uuid4().hex
