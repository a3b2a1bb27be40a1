"""The data step of the Train page: what is in the data, and the check of every picture."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import gradio as gr
from gradio.components import Component

from app.audit import about
from app.guard import require_token
from app.page.draw.check import check_details, check_panel
from app.page.draw.train import data_panel
from app.page.frame import acts, quiet
from app.page.settings import PageSettings
from app.page.train.form import Form
from app.views.checks import CheckState, check_key
from app.views.data import data_facts
from app.views.fields import LEAVE_OUT, data_spec, is_own
from ringside.errors import RingsideError
from ringside.spec import DataSpec
from ringside.words import say

Changes = dict[Any, Any]


@dataclass(frozen=True)
class DataStep:
    """What the step shows. `check_key` names the data whose check is shown.

    `check_seen` is the digest of the state that the browser has, and `checked` changes when
    a check ends, so that the plan is made again.
    """

    data: gr.HTML
    data_fold: gr.Accordion
    check_start: gr.Button
    check_stop: gr.Button
    check: gr.HTML
    check_details: gr.HTML
    check_key: gr.Textbox
    check_seen: gr.Textbox
    checked: gr.Textbox
    timer: gr.Timer
    token: gr.Textbox

    def followed(self, form: Form) -> list[Any]:
        """What a check under way changes."""
        return [
            self.check_start, self.check_stop, self.check, self.check_details, self.check_seen,
            self.checked, self.timer, form.bad_files,
        ]  # fmt: skip

    def shown(self, form: Form) -> list[Any]:
        """What other data change."""
        return [self.data, self.data_fold, self.check_key, form.folder, *self.followed(form)]


class DataHandlers:
    """What the step does; handlers take the values by component and return changes."""

    def __init__(self, form: Form, step: DataStep, settings: PageSettings) -> None:
        self.form = form
        self.step = step
        self.checks = settings.checks
        self.token = settings.token

    @quiet
    def show(self, data: Mapping[Component, Any]) -> Changes:
        """What is in the chosen data, or the sentence that says why it cannot be used."""
        return self.changes(self.form.values(data), data[self.step.check_key])

    @acts("check data")
    def start(self, data: Mapping[Component, Any]) -> Changes:
        """Check the chosen data in the background."""
        require_token(data[self.step.token], self.token)
        spec = data_spec(self.form.values(data))
        about(spec.label)
        self.checks.start(spec)
        key = check_key(spec)
        return {self.step.check_key: key, **self._followed(self.checks.state(key), value="stop")}

    @acts("stop a check")
    def stop(self, data: Mapping[Component, Any]) -> Changes:
        """End the check; nothing of it is kept."""
        require_token(data[self.step.token], self.token)
        key = data[self.step.check_key] or ""
        about(key)
        self.checks.stop(key)
        return self._followed(self.checks.state(key))

    @quiet
    def poll(self, data: Mapping[Component, Any]) -> Changes:
        """How far the check is, when the browser does not know it yet."""
        state = self.checks.state(data[self.step.check_key] or "")
        return {} if data[self.step.check_seen] == _digest(state) else self._followed(state)

    def changes(self, values: Mapping[str, Any], old_key: str | None) -> Changes:
        """Everything that depends on which data are chosen."""
        step, form = self.step, self.form
        key, html = self._look(values, old_key)
        # What was decided about other data's bad files says nothing about these.
        reset = {"value": "stop"} if key != old_key else {}
        return {
            step.data: html,
            step.data_fold: gr.Accordion(visible=is_own(values)),
            step.check_key: key,
            form.folder: gr.Textbox(visible=values["source"] == "folder"),
            **self._followed(self.checks.state(key), **reset),
        }

    def _look(self, values: Mapping[str, Any], old_key: str | None) -> tuple[str, str]:
        """The key of the data's check, empty for data that there are not, and the facts."""
        key = ""
        try:
            spec = data_spec(values)
            key = check_key(spec)
            leave_out = values["bad_files"] == LEAVE_OUT and key == old_key
            return key, data_panel(data_facts(spec, self._skip(spec) if leave_out else ()))
        except RingsideError as error:
            # An empty path is no mistake yet.
            is_empty = values["source"] == "folder" and not values["folder"]
            return key, data_panel(None, "" if is_empty else str(error))

    def _skip(self, spec: DataSpec) -> frozenset[str]:
        report = self.checks.report(spec)
        return report.skip if report else frozenset()

    def _followed(self, state: CheckState, **bad_files: str) -> Changes:
        step = self.step
        has_bad = state.report is not None and bool(state.report.skip)
        is_known = state.kind != "none"
        return {
            step.check_start: gr.Button(
                say("check.again" if is_known else "check.start"), interactive=not state.under_way
            ),
            step.check_stop: gr.Button(
                visible=state.under_way, interactive=state.kind == "running"
            ),
            step.check: check_panel(state),
            step.check_details: check_details(state),
            step.check_seen: _digest(state),
            step.checked: str(state.finished_t or ""),
            step.timer: gr.Timer(active=state.under_way),
            self.form.bad_files: gr.Radio(visible=has_bad, **bad_files),
        }


def _digest(state: CheckState) -> str:
    mark = (state.kind, state.done, state.total, state.finished_t)
    return f"{zlib.crc32(repr(mark).encode()):08x}"
