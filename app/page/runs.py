"""Runs: the list, and one run live. Everything comes from disk, so a reload is right again."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import gradio as gr
import pandas as pd
from gradio.components import Component

from app.guard import require_token
from app.page.draw import heading
from app.page.draw.runs import (
    empty_list,
    ending_card,
    epoch_table,
    remarks,
    run_head,
    run_list,
    setup_card,
    step_card,
    tiles,
)
from app.page.frame import PRIVATE, QUICK, block, careful, changed, draw_frame, hidden, quiet
from app.page.settings import PageSettings
from app.views.logs import CONSOLE, log_choices, read_log
from app.views.run import Point, RunView
from ringside.launch.stop import request_stop
from ringside.rundir import RunDir
from ringside.words import say

POLL_S = 1.0
SERIES_COLOURS = {
    "curve.train_loss": "#0072b2",
    "curve.val_loss": "#d55e00",
    "curve.auc": "#0f8a7e",
    "curve.f1": "#8f5aa8",
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
LOG_TEMPLATE = '<pre class="rs-log" tabindex="0" role="log" aria-label="${name}" data-empty="${empty}"></pre>'


@dataclass(frozen=True)
class Parts:
    """The components of the page. What `seen` holds comes back with every poll.

    `seen` says which parts the browser has, so an answer that was lost on the way is sent again;
    a server that kept this itself would believe it had been read.
    """

    token: gr.Textbox
    run: gr.Textbox
    seen: gr.Textbox
    live: gr.Column
    head: gr.HTML
    stop: gr.Button
    tiles: gr.HTML
    ending: gr.HTML
    epochs: gr.HTML
    step: gr.HTML
    log_choice: gr.Dropdown
    log: gr.HTML
    loss: gr.LinePlot
    scores: gr.LinePlot
    remarks: gr.HTML
    setup: gr.HTML
    list: gr.HTML


def draw_runs(page: gr.Blocks, settings: PageSettings) -> None:
    """Lay the page out and connect it; called inside the page's context."""
    token = draw_frame(settings, "runs")
    with gr.Column(visible=False, elem_id="live", elem_classes="rs-stack") as live:
        shown = _draw_head()
        with gr.Row(elem_classes="rs-columns"):
            shown["epochs"] = _card("epochs", scale=27)
            shown["step"] = _card("step", scale=20)
        with gr.Row(elem_classes="rs-columns"):
            shown |= _draw_log()
            shown |= _draw_curves()
        shown["remarks"] = block("remarks", elem_classes="rs-card rs-maybe")
        shown["setup"] = block("setup", elem_classes="rs-card rs-maybe")
    shown["list"] = block("run-list", elem_classes="rs-card")
    parts = Parts(token=token, run=hidden("run-id"), seen=hidden("seen"), live=live, **shown)
    _connect(page, parts, settings)


def _draw_head() -> dict[str, Any]:
    with gr.Row(elem_classes="rs-row rs-headline"):
        head = block("run-head", scale=1)
        stop = gr.Button(
            say("runs.stop"), variant="stop", elem_id="stop", scale=0, min_width=120, visible=False
        )
    ending = block("ending", elem_classes="rs-maybe")
    return {"head": head, "stop": stop, "ending": ending, "tiles": block("tiles")}


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
            "loss": _curve("loss", ("curve.train_loss", "curve.val_loss")),
            "scores": _curve("score", ("curve.auc", "curve.f1")),
        }


def _curve(name: str, series: Iterable[str]) -> gr.LinePlot:
    return gr.LinePlot(
        _frame(()),
        x="epoch",
        y="value",
        color="series",
        x_title=say("curve.epoch"),
        y_title=say(f"curve.{name}"),
        color_title=" ",
        color_map={say(key): SERIES_COLOURS[key] for key in series},
        height=170,
        label=say(f"curve.{name}"),
        show_label=False,
        container=False,
        elem_id=f"curve-{name}",
        buttons=[],
    )


def _frame(points: Iterable[Point]) -> pd.DataFrame:
    return pd.DataFrame(points, columns=["epoch", "value", "series"])


