"""Where the time of a step goes: the parts of one bar, and the one thing worth saying about it.

Times of a window are the slowest rank's, each part for itself, so they do not add up: a rank whose
images come late makes the others wait inside backward, and that is one loss of time, not two.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from app.views import figures
from app.views.series import quantiles
from ringside.events import WindowTimed, without_starts
from ringside.words import say

WORTH_SAYING_RATIO = 0.1
MAX_WINDOWS = 1000
"""Of the newest epoch; a long one is no other in its last thousand windows."""

MIN_WINDOWS = 5
"""With fewer, a percentile says nothing."""

PARTS = ("data", "forward", "backward", "wait", "optimizer", "rest")


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


def newest_windows(windows: Sequence[WindowTimed]) -> list[WindowTimed]:
    """The last windows of the newest epoch, without the step in which it starts.

    Windows in which the profiler recorded are no measure of a step.
    """
    found: list[WindowTimed] = []
    for window in reversed(windows):
        if window.profiled:
            continue
        if len(found) == MAX_WINDOWS or (found and window.epoch != found[0].epoch):
            break
        found.append(window)
    return without_starts(found[::-1])


def quantile_lines(newest: Sequence[WindowTimed]) -> tuple[str, ...]:
    """How much steps differ: median and 95th percentile over the windows of the newest epoch."""
    if len(newest) < MIN_WINDOWS:
        return ()
    p50, p95 = map(figures.milliseconds, quantiles([window.step_ms for window in newest]))
    return (say("step.quantiles", p50=p50, p95=p95, n=len(newest)),)


def step_view(windows: Sequence[WindowTimed]) -> Step | None:
    """Means over the newest windows."""
    newest = newest_windows(windows)
    if not newest:
        return None
    steps = sum(window.num_steps for window in newest) or 1
    total = sum(window.step_ms * window.num_steps for window in newest) / steps
    times = dict.fromkeys(PARTS, 0.0)
    for window in newest:
        for part, ms in parts_ms(window).items():
            times[part] += ms * window.num_steps / steps
    waits_known = all(window.backward_ms_min is not None for window in newest)
    if not waits_known:
        # Windows of an older Ringside: what a rank waited stands in backward.
        times["backward"] += times.pop("wait")
    parts = tuple(_part(name, ms, total) for name, ms in times.items())
    return Step(figures.milliseconds(total), parts, _step_sentence(parts, waits_known))


def parts_ms(window: WindowTimed) -> Mapping[str, float]:
    """The parts of one step, which add up to it: each gets at most what those before it left."""
    backward = window.backward_ms if window.backward_ms_min is None else window.backward_ms_min
    claims = {"data": window.data_ms, "optimizer": window.optimizer_ms}
    if window.backward_ms_min is None:
        claims |= {"forward": window.forward_ms, "backward": backward}
    else:
        # Here backward holds no waiting, and forward may (FSDP gathers there): it goes second.
        claims |= {"backward": backward, "forward": window.forward_ms}
    claims["wait"] = window.backward_ms - backward
    left, parts = window.step_ms, {}
    for name, ms in claims.items():
        parts[name] = max(0.0, min(ms, left))
        left -= parts[name]
    return {**parts, "rest": left}


def _part(name: str, ms: float, total: float) -> StepPart:
    share = ms / total if total else 0.0
    return StepPart(name, say(f"step.{name}"), figures.milliseconds(ms), share)


def _step_sentence(parts: Sequence[StepPart], waits_known: bool) -> str:
    """A wait that can be mended comes first, the larger one of two; else the largest part."""
    found = [part for part in parts if part.key in ("data", "wait")]
    slow = max(found, key=lambda part: part.share)
    if slow.share >= WORTH_SAYING_RATIO:
        return say(f"step.{slow.key}_slow", share=figures.percent(slow.share))
    largest = max(parts, key=lambda part: part.share)
    key = "step.largest_other"
    if largest.key == "backward":
        key = "step.largest" if waits_known else "step.largest_unsplit"
    return say(key, part=largest.label, share=figures.percent(largest.share))
