"""What the form would start, shown while it is filled in: plan, preflight, baseline."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import gradio as gr
from gradio.components import Component

from app.page.draw import soft
from app.page.draw.before import before_list, difference_table
from app.page.draw.train import baseline_panel, plan_panel, strategy_about
from app.page.settings import PageSettings
from app.page.train.form import Form, precision_choices
from app.views.before import look_before
from app.views.cards import timing_cost
from app.views.difference import difference_view
from app.views.estimates import CardEstimates
from app.views.fields import request_of
from app.views.form import Plan, find_card, own_precision, plan
from app.views.gpus import GpuWatch, gpu_choices
from ringside.launch.queue import holders
from ringside.spec import RunSpec
from ringside.words import say

Changes = dict[Component, Any]


@dataclass(frozen=True)
class PlanStep:
    """What is shown of it."""

    about: gr.HTML
    cost: gr.HTML
    plan: gr.HTML
    start: gr.Button
    preview: gr.Button
    baseline_box: gr.Column
    baseline: gr.HTML
    baseline_start: gr.Button
    baseline_then: gr.Button
    difference: gr.HTML
    gpu_timer: gr.Timer

    def shown(self, form: Form) -> list[Any]:
        """What other values change."""
        return [
            self.about, self.cost, self.plan, self.start, self.preview, self.baseline_box,
            self.baseline, self.baseline_start, self.baseline_then, self.difference, form.batch,
            form.processes, form.image_size, form.preset, form.precision, form.accepted,
            form.when_busy, form.gpus,
        ]  # fmt: skip


class PlanView:
    """Works out what the step shows; it knows the form and the machine."""

    def __init__(self, form: Form, step: PlanStep, settings: PageSettings) -> None:
        self.form, self.step, self.settings = form, step, settings
        self.gpus: GpuWatch = settings.gpus
        self.estimates = CardEstimates(
            settings.hardware, settings.runs_root, settings.checks.report
        )  # fmt: skip

    def changes(self, values: Mapping[str, Any], *, empty: bool = False) -> Changes:
        """Everything that depends on the form; `empty` for a fresh one."""
        settings, step, form = self.settings, self.step, self.form
        reports = settings.checks.report
        found = plan(values, settings.hardware, reports)
        before = look_before(
            values, settings.hardware, settings.runs_root, reports, self.gpus.states()
        )
        can_start = found.spec is not None and not before.found.errors
        precision = own_precision(values.get("preset"))
        return {
            **(self._estimates(values) if not empty else {}),
            step.about: strategy_about(find_card(values["preset"], settings.hardware)),
            step.cost: self._cost(values),
            step.plan: plan_panel(found),
            step.start: gr.Button(interactive=can_start),
            step.preview: gr.Button(interactive=found.spec is not None),
            step.difference: self._difference(found, values),
            form.precision: gr.Dropdown(choices=precision_choices(precision)),
            form.accepted: gr.HTML(list=before_list(before, found.sentence)),
            form.when_busy: self._when_busy(found.spec),
            form.gpus: self.gpu_field(),
            **self._baseline(found, can_start=can_start),
            **(self._placeholders(found.spec, empty) if found.spec else {}),
        }

    def gpu_field(self) -> Any:
        """The GPUs with who uses them now; nothing on a machine without."""
        settings = self.settings
        if not settings.hardware.gpus:
            return gr.skip()
        choices = gpu_choices(settings.hardware, settings.runs_root, self.gpus.states())
        return gr.CheckboxGroup(choices=choices)

    def _estimates(self, values: Mapping[str, Any]) -> Changes:
        # Empty ones too: what was measured at another batch has to go.
        return {self.form.preset: gr.HTML(estimates=self.estimates.of(values))}

    def _cost(self, values: Mapping[str, Any]) -> str:
        words = timing_cost(values, self.settings.hardware, self.settings.checks.report)
        return soft(words) if words else ""

    def _difference(self, found: Plan, values: Mapping[str, Any]) -> str:
        if found.spec is None:
            return ""
        settings = self.settings
        request = request_of(values)
        view = difference_view(found.spec, request, settings.hardware, settings.runs_root)
        return difference_table(view)

    def _when_busy(self, spec: RunSpec | None) -> Any:
        """The choice between waiting and starting beside, only while somebody holds the devices."""
        held = holders(self.settings.runs_root, spec) if spec else ()
        if not held:
            return gr.Radio(visible=False)
        names = ", ".join(_holder_words(one.name, one.gpu_ids) for one in held)
        return gr.Radio(visible=True, info=say("train.busy_info", names=names))

    def _baseline(self, found: Plan, *, can_start: bool) -> Changes:
        step = self.step
        if found.spec is None:
            return {step.baseline_box: gr.Column(visible=False)}
        state = self.settings.desk.baseline_state(found.spec)
        is_missing = state.kind == "none"
        return {
            step.baseline_box: gr.Column(visible=True),
            step.baseline: baseline_panel(state),
            step.baseline_start: gr.Button(visible=is_missing, interactive=can_start),
            step.baseline_then: gr.Button(visible=is_missing, interactive=can_start),
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
            shown |= {
                form.seed: spec.seed, form.learning_rate: spec.training.learning_rate,
                form.profile: 0,
            }  # fmt: skip
        content = {"value": None} if empty else {}
        return {number: gr.Number(placeholder=str(v), **content) for number, v in shown.items()}


def _holder_words(name: str, gpu_ids: tuple[int, ...]) -> str:
    if not gpu_ids:
        return name
    return say("train.busy_holder", name=name, ids=", ".join(map(str, gpu_ids)))