def _connect(page: gr.Blocks, parts: Parts, settings: PageSettings) -> None:
    handlers = Handlers(parts, settings)
    polled = [
        parts.seen, parts.live, parts.head, parts.stop, parts.tiles, parts.ending, parts.epochs,
        parts.step, parts.log_choice, parts.log, parts.loss, parts.scores, parts.remarks,
        parts.setup, parts.list,
    ]  # fmt: skip
    inputs = {parts.run, parts.seen, parts.log_choice}
    page.load(handlers.open, None, [parts.run, *polled], api_name="open_runs", **QUICK)
    timer = gr.Timer(POLL_S)
    timer.tick(handlers.poll, inputs, polled, api_name="poll_run", **QUICK)
    parts.log_choice.input(
        handlers.switch_log, inputs, [parts.log, parts.seen], api_name="switch_log", **QUICK
    )
    parts.stop.click(
        handlers.stop, {parts.run, parts.token}, parts.stop,
        show_progress="hidden", concurrency_limit=None, api_name="stop", **PRIVATE,
    )  # fmt: skip


class Handlers:
    """What the page does. Everything polled goes through `_changes`."""

    def __init__(self, parts: Parts, settings: PageSettings) -> None:
        self.parts = parts
        self.desk = settings.desk
        self.token = settings.token

    @quiet
    def open(self, request: gr.Request) -> dict[Component, Any]:
        """The run of `?run=`, else the newest; and the list."""
        run = self.desk.find(request.query_params.get("run"))
        run_id = run.id if run else ""
        return {self.parts.run: run_id, **self._changes(run_id, {}, CONSOLE)}

    @quiet
    def poll(self, data: dict[Component, Any]) -> dict[Component, Any]:
        """What changed since the browser last heard of it."""
        parts = self.parts
        return self._changes(data[parts.run], _read_seen(data[parts.seen]), data[parts.log_choice])

    @quiet
    def switch_log(self, data: dict[Component, Any]) -> dict[Component, Any]:
        """Another log, from near its end."""
        parts = self.parts
        run = self.desk.find(data[parts.run])
        if run is None:
            return gr.skip()
        seen = _read_seen(data[parts.seen])
        seen.pop("log", None)
        chunk = self._log(run, seen, data[parts.log_choice])
        return {parts.log: chunk, parts.seen: json.dumps(seen)}

    @careful
    def stop(self, data: dict[Component, Any]) -> dict[Component, Any]:
        """Leave the request; its supervisor sees to it, and the next poll shows it."""
        require_token(data[self.parts.token], self.token)
        run = self.desk.find(data[self.parts.run])
        if run is not None:
            request_stop(run)
        return {self.parts.stop: gr.Button(say("runs.stopping"), interactive=False)}

    def _changes(self, run_id: str, seen: dict[str, Any], log_key: str) -> dict[Component, Any]:
        rows = self.desk.rows()
        values: dict[str, Any] = {"list": run_list(rows, run_id) if rows else empty_list()}
        plots: dict[str, Any] = {}
        if run_id:
            view, sign_of_life = self.desk.look(run_id)
            values |= _texts(view, sign_of_life)
            plots = {"loss": view.loss_points, "scores": view.score_points}
        new = changed({**values, **plots}, seen)
        seen |= {name: digest for name, (_, digest) in new.items()}
        found = {
            getattr(self.parts, name): _frame(value) if name in plots else value
            for name, (value, _) in new.items()
        }
        if run_id:
            found |= self._run_changes(view, seen, log_key)
        if not found:
            return gr.skip()
        return {**found, self.parts.seen: json.dumps(seen)}

    def _run_changes(
        self, view: RunView, seen: dict[str, Any], log_key: str
    ) -> dict[Component, Any]:
        """What is more than text: the button, the logs to choose from, the log."""
        parts, run = self.parts, RunDir(self.desk.root / view.id)
        choices = log_choices(run)
        new = changed({"stop": view.state, "log_choice": choices, "live": True}, seen)
        seen |= {name: digest for name, (_, digest) in new.items()}
        updates = {
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
        "step": step_card(view.step),
        "remarks": remarks(view),
        "setup": setup_card(view),
    }


def _stop_button(view: RunView) -> gr.Button:
    stopping = view.state == "stopping"
    return gr.Button(
        say("runs.stopping" if stopping else "runs.stop"),
        visible=view.stoppable or stopping,
        interactive=not stopping,
    )


def _read_seen(text: str | None) -> dict[str, Any]:
    """What the browser has; anything unreadable means: nothing, send all."""
    try:
        seen = json.loads(text or "{}")
    except ValueError:
        return {}
    return seen if isinstance(seen, dict) else {}


def _read_offset(value: Any) -> tuple[str | None, int | None]:
    match value:
        case [str(key), int(offset)] if offset >= 0:
            return key, offset
    return None, None
