"""The curves of a run: the browser draws them, from points that polls bring in increments."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gradio as gr

from app.page.draw import heading
from app.page.frame import block
from app.views.desk import Desk
from app.views.run import RunView
from ringside.words import say

SHOW_CURVES = Path(__file__).with_name("curves.js").read_text(encoding="utf-8")
TEMPLATE = """
<div class="rs-tools rs-curve-fields" hidden></div>
<p class="rs-soft rs-no-curve">${words.none}</p>
<div class="rs-plots"></div>
"""
AXES = ("step", "epoch", "time", "samples")
PLOTS: tuple[dict[str, Any], ...] = (
    {"name": "loss", "lines": ["train_loss", "val_loss"], "smooth": ["train_loss"], "log": True},
    {"name": "scores", "lines": ["auc", "f1", "map"], "smooth": [], "log": False},
    {"name": "throughput", "lines": ["rate"], "smooth": ["rate"], "log": False},
    {
        "name": "step_time", "lines": ["step_ms", "step_p50", "step_p95"], "smooth": ["step_ms"],
        "log": False,
    },
    {"name": "rate_of_learning", "lines": ["learning_rate"], "smooth": [], "log": False},
)  # fmt: skip
"""`smooth` names the lines that are noise to be smoothed; scores of a few epochs are not."""


def curve_words() -> dict[str, str]:
    """What stands on the card."""
    names = [plot["name"] for plot in PLOTS] + [line for plot in PLOTS for line in plot["lines"]]
    names += ["x", *(f"x_{axis}" for axis in AXES), "smoothing", "log", "shown", "none"]
    return {name: say(f"curve.{name}") for name in names}


def draw_curves() -> gr.HTML:
    """Lay the card out; called inside the page's context."""
    with gr.Column(elem_classes="rs-card", elem_id="curves-card"):
        block("curves-heading", heading(say("run.curves")))
        return gr.HTML(
            None,
            html_template=TEMPLATE,
            js_on_load=SHOW_CURVES,
            apply_default_css=False,
            elem_id="curves",
            words=curve_words(),
            plots=list(PLOTS),
            axes=list(AXES),
        )


def curve_changes(part: gr.HTML, desk: Desk, view: RunView, seen: dict[str, Any]) -> dict[Any, Any]:
    """The points that the browser does not hold yet, noting in `seen` how far it is then."""
    seen["curves"], found = desk.curves(view.id, seen.get("curves"))
    if not found:
        return {}
    return {part: {"run": view.id, **view.scale, "lines": found}}
