"""Train: three choices and one button."""

from __future__ import annotations

from typing import Any

import gradio as gr

from app.page.draw import heading, title
from app.page.frame import PRIVATE, QUICK, block, draw_frame, hidden
from app.page.settings import PageSettings
from app.page.train.data import DataHandlers, DataStep
from app.page.train.form import Form, draw_data, draw_run, draw_strategies
from app.page.train.handlers import Handlers, Panels
from ringside.words import say

POLL_S = 0.5
GO_TO_RUN = "(run) => { if (run) window.location.href = 'runs?run=' + encodeURIComponent(run); }"


def draw_train(page: gr.Blocks, settings: PageSettings) -> None:
    """Lay the page out and connect it; called inside the page's context."""
    token = draw_frame(settings, "train")
    block("lead", title(say("page.train"), say("train.lead")))
    notice = block("notice")
    with gr.Row(elem_classes="rs-columns rs-top"):
        with gr.Column(scale=27, min_width=320, elem_classes="rs-stack"):
            data_fields, data_shown = draw_data()
            preset, about = draw_strategies(settings)
        with gr.Column(scale=20, min_width=320, elem_classes="rs-stack"):
            with gr.Column(elem_classes="rs-card", elem_id="run-card"):
                run_fields, advanced = draw_run()
                shown = _draw_plan() | {"advanced": advanced}
            shown |= _draw_baseline()
    shown |= _draw_preview()
    form = Form(preset=preset, request_id=hidden("request-id"), **data_fields, **run_fields)
    names = ("check_key", "check_seen", "checked")
    kept = {name: hidden(name.replace("_", "-")) for name in names}
    data = DataStep(timer=gr.Timer(POLL_S, active=False), token=token, **data_shown, **kept)
    panels = Panels(data=data, about=about, token=token, go=hidden("go"), notice=notice, **shown)
    _connect(page, form, panels, settings)


def _draw_plan() -> dict[str, Any]:
    shown: dict[str, Any] = {"plan": block("plan")}
    with gr.Row(elem_classes="rs-row rs-buttons"):
        shown["start"] = gr.Button(
            say("train.start"), variant="primary", elem_id="start", scale=0, min_width=120
        )
        shown["preview"] = gr.Button(
            say("train.preview"), variant="secondary", elem_id="preview", scale=0, min_width=230
        )
    return shown


def _draw_baseline() -> dict[str, Any]:
    with gr.Column(elem_classes="rs-card", elem_id="baseline-card", visible=False) as box:
        shown = block("baseline")
        button = gr.Button(
            say("train.baseline_start"), elem_id="measure-baseline", size="md", scale=0
        )
    return {"baseline_box": box, "baseline": shown, "baseline_start": button}


def _draw_preview() -> dict[str, Any]:
    with gr.Column(elem_classes="rs-card", elem_id="preview-card", visible=False) as box:
        block("preview-heading", heading(say("train.preview_title")))
        command = _code(
            "train.preview_command", "shell", "preview-command", lines=1, wrap_lines=True
        )
        with gr.Row(elem_classes="rs-row"):
            preset = _code("train.preview_preset", "yaml", "preview-preset", max_lines=24)
            accelerate = _code(
                "train.preview_accelerate", "yaml", "preview-accelerate", max_lines=24
            )
        settings = block("preview-settings")
    return {
        "preview_box": box,
        "command": command,
        "preset_file": preset,
        "accelerate_file": accelerate,
        "settings": settings,
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
    plan_shown = [
        panels.about, panels.plan, panels.start, panels.preview, panels.baseline_box,
        panels.baseline, panels.baseline_start, form.batch, form.processes, form.image_size,
        form.preset,
    ]  # fmt: skip
    data_shown = panels.data.shown(form)
    fields = form.components().values()
    opened = list(
        dict.fromkeys([*fields, panels.advanced, panels.notice, *data_shown, *plan_shown])
    )
    filled = page.load(handlers.open, None, opened, api_name="open_train", **QUICK)
    filled.then(handlers.settle, everything, plan_shown, api_name="settle", **QUICK)
    # The plan of other data is made when the data are known, not at every letter of their name.
    later = ("request_id", "source", "folder", "separator")
    others = [part.change for name, part in form.components().items() if name not in later]
    gr.on(
        [*others, panels.data.checked.change],
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
    _connect_check(handlers.data, everything)
    _connect_buttons(handlers, everything | {panels.token})


def _connect_check(handlers: DataHandlers, everything: set[Any]) -> None:
    """The check works in the background; a timer asks for it while it does."""
    form, step = handlers.form, handlers.step
    shown = step.shown(form)
    inputs = everything | {step.check_key, step.token}
    for button, handler, name in (
        (step.check_start, handlers.start, "check_data"),
        (step.check_stop, handlers.stop, "stop_check"),
    ):
        button.click(
            handler, inputs, shown,
            show_progress="hidden", concurrency_limit=None, api_name=name, **PRIVATE,
        )  # fmt: skip
    polled = {step.check_key, step.check_seen}
    step.timer.tick(handlers.poll, polled, step.followed(form), api_name="poll_check", **QUICK)


def _connect_buttons(handlers: Handlers, inputs: set[Any]) -> None:
    form, panels = handlers.form, handlers.panels
    panels.preview.click(
        handlers.show_preview, inputs,
        [panels.preview_box, panels.command, panels.preset_file, panels.accelerate_file,
         panels.settings],
        show_progress="hidden", concurrency_limit=None, api_name="preview", **PRIVATE,
    )  # fmt: skip
    for button, handler, name in (
        (panels.start, handlers.start, "start"),
        (panels.baseline_start, handlers.start_baseline, "start_baseline"),
    ):
        started = button.click(
            handler, inputs, [panels.go, form.request_id],
            show_progress="hidden", concurrency_limit=None, api_name=name, **PRIVATE,
        )  # fmt: skip
        started.success(None, panels.go, None, js=GO_TO_RUN, api_name=f"{name}_open", **PRIVATE)
