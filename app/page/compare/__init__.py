"""Compare: the same questions put to two to eight runs."""

from __future__ import annotations

from typing import Any

import gradio as gr

from app.page.compare.choice import read_choice
from app.page.compare.handlers import PLOTS, Handlers, Parts
from app.page.compare.plots import points_frame
from app.page.draw import heading, title
from app.page.draw.compare import FIND_CLASSES
from app.page.draw.picker import PICK
from app.page.frame import QUICK, block, draw_frame, hidden
from app.page.library.button import connect_playbook_button, draw_playbook_button
from app.page.settings import PageSettings
from app.page.train.form import field
from app.views.curves import MAX_SMOOTHING, X_AXES
from app.views.table import MAX_RUNS
from ringside.words import say

POLL_S = 2.0

# The address always names what is shown, so that it can be sent to a colleague.
KEEP_ADDRESS = """(chosen) => {
  const {runs = [], baseline = ''} = JSON.parse(chosen || '{}');
  const query = runs.length ? '?runs=' + runs.join(',') : '';
  const against = baseline ? '&baseline=' + baseline : '';
  window.history.replaceState(null, '', window.location.pathname + query + against);
}"""


def draw_compare(page: gr.Blocks, settings: PageSettings) -> None:
    """Lay the page out and connect it; called inside the page's context."""
    token = draw_frame(settings, "compare")
    with gr.Row(elem_classes="rs-row rs-headline"):
        block("lead", title(say("page.compare"), say("compare.lead")), scale=1)
        playbook = draw_playbook_button("playbook")
    notice = block("notice")
    with gr.Column(elem_classes="rs-card"):
        chosen = gr.HTML(
            "{}",
            elem_id="field-runs",
            html_template="${rows}",
            rows="",
            most=MAX_RUNS,
            full=say("compare.choose_full"),
            js_on_load=PICK,
            apply_default_css=False,
        )
    shown: dict[str, Any] = {"comparison": block("comparison")}
    with gr.Column(visible=False, elem_id="curves", elem_classes="rs-stack") as curves:
        shown |= _draw_curves()
    with gr.Row(elem_id="beside-scaling"):
        shown["scaling"] = block("compare-scaling")
        shown["predicted"] = block("predicted", elem_classes="rs-card rs-maybe")
    shown["classes"] = gr.HTML(
        "", elem_id="class-deltas", elem_classes="rs-card rs-maybe", apply_default_css=False,
        js_on_load=FIND_CLASSES,
    )  # fmt: skip
    shown["contrast"] = block("contrast", elem_classes="rs-card rs-maybe")
    parts = Parts(
        seen=hidden("seen"), notice=notice, chosen=chosen, curves=curves, **shown
    )  # fmt: skip
    _connect(page, parts, Handlers(parts, settings))
    connect_playbook_button(
        playbook, chosen, token, settings, "playbook_of_runs",
        read=lambda value: read_choice(value).runs,
    )  # fmt: skip


def _draw_curves() -> dict[str, Any]:
    shown: dict[str, Any] = {}
    with gr.Column(elem_classes="rs-card"):
        block("compare-curves-heading", heading(say("compare.curves")))
        with gr.Row(elem_classes="rs-row", elem_id="curve-fields"):
            choices = [(say(f"compare.choice_{axis}"), axis) for axis in X_AXES]
            shown["x"] = field(gr.Radio, "curve_x", choices=choices, value=X_AXES[0], scale=3)
            shown["smoothing"] = field(
                gr.Slider, "curve_smoothing", minimum=0, maximum=MAX_SMOOTHING, step=0.05, value=0,
                scale=2, buttons=[],
            )  # fmt: skip
            shown["log"] = field(gr.Checkbox, "curve_log", value=False, scale=2)
    # Hidden by the style once there are pictures: a plot that is taken out of the page while it is
    # drawn fails (gradio 6.31).
    with gr.Row(elem_id="live-curves", elem_classes="rs-live-curves"):
        for name in PLOTS:
            shown[name] = _plot(name)
    return {**shown, "pictures": block("curve-pictures")}


def _plot(name: str) -> gr.LinePlot:
    with gr.Column(min_width=300, elem_classes="rs-card"):
        block(f"heading-{name.replace('_', '-')}", heading(say(f"compare.curve_{name}")))
        return gr.LinePlot(
            points_frame(()),
            x="x",
            y="y",
            color="run",
            color_title=" ",
            height=240,
            label=say(f"compare.curve_{name}"),
            show_label=False,
            container=False,
            elem_id=f"compare-{name.replace('_', '-')}",
            buttons=[],
        )


def _connect(page: gr.Blocks, parts: Parts, handlers: Handlers) -> None:
    polled = parts.polled()
    inputs = {parts.chosen, parts.seen, parts.x, parts.log, parts.smoothing}
    page.load(handlers.open, None, [parts.chosen, *polled], api_name="open_compare", **QUICK)
    gr.Timer(POLL_S).tick(handlers.poll, inputs, polled, api_name="poll_compare", **QUICK)
    parts.chosen.change(
        handlers.show, inputs, polled, trigger_mode="always_last", api_name="compare", **QUICK
    )
    parts.chosen.change(
        None, parts.chosen, None, js=KEEP_ADDRESS, api_name="compare_address",
        api_visibility="private", queue=False,
    )  # fmt: skip
    # One event for all of them: two at once could come back in the wrong order.
    gr.on(
        [parts.x.input, parts.log.input, parts.smoothing.input], handlers.redraw, inputs, polled,
        trigger_mode="always_last", api_name="redraw_curves", **QUICK,
    )  # fmt: skip
