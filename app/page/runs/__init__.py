"""Runs: the list, and one run live. Everything comes from disk, so a reload is right again."""

from __future__ import annotations

from typing import Any

import gradio as gr

from app.page.draw import heading
from app.page.draw.classes import SORT_CLASSES
from app.page.frame import PRIVATE, QUICK, block, draw_frame, hidden
from app.page.runs.handlers import SERIES, Handlers, Parts, points_frame
from app.page.runs.listing import ListHandlers, draw_listing
from app.page.runs.shelf import ShelfHandlers, draw_shelf
from app.page.runs.trying import TryHandlers, draw_trying
from app.page.settings import PageSettings
from app.views.logs import CONSOLE
from ringside.words import say

POLL_S = 1.0
SERIES_COLOURS = {
    "curve.train_loss": "#2b8cc4",
    "curve.val_loss": "#d9691b",
    "curve.auc": "#12988b",
    "curve.f1": "#9a6bb3",
}

# Appends what is new and follows the end, unless somebody scrolled up to read.
SHOW_LOG = """
const view = element.querySelector('pre');
const LIMIT = 400000;
const show = () => {
  const chunk = props.value;
  if (!chunk || typeof chunk !== 'object') return;
  const follows = view.scrollHeight - view.scrollTop - view.clientHeight < 40;
  if (chunk.reset) view.textContent = chunk.text; else view.append(chunk.text);
  if (view.textContent.length > LIMIT) view.textContent = view.textContent.slice(-LIMIT / 2);
  if (follows || chunk.reset) view.scrollTop = view.scrollHeight;
};
watch('value', show);
show();
"""
LOG_TEMPLATE = (
    '<pre class="rs-log" tabindex="0" role="log" aria-label="${name}" data-empty="${empty}"></pre>'
)


def draw_runs(page: gr.Blocks, settings: PageSettings) -> None:
    """Lay the page out and connect it; called inside the page's context."""
    token = draw_frame(settings, "runs")
    notice = block("notice")
    with gr.Column(visible=False, elem_id="live", elem_classes="rs-stack") as live:
        shown = _draw_head()
        said = shown.pop("said")
        with gr.Row(elem_classes="rs-columns", equal_height=True):
            shown["epochs"] = _card("epochs", scale=27)
            shown["step"] = _card("step", scale=20)
        with gr.Row(elem_classes="rs-columns", equal_height=True):
            shown |= _draw_log()
            shown |= _draw_curves()
        trying = draw_trying()
        shown["classes"] = gr.HTML(
            "",
            elem_id="classes",
            elem_classes="rs-card rs-maybe",
            apply_default_css=False,
            js_on_load=SORT_CLASSES,
        )
        shown["remarks"] = block("remarks", elem_classes="rs-card rs-maybe")
        shown["setup"] = block("setup", elem_classes="rs-card rs-maybe")
        shelf = draw_shelf(said)
    listing = draw_listing()
    fields = {"token": token, "run": hidden("run-id"), "seen": hidden("seen")}
    parts = Parts(**fields, notice=notice, live=live, **shown)
    trial = TryHandlers(trying, parts.run, parts.token, settings)
    shelved = ShelfHandlers(shelf, parts.run, parts.token, settings)
    listed = ListHandlers(listing, parts.run, parts.seen, parts.token, settings)
    for handlers in (trial, shelved, listed):
        handlers.connect()
    _connect(page, parts, Handlers(parts, trial, shelved, listed, settings))


def _draw_head() -> dict[str, Any]:
    with gr.Row(elem_classes="rs-row rs-headline"):
        head = block("run-head", scale=1)
        profile = gr.Button(
            say("runs.profile"), elem_id="profile", scale=0, min_width=120, visible=False
        )
        stop = gr.Button(
            say("runs.stop"), variant="stop", elem_id="stop", scale=0, min_width=120, visible=False
        )
    said = block("said")
    ending = block("ending", elem_classes="rs-maybe")
    doctor = block("doctor-line", elem_classes="rs-maybe")
    return {
        "head": head, "profile": profile, "stop": stop, "ending": ending, "tiles": block("tiles"),
        "doctor": doctor, "said": said,
    }  # fmt: skip


def _card(elem_id: str, scale: int) -> gr.HTML:
    with gr.Column(scale=scale, min_width=320, elem_classes="rs-card"):
        return block(elem_id)


def _draw_log() -> dict[str, Any]:
    with gr.Column(scale=27, min_width=320, elem_classes="rs-card"):
        with gr.Row(elem_classes="rs-row rs-headline"):
            block("log-heading", heading(say("run.log")), scale=1)
            choice = gr.Dropdown(
                label=say("field.log"),
                info=say("help.log"),
                elem_id="field-log",
                choices=[(say("log.console"), CONSOLE)],
                value=CONSOLE,
                filterable=False,
                scale=0,
                min_width=220,
            )
        log = gr.HTML(
            None,
            html_template=LOG_TEMPLATE,
            js_on_load=SHOW_LOG,
            apply_default_css=False,
            elem_id="log",
            name=say("run.log"),
            empty=say("run.no_log"),
        )
    return {"log_choice": choice, "log": log}


def _draw_curves() -> dict[str, Any]:
    with gr.Column(scale=20, min_width=320, elem_classes="rs-card"):
        block("curves-heading", heading(say("run.curves")))
        return {
            "loss": _curve("loss"),
            "scores": _curve("scores"),
        }


def _curve(name: str) -> gr.LinePlot:
    keys = SERIES[name]
    return gr.LinePlot(
        points_frame((), map(say, keys)),
        x="epoch",
        y="value",
        color="series",
        x_title=say("curve.epoch"),
        y_title=say(f"curve.{name}"),
        color_title=" ",
        color_map={say(key): SERIES_COLOURS[key] for key in keys},
        height=170,
        label=say(f"curve.{name}"),
        show_label=False,
        container=False,
        elem_id=f"curve-{name}",
        buttons=[],
    )


def _connect(page: gr.Blocks, parts: Parts, handlers: Handlers) -> None:
    trial, shelf, listing = handlers.trial.parts, handlers.shelf.parts, handlers.listing.parts
    polled = [
        parts.notice, parts.seen, parts.live, parts.head, parts.profile, parts.stop, parts.tiles,
        parts.ending, parts.doctor, parts.epochs, parts.step, parts.log_choice, parts.log,
        parts.loss, parts.scores, parts.classes, parts.remarks, parts.setup,
        *trial.polled(), *shelf.polled(), *listing.polled(),
    ]  # fmt: skip
    inputs = {parts.run, parts.seen, parts.log_choice, trial.trial, *listing.fields()}
    opened = list(dict.fromkeys([parts.run, *polled, *shelf.filled()]))
    page.load(handlers.open, None, opened, api_name="open_runs", **QUICK)
    timer = gr.Timer(POLL_S)
    timer.tick(handlers.poll, inputs, polled, api_name="poll_run", **QUICK)
    parts.log_choice.input(
        handlers.switch_log, inputs, [parts.log, parts.seen], api_name="switch_log", **QUICK
    )
    parts.stop.click(
        handlers.stop, {parts.run, parts.token}, parts.stop,
        show_progress="hidden", concurrency_limit=None, api_name="stop", **PRIVATE,
    )  # fmt: skip
    parts.profile.click(
        handlers.profile, {parts.run, parts.token}, parts.profile,
        show_progress="hidden", concurrency_limit=None, api_name="profile", **PRIVATE,
    )  # fmt: skip
