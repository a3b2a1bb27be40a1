"""Train: three choices and one button."""

from __future__ import annotations

from typing import Any

import gradio as gr

from app.page.draw import heading, title
from app.page.frame import (
    PRIVATE,
    QUEUED,
    QUICK,
    block,
    draw_header,
    draw_token,
    hidden,
    switches,
)
from app.page.languages import reload_with
from app.page.settings import PageSettings
from app.page.train.data import DataHandlers, DataStep
from app.page.train.form import Form, draw_before, draw_data, draw_run, draw_strategies
from app.page.train.handlers import Handlers, Panels
from app.page.train.plan import PlanStep
from app.page.train.saving import SavingHandlers, draw_saving
from app.page.train.timing import draw_timing
from app.views.kept_form import KEY
from ringside.words import say

POLL_S = 0.5
GPU_POLL_S = 5.0
GO_TO_RUN = "(run) => { if (run) window.location.href = 'runs?run=' + encodeURIComponent(run); }"


def draw_train(page: gr.Blocks, settings: PageSettings) -> None:
    """Lay the page out and connect it; called inside the page's context."""
    shown_header = draw_header(settings, "train", js=None)
    token = draw_token(settings, "train")
    block("lead", title(say("page.train"), say("train.lead")))
    notice = block("notice")
    with gr.Row(elem_classes="rs-columns rs-top"):
        with gr.Column(scale=27, min_width=320, elem_classes="rs-stack"):
            data_fields, data_shown = draw_data()
            with gr.Column(elem_classes="rs-card", elem_id="strategy-card"):
                preset, about = draw_strategies(settings)
                timing = draw_timing()
        with gr.Column(scale=20, min_width=320, elem_classes="rs-stack"):
            with gr.Column(elem_classes="rs-card", elem_id="run-card"):
                run_fields, advanced = draw_run(settings)
                plan = block("plan")
                run_fields |= draw_before()
                buttons = _draw_buttons()
                saving = draw_saving(buttons.pop("keep"))
            baseline = _draw_baseline()
            difference = block("difference", elem_classes="rs-card rs-maybe")
    shown = _draw_preview() | {"advanced": advanced}
    form = Form(preset=preset, request_id=hidden("request-id"), **data_fields, **run_fields)
    step = PlanStep(
        about=about, plan=plan, difference=difference, cost=timing.cost, **buttons, **baseline,
        gpu_timer=gr.Timer(GPU_POLL_S, active=bool(settings.hardware.gpus)),
    )  # fmt: skip
    names = ("check_key", "check_seen", "checked")
    kept = {name: hidden(name.replace("_", "-")) for name in names}
    data = DataStep(timer=gr.Timer(POLL_S, active=False), token=token, **data_shown, **kept)
    panels = Panels(
        data=data, step=step, timing=timing, token=token, go=hidden("go"), notice=notice, **shown
    )  # fmt: skip
    _connect(page, form, panels, settings)
    SavingHandlers(saving, form, token, settings).connect()
    # The page begins anew in another language, with all that was filled in.
    filled = form.components()
    switches(shown_header, "train", reload_with(KEY, list(filled)), list(filled.values()))


def _draw_buttons() -> dict[str, Any]:
    shown: dict[str, Any] = {}
    with gr.Row(elem_classes="rs-row rs-buttons"):
        shown["start"] = gr.Button(
            say("train.start"), variant="primary", elem_id="start", scale=0, min_width=120
        )
        shown["preview"] = gr.Button(
            say("train.preview"), variant="secondary", elem_id="preview", scale=0, min_width=230
        )
        shown["keep"] = gr.Button(
            say("library.keep_form"), variant="secondary", elem_id="keep-form", scale=0,
            min_width=150,
        )  # fmt: skip
    return shown


def _draw_baseline() -> dict[str, Any]:
    with gr.Column(elem_classes="rs-card", elem_id="baseline-card", visible=False) as box:
        shown = block("baseline")
        with gr.Row(elem_classes="rs-row rs-buttons"):
            button = gr.Button(
                say("train.baseline_start"), elem_id="measure-baseline", size="md", scale=0,
                min_width=140,
            )  # fmt: skip
            then = gr.Button(
                say("train.baseline_then"), elem_id="measure-baseline-then", size="md", scale=0,
                min_width=230,
            )  # fmt: skip
    return {
        "baseline_box": box, "baseline": shown, "baseline_start": button, "baseline_then": then,
    }  # fmt: skip


