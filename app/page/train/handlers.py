"""What the Train page does; every handler takes the values by component and returns changes."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import gradio as gr
from gradio.components import Component

from app.audit import about
from app.guard import require_token
from app.login import is_viewer
from app.page.draw import items, with_code
from app.page.draw.train import environment_list, settings_list, strategy_cards
from app.page.frame import acts, careful, quiet, warn
from app.page.settings import PageSettings
from app.page.train.data import DataHandlers, DataStep
from app.page.train.form import Form
from app.page.train.plan import PlanStep, PlanView
from app.page.train.timing import TimingHandlers, TimingParts
from app.views.form import preview, start, start_after_baseline, start_baseline, strategies
from app.views.kept_form import kept_form
from app.views.prefill import Prefilled, prefilled
from ringside.errors import RingsideError
from ringside.rundir import RunDir

Changes = dict[Component, Any]
Starter = Callable[..., RunDir]


@dataclass(frozen=True)
class Panels:
    """Everything that is shown and not filled in, and the buttons."""

    data: DataStep
    step: PlanStep
    timing: TimingParts
    preview_box: gr.Column
    terminal: gr.Code
    command: gr.Code
    preset_file: gr.Code
    accelerate_file: gr.Code
    settings: gr.HTML
    environment: gr.HTML
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
        self.plan = PlanView(form, panels.step, settings)
        self.timing = TimingHandlers(panels.timing, form, panels.token, settings)

    @quiet
    def open(self, request: gr.Request) -> Changes:
        """A fresh page: the library as it is now, the data, the plan, and a new request id.

        An address may fill the form, as the doctor's Apply does.
        """
        given, notice = self._given(request)
        values = self.form.defaults() | given
        settings = self.settings
        choices = strategies(settings.hardware, root=settings.runs_root)
        cards = strategy_cards(choices, values["preset"])
        changes: Changes = {
            self.form.request_id: _new_request_id(),
            self.panels.notice: notice,
            **self.data.changes(values, ""),
            **self.plan.changes(values, empty=True),
            **self.timing.changes(),
            **self.form.filled(given),
        }
        estimates = self.plan.estimates.of(values)
        preset = gr.HTML(value=values["preset"], cards=cards, estimates=estimates)
        # What an address sets is not to be overlooked.
        usual = self.form.defaults()
        if any(name in given and given[name] != usual[name] for name in self.form.advanced()):
            changes[self.panels.advanced] = gr.Accordion(open=True)
        return {**changes, self.form.preset: preset}

    def _given(self, request: gr.Request) -> tuple[dict[str, Any], str]:
        """What the address fills in; and what it could not, or why it fills in nothing."""
        try:
            query = request.query_params.multi_items()
            found = prefilled(query, self.settings.runs_root, self.settings.hardware)
        except RingsideError as error:
            return {}, f'<p class="rs-bad" role="alert">{with_code(str(error))}</p>'
        return found.values | self._kept(request, query), _lost(found)

    def _kept(self, request: gr.Request, query: list[tuple[str, str]]) -> dict[str, Any]:
        """What was filled in before the page was loaded again; not for viewers, who may not look
        into folders.
        """
        names = self.form.components().keys() - {"request_id"}
        user = getattr(request, "username", None)
        found = {} if is_viewer(user) else kept_form(query, names, self.form.left_open())
        return {name: value for name, value in found.items() if self.form.fits(name, value)}

    @quiet
    def settle(self, data: Changes, request: gr.Request) -> Changes:
        """The plan of a form that an address filled, once the browser has all of its values.

        The browser announces each value as it arrives, while empty numbers are still 0 (6.31).
        """
        given, _ = self._given(request)
        return self.plan.changes(self.form.values(data)) if given else {}

    @quiet
    def show_plan(self, data: Changes) -> Changes:
        """The plan in words, the defaults as placeholders, the state of the baseline.

        While a page loads, Gradio 6.31 announces changes in which empty numbers read 0; Start,
        which comes later, refuses a 0 that somebody typed.
        """
        values = self.form.values(data)
        empty = {name: None for name in self.form.left_open() if values[name] == 0}
        return self.plan.changes(values | empty)

    @quiet
    def poll_gpus(self) -> Any:
        """The GPUs with who uses them now."""
        return self.plan.gpu_field()

    @careful
    def show_preview(self, data: Changes) -> Changes:
        """The preset's own file; Accelerate's file, command and settings as Start will use them."""
        settings, panels = self.settings, self.panels
        found = preview(self.form.values(data), settings.hardware, settings.runs_root, self.reports)
        return {
            panels.preview_box: gr.Column(visible=True),
            panels.terminal: found.terminal,
            panels.command: found.command,
            panels.preset_file: found.preset_yaml,
            panels.accelerate_file: found.accelerate_yaml,
            panels.settings: settings_list(found),
            panels.environment: environment_list(found),
        }

    @acts("start")
    def start(self, data: Changes) -> Changes:
        """Start the run and go to its page; pressed twice it is one run, refused it is none."""
        return self._start(start, data)

    @acts("start the baseline")
    def start_baseline(self, data: Changes) -> Changes:
        """Start the baseline of what the form asks for."""
        return self._start(start_baseline, data)

    @acts("start the baseline and queue the run")
    def start_after_baseline(self, data: Changes) -> Changes:
        """Start the baseline, and let the form's run wait behind it."""
        return self._start(start_after_baseline, data)

    def _start(self, starter: Starter, data: Changes) -> Changes:
        require_token(data[self.panels.token], self.settings.token)
        try:
            settings = self.settings
            values = self.form.values(data)
            run = starter(
                values, settings.hardware, settings.runs_root, self.reports, settings.gpus.states()
            )
            about(run.id)
        except RingsideError as error:
            warn(error)
            # What was refused may have left a run behind, which the same id would find again.
            return {self.panels.go: "", self.form.request_id: _new_request_id()}
        return {self.panels.go: run.id}


def _lost(found: Prefilled) -> str:
    return items(found.lost, "rs-list rs-soft")


def _new_request_id() -> str:
    return uuid.uuid4().hex
