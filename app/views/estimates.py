"""What each strategy gives here, measured or else predicted, in a few words for its card."""

from __future__ import annotations

import time
from pathlib import Path

import msgspec

from app.views import figures
from app.views.cards import request_of_cards, spec_of_card
from app.views.fields import LEAVE_OUT, Reports, Values, data_spec
from app.views.form import strategies
from ringside.errors import RingsideError
from ringside.estimate import Estimate, estimate, gpu_name, inputs_for
from ringside.hardware import Hardware
from ringside.launch.step_bench import TimedStep, alone, timed_step
from ringside.measurements import Description, StepTiming
from ringside.measurements.store import FOLDER, Store, prefix_of
from ringside.request import RunRequest
from ringside.spec import RunSpec
from ringside.words import say, spoken

BUDGET_S = 0.5
"""For all cards together: the plan waits for them."""

KINDS = (prefix_of(Description), prefix_of(StepTiming))
"""Files without which no card has anything to say."""


class CardEstimates:
    """The words of all cards, worked out again only when the request or a measurement is new."""

    def __init__(self, hardware: Hardware, root: Path, reports: Reports) -> None:
        self.hardware, self.root, self.reports = hardware, root, reports
        self._known: tuple[object, dict[str, str]] = (None, {})

    def of(self, values: Values) -> dict[str, str]:
        """Words by preset; empty where nothing of it was measured on this machine."""
        names = tuple(sorted(path.name for path in (self.root / FOLDER).glob("*.json")))
        if not any(name.startswith(KINDS) for name in names):
            return {}
        try:
            request = request_of_cards(values)
            left_out = self._left_out(values)
        except RingsideError:
            return {}  # the plan says what is wrong
        # Which card is chosen changes nothing, so choosing one costs nothing.
        key = (msgspec.structs.replace(request, preset=""), left_out, names, spoken())
        if self._known[0] != key:
            self._known = (key, self._words(request, values))
        return self._known[1]

    def _left_out(self, values: Values) -> frozenset[str] | None:
        """The bad files that the form leaves out, by the last check."""
        if values.get("bad_files") != LEAVE_OUT:
            return None
        report = self.reports(data_spec(values))
        return report.skip if report is not None else None

    def _words(self, request: RunRequest, values: Values) -> dict[str, str]:
        choices = strategies(self.hardware)
        names = [card.name for card in (*choices.main, *choices.more) if card.reason is None]
        names.sort(key=lambda name: name != request.preset)
        found, until = {}, time.monotonic() + BUDGET_S
        for name in names:
            if time.monotonic() > until:
                break
            if words := self._words_of(name, request, values):
                found[name] = words
        return found

    def _words_of(self, name: str, request: RunRequest, values: Values) -> str:
        try:
            spec = spec_of_card(name, request, values, self.hardware, self.reports)
            if (timed := self._timed(spec)) is not None:
                return timed_words(timed)
            inputs = inputs_for(spec, self.hardware, self.root, is_hurried=True)
            return estimate_words(estimate(spec, inputs))
        except (RingsideError, OSError, ValueError, ArithmeticError, LookupError):
            return ""  # an extra: the plan says what is wrong

    def _timed(self, spec: RunSpec) -> TimedStep | None:
        """The step as it was timed here, over one device where that was timed too."""
        store, name = Store(self.root), gpu_name(spec, self.hardware)
        found = store.timing(spec, name, hardware=self.hardware)
        if found is None:
            return None
        one = alone(spec)
        base = store.timing(one, name, hardware=self.hardware) if one is not None else None
        return timed_step(found, base)


def timed_words(found: TimedStep) -> str:
    """`measured here: 1.93× · 84.6 ms a step · 6,054 images/s · 21.2 GB`."""
    parts = []
    if found.speedup is not None:
        parts.append(figures.ratio(found.speedup))
    parts.append(say("estimated.step", time=figures.milliseconds(found.step_ms)))
    parts.append(say("estimated.rate", rate=f"{found.samples_per_s:,.0f}"))
    if found.memory_bytes is not None:
        parts.append(figures.size(found.memory_bytes))
    return say("estimated.measured", parts=" · ".join(parts))


def estimate_words(found: Estimate) -> str:
    """`predicted: 1.90× · 41.0 s an epoch · 11.3 GB · 94.9 MB a step`; empty without a step time.

    The last are the bytes that a device hands to the exchange of gradients in an optimizer step.
    """
    if found.step_ms is None:
        return ""
    parts = []
    if found.speedup is not None:
        parts.append(figures.ratio(found.speedup))
    if found.epoch_time_s is not None:
        parts.append(say("estimated.epoch", time=figures.seconds(found.epoch_time_s)))
    else:
        parts.append(say("estimated.step", time=figures.milliseconds(found.step_ms)))
    if found.memory_bytes is not None:
        parts.append(figures.size(found.memory_bytes))
    if found.num_bytes:
        parts.append(say("estimated.bytes", size=figures.size(found.num_bytes)))
    return say("estimated.words", parts=" · ".join(parts))
