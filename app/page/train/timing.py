"""Times the strategies of the form: what that costs, the button, and how far it is."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import gradio as gr
from gradio.components import Component

from app.audit import about
from app.guard import require_token
from app.page.draw.doctor import measuring_panel
from app.page.frame import QUEUED, QUICK, acts, block, hidden, quiet
from app.page.settings import PageSettings
from app.page.train.form import Form
from app.views.cards import specs_to_time
from app.views.measuring import MeasuringState
from ringside.measurements.store import FOLDER
from ringside.words import say

Changes = dict[Any, Any]

POLL_S, IDLE_POLL_S = 1.0, 5.0
"""While something is measured, and to notice that somebody else has begun to."""


@dataclass(frozen=True)
class TimingParts:
    """The components. `seen` is the digest of what the browser has; `measured` changes when a
    measurement was stored, so that the cards are worked out again.
    """

    cost: gr.HTML
    start: gr.Button
    stop: gr.Button
    progress: gr.HTML
    seen: gr.Textbox
    measured: gr.Textbox
    timer: gr.Timer

    def polled(self) -> list[Any]:
        """What a poll may change."""
        return [self.start, self.stop, self.progress, self.seen, self.measured, self.timer]


def draw_timing() -> TimingParts:
    """Below the cards: button, cost, and a place for the progress."""
    with gr.Row(elem_classes="rs-row rs-buttons", elem_id="timing-row"):
        start = gr.Button(
            say("bench.time_these"), elem_id="time-presets", size="md", scale=0, min_width=180
        )
        stop = gr.Button(
            say("consult.stop_measuring"), elem_id="stop-timing", size="md", scale=0,
            min_width=150, visible=False,
        )  # fmt: skip
    cost, progress = block("timing-cost"), block("timing")
    return TimingParts(
        cost, start, stop, progress, hidden("timing-seen"), hidden("measured"), gr.Timer(POLL_S)
    )


class TimingHandlers:
    """What it does. The measurement is the server's one, which the Doctor's page shows too."""

    def __init__(
        self, parts: TimingParts, form: Form, token: gr.Textbox, settings: PageSettings
    ) -> None:
        self.parts, self.form, self.token, self.settings = parts, form, token, settings

    def connect(self) -> None:
        """Give the events their handlers; called inside the page's context."""
        parts, polled = self.parts, self.parts.polled()
        everything = set(self.form.components().values()) | {self.token}
        parts.start.click(self.start, everything, polled, api_name="time_presets", **QUEUED)
        parts.stop.click(self.stop, {self.token}, polled, api_name="stop_timing", **QUEUED)
        parts.timer.tick(self.poll, {parts.seen}, polled, api_name="poll_timing", **QUICK)

    @acts("time strategies")
    def start(self, data: Mapping[Component, Any]) -> Changes:
        """Time the main strategies and the chosen one, as the form asks for them."""
        require_token(data[self.token], self.settings.token)
        settings = self.settings
        specs = specs_to_time(self.form.values(data), settings.hardware, settings.checks.report)
        about(", ".join(spec.preset for spec in specs))
        settings.measuring.start("presets", settings.hardware, specs=specs)
        return self.changes()

    @acts("stop measuring")
    def stop(self, data: Mapping[Component, Any]) -> Changes:
        """End the measurement that is under way, whatever it measures."""
        require_token(data[self.token], self.settings.token)
        self.settings.measuring.stop()
        return self.changes()

    @quiet
    def poll(self, data: Mapping[Component, Any]) -> Changes:
        """How far it is, when the browser does not know it yet."""
        return self.changes(data[self.parts.seen] or "")

    def changes(self, seen: str = "") -> Changes:
        """How things stand; nothing where the browser has `seen` just that."""
        parts, state = self.parts, self.settings.measuring.state
        busy = state.under_way
        # How the Doctor's page came out is told there.
        panel = measuring_panel(state if busy or state.what == "presets" else MeasuringState())
        stored = self._stored()
        digest = f"{zlib.crc32(f'{state.kind} {stored} {panel}'.encode()):08x}"
        if digest == seen:
            return {}
        return {
            parts.start: gr.Button(interactive=not busy),
            parts.stop: gr.Button(visible=busy, interactive=state.kind == "running"),
            parts.progress: panel,
            parts.seen: digest,
            parts.measured: stored,
            parts.timer: gr.Timer(POLL_S if busy else IDLE_POLL_S),
        }

    def _stored(self) -> str:
        """Changes with every file that comes or goes; one look at the folder, whatever is in it."""
        try:
            return str((self.settings.runs_root / FOLDER).stat().st_mtime_ns)
        except OSError:
            return ""
