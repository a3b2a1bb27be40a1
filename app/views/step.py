"""Where the time of a step goes: the parts of one bar, and the one thing worth saying about it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from app.views import figures
from ringside.events import WindowTimed
from ringside.words import say

SLOW_DATA_RATIO = 0.1
PARTS = ("data", "forward", "backward", "optimizer", "rest")


@dataclass(frozen=True)
class StepPart:
    """One colour of the step bar: which one, its word, its time, its share from 0 to 1."""

    key: str
    label: str
    time: str
    share: float


@dataclass(frozen=True)
class Step:
    """Where a step goes, and the one thing worth saying about it."""

    total: str
    parts: tuple[StepPart, ...]
    sentence: str


def step_view(windows: Sequence[WindowTimed]) -> Step | None:
    """Means over the windows of the newest epoch, so that warm-up fades out by itself."""
    if not windows:
        return None
    newest = [w for w in windows if w.epoch == windows[-1].epoch]
    total = _mean(newest, "step_ms")
    times = {part: _mean(newest, f"{part}_ms") for part in PARTS[:-1]}
    times["rest"] = max(0.0, total - sum(times.values()))
    whole = sum(times.values()) or 1.0
    parts = tuple(
        StepPart(part, say(f"step.{part}"), figures.milliseconds(ms), ms / whole)
        for part, ms in times.items()
    )
    return Step(figures.milliseconds(total), parts, _step_sentence(parts))


def _mean(windows: Sequence[WindowTimed], name: str) -> float:
    steps = sum(window.num_steps for window in windows)
    return sum(getattr(w, name) * w.num_steps for w in windows) / steps if steps else 0.0


def _step_sentence(parts: Sequence[StepPart]) -> str:
    data = parts[0]
    if data.share >= SLOW_DATA_RATIO:
        return say("step.data_slow", share=figures.percent(data.share))
    largest = max(parts, key=lambda part: part.share)
    return say("step.largest", part=largest.label, share=figures.percent(largest.share))
