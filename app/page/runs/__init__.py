"""Runs: the list, and one run live. Everything comes from disk, so a reload is right again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gradio as gr

from app.page.draw.classes import SORT_CLASSES
from app.page.frame import OFTEN, QUICK, block, draw_frame, hidden
from app.page.runs.actions import ActionHandlers, ActionParts, draw_actions, draw_dump, titles
from app.page.runs.curves import draw_curves
from app.page.runs.handlers import Cards, Handlers, Parts
from app.page.runs.listing import ListHandlers, draw_listing
from app.page.runs.log import draw_log, template
from app.page.runs.opened import OpenedRun
from app.page.runs.shelf import ShelfHandlers, draw_shelf
from app.page.runs.trying import TryHandlers, draw_trying
from app.page.settings import PageSettings
from app.views.pace import PERIOD_S

LIVE = Path(__file__).with_name("live.js").read_text(encoding="utf-8")


def draw_runs(page: gr.Blocks, settings: PageSettings) -> None:
    """Lay the page out and connect it; called inside the page's context."""
    token = draw_frame(settings, "runs")
    gr.HTML(
        "", js_on_load=LIVE, elem_id="counts", apply_default_css=False, titles=titles(),
        days=template("figures.days"),
    )  # fmt: skip
    notice = block("notice")
    with gr.Column(visible=False, elem_id="live", elem_classes="rs-stack") as live:
        shown, buttons = _draw_head()
        said = shown.pop("said")
        with gr.Row(elem_classes="rs-columns", equal_height=True):
            shown["epochs"] = _card("epochs", scale=27)
            shown["step"] = _card("step", scale=20)
        shown["curves"] = draw_curves()
        shown["strip"] = block("strip", elem_classes="rs-card rs-maybe")
        log = draw_log()
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
    fields = {name: hidden(elem_id) for name, elem_id in HIDDEN.items()}
    timer = gr.Timer(PERIOD_S)
    parts = Parts(token=token, **fields, timer=timer, notice=notice, live=live, log=log, **shown)
    opened = OpenedRun(parts.run, token, parts.pulse, settings)
    cards = Cards(
        ActionHandlers(ActionParts(**buttons), opened),
        TryHandlers(trying, opened),
        ShelfHandlers(shelf, opened),
        ListHandlers(listing, parts.run, parts.seen, token, settings),
    )
    for handlers in (cards.actions, cards.trial, cards.shelf, cards.listing):
        handlers.connect()
    _connect(page, parts, Handlers(parts, cards, settings))


HIDDEN = {"run": "run-id", "seen": "seen", "pulse": "pulse"}


def _draw_head() -> tuple[dict[str, Any], dict[str, Any]]:
    with gr.Row(elem_classes="rs-row rs-headline"):
        head = block("run-head", scale=1)
        with gr.Row(elem_classes="rs-row rs-actions", scale=0):
            buttons = draw_actions()
    said = block("said")
    hang = block("hang", elem_classes="rs-maybe")
    buttons |= draw_dump()
    ending = block("ending", elem_classes="rs-maybe")
    doctor = block("doctor-line", elem_classes="rs-maybe")
    shown = {
        "head": head, "hang": hang, "ending": ending, "tiles": block("tiles"), "doctor": doctor,
        "said": said,
    }  # fmt: skip
    return shown, buttons


def _card(elem_id: str, scale: int) -> gr.HTML:
    with gr.Column(scale=scale, min_width=320, elem_classes="rs-card"):
        return block(elem_id)


def _connect(page: gr.Blocks, parts: Parts, handlers: Handlers) -> None:
    cards = handlers.cards
    polled = [
        parts.notice, parts.seen, parts.live, parts.head, parts.hang, parts.tiles, parts.ending,
        parts.doctor, parts.epochs, parts.step, parts.strip, parts.curves, parts.log.choice,
        parts.log.log, parts.classes, parts.remarks, parts.setup, *cards.actions.parts.polled(),
        *cards.trial.parts.polled(), *cards.shelf.parts.polled(), *cards.listing.parts.polled(),
    ]  # fmt: skip
    inputs = {
        parts.run, parts.seen, parts.log.choice, cards.trial.parts.trial,
        *cards.listing.parts.fields(),
    }  # fmt: skip
    opened = [parts.run, cards.actions.parts.resume_id, *polled, *cards.shelf.parts.filled()]
    page.load(handlers.open, None, list(dict.fromkeys(opened)), api_name="open_runs", **QUICK)
    parts.timer.tick(
        handlers.tick, inputs, [parts.pulse, parts.timer], api_name="tick_run", **OFTEN
    )
    news = [parts.pulse.change, parts.log.choice.input]
    gr.on(
        news, handlers.poll, inputs, polled, trigger_mode="always_last", api_name="poll_run",
        **OFTEN,
    )  # fmt: skip
    gr.on(
        [parts.curves.submit, parts.log.log.submit], handlers.resend, inputs, polled,
        trigger_mode="always_last", api_name="resend", **OFTEN,
    )  # fmt: skip
