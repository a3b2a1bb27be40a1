"""Doctor: what holds a run back, how sure that is, what to try; and the check of this machine."""

from __future__ import annotations

from typing import Any

import gradio as gr

from app.page.doctor.handlers import Handlers, Parts
from app.page.draw import soft, title
from app.page.frame import PRIVATE, QUEUED, QUICK, block, draw_frame, hidden
from app.page.settings import PageSettings
from app.page.train.form import field
from ringside.words import say

POLL_S = 1.0
GO_TO_RUN = "(run) => { window.location.href = 'doctor?run=' + encodeURIComponent(run || ''); }"


def draw_doctor(page: gr.Blocks, settings: PageSettings) -> None:
    """Lay the page out and connect it; called inside the page's context."""
    token = draw_frame(settings, "doctor")
    with gr.Row(elem_id="doctor-head", elem_classes="rs-row"):
        block("lead", title(say("page.doctor"), say("consult.lead")), scale=1)
        choice = field(
            gr.Dropdown, "doctor_run", choices=[], value=None, filterable=False, scale=0,
            min_width=320,
        )  # fmt: skip
    shown: dict[str, Any] = {"notice": block("notice"), "note": block("consult-note")}
    shown["verdict"] = block("verdict", elem_classes="rs-card rs-maybe rs-verdict-card")
    shown["charts"] = block("charts")
    shown["points"] = block("points", elem_classes="rs-card rs-maybe")
    shown["others"] = block("others", elem_classes="rs-card rs-maybe")
    shown["missing"] = block("missing", elem_classes="rs-card rs-maybe")
    shown |= _draw_traces() | _draw_machine()
    parts = Parts(
        token=token, run=hidden("run-id"), seen=hidden("seen"), choice=choice, **shown
    )  # fmt: skip
    _connect(page, parts, settings)


def _draw_traces() -> dict[str, Any]:
    with gr.Column(elem_classes="rs-card", elem_id="traces-card", visible=False) as box:
        traces = block("traces")
        take = gr.Button(say("consult.take_traces"), elem_id="take-traces", size="md", scale=0)
        files = gr.File(
            label=say("consult.traces"), elem_id="trace-files", file_count="multiple",
            interactive=False, visible=False,
        )  # fmt: skip
    return {"traces_box": box, "traces": traces, "take": take, "files": files}


def _draw_machine() -> dict[str, Any]:
    with gr.Column(elem_classes="rs-card", elem_id="machine-card"):
        machine = block("machine")
        with gr.Row(elem_classes="rs-row rs-buttons"):
            check = _button("consult.check_machine", "check-machine", 180)
            measure = _button("consult.measure", "measure-run", 390)
            stop = _button("consult.stop_measuring", "stop-measuring", 150, visible=False)
        with gr.Column(visible=False, elem_id="confirm") as confirm:
            question = block("measure-question", soft(""))
            with gr.Row(elem_classes="rs-row rs-buttons"):
                yes = _button("consult.measure_now", "measure-now", 150, variant="primary")
                no = _button("consult.not_now", "not-now", 110)
        progress = block("measuring")
    return {
        "machine": machine, "check": check, "measure": measure, "stop": stop, "confirm": confirm,
        "question": question, "yes": yes, "no": no, "progress": progress,
    }  # fmt: skip


def _button(key: str, elem_id: str, width: int, **details: Any) -> gr.Button:
    return gr.Button(
        say(key), elem_id=elem_id, size="md", scale=0, min_width=width, **details
    )  # fmt: skip


def _connect(page: gr.Blocks, parts: Parts, settings: PageSettings) -> None:
    handlers = Handlers(parts, settings)
    polled = parts.polled()
    page.load(
        handlers.open, None, [parts.run, parts.choice, *polled], api_name="open_doctor", **QUICK
    )
    gr.Timer(POLL_S).tick(
        handlers.poll, {parts.run, parts.seen}, polled, api_name="poll_doctor", **QUICK
    )
    parts.choice.input(None, parts.choice, None, js=GO_TO_RUN, api_name="doctor_of", **PRIVATE)
    who = {parts.run, parts.token, parts.seen}
    asked = [parts.confirm, parts.question]
    for button, handler, outputs, name in (
        (parts.check, handlers.check, polled, "check_machine"),
        (parts.measure, handlers.ask, asked, "ask_to_measure"),
        (parts.yes, handlers.measure, [*polled, *asked], "measure_run"),
        (parts.stop, handlers.stop, polled, "stop_measuring"),
        (parts.take, handlers.take, [parts.files], "take_traces"),
    ):
        button.click(handler, who, outputs, api_name=name, **QUEUED)
    parts.no.click(handlers.cancel, None, asked, api_name="not_now", **QUEUED)