def _draw_preview() -> dict[str, Any]:
    with gr.Column(elem_classes="rs-card", elem_id="preview-card", visible=False) as box:
        block("preview-heading", heading(say("train.preview_title")))
        terminal, command = (
            _code(f"train.preview_{name}", "shell", f"preview-{name}", lines=1, wrap_lines=True)
            for name in ("terminal", "command")
        )
        with gr.Row(elem_classes="rs-row"):
            preset = _code("train.preview_preset", "yaml", "preview-preset", max_lines=24)
            accelerate = _code(
                "train.preview_accelerate", "yaml", "preview-accelerate", max_lines=24
            )
        settings, environment = block("preview-settings"), block("preview-environment")
    return {
        "preview_box": box,
        "terminal": terminal,
        "command": command,
        "preset_file": preset,
        "accelerate_file": accelerate,
        "settings": settings,
        "environment": environment,
    }


def _code(label: str, language: Any, elem_id: str, **details: Any) -> gr.Code:
    return gr.Code(
        label=say(label),
        language=language,
        elem_id=elem_id,
        interactive=False,
        buttons=["copy"],
        show_line_numbers=False,
        min_width=280,
        **details,
    )


def _connect(page: gr.Blocks, form: Form, panels: Panels, settings: PageSettings) -> None:
    handlers = Handlers(form, panels, settings)
    everything = set(form.components().values())
    plan_shown = panels.step.shown(form)
    data_shown = panels.data.shown(form)
    fields = form.components().values()
    also = [panels.advanced, panels.notice, *panels.timing.polled()]
    opened = list(dict.fromkeys([*fields, *also, *data_shown, *plan_shown]))
    filled = page.load(handlers.open, None, opened, api_name="open_train", **QUICK)
    filled.then(handlers.settle, everything, plan_shown, api_name="settle", **QUICK)
    # The plan of other data is made when the data are known, not at every letter of their name.
    later = ("request_id", "source", "folder", "separator")
    others = [part.change for name, part in form.components().items() if name not in later]
    gr.on(
        [*others, panels.data.checked.change, panels.timing.measured.change],
        handlers.show_plan, everything, plan_shown,
        trigger_mode="always_last", api_name="plan", **QUICK,
    )  # fmt: skip
    named = gr.on(
        [form.source.change, form.folder.submit, form.folder.blur, form.separator.input,
         form.bad_files.input],
        handlers.data.show, everything | {panels.data.check_key}, data_shown,
        trigger_mode="always_last", api_name="data", **QUICK,
    )  # fmt: skip
    named.then(handlers.show_plan, everything, plan_shown, api_name="data_plan", **QUICK)
    panels.step.gpu_timer.tick(handlers.poll_gpus, None, form.gpus, api_name="poll_gpus", **QUICK)
    _connect_check(handlers.data, everything)
    handlers.timing.connect()
    _connect_buttons(handlers, everything | {panels.token})


def _connect_check(handlers: DataHandlers, everything: set[Any]) -> None:
    """The check works in the background; a timer asks for it while it does."""
    form, step = handlers.form, handlers.step
    shown = step.shown(form)
    which = {step.check_key, step.token}
    for button, handler, inputs, name in (
        (step.check_start, handlers.start, everything | which, "check_data"),
        (step.check_stop, handlers.stop, which, "stop_check"),
    ):
        button.click(handler, inputs, shown, api_name=name, **QUEUED)
    polled = {step.check_key, step.check_seen}
    step.timer.tick(handlers.poll, polled, step.followed(form), api_name="poll_check", **QUICK)


def _connect_buttons(handlers: Handlers, inputs: set[Any]) -> None:
    form, panels = handlers.form, handlers.panels
    panels.step.preview.click(
        handlers.show_preview, inputs,
        [panels.preview_box, panels.terminal, panels.command, panels.preset_file,
         panels.accelerate_file, panels.settings, panels.environment],
        api_name="preview", **QUEUED,
    )  # fmt: skip
    for button, handler, name in (
        (panels.step.start, handlers.start, "start"),
        (panels.step.baseline_start, handlers.start_baseline, "start_baseline"),
        (panels.step.baseline_then, handlers.start_after_baseline, "start_after_baseline"),
    ):
        started = button.click(
            handler, inputs, [panels.go, form.request_id], api_name=name, **QUEUED
        )
        started.success(None, panels.go, None, js=GO_TO_RUN, api_name=f"{name}_open", **PRIVATE)
