"""What each strategy is predicted to give, in a few words for its card."""

from __future__ import annotations

import time
from pathlib import Path

import msgspec

from app.views import figures
from app.views.fields import Values, request_of
from app.views.form import distributes, strategies
from ringside.errors import RingsideError
from ringside.estimate import Estimate, estimate, inputs_for
from ringside.hardware import Hardware
from ringside.measurements.store import FOLDER
from ringside.request import RunRequest, resolve
from ringside.spec import RunSpec
from ringside.words import say, spoken

BUDGET_S = 0.5
"""For all cards together: the plan waits for them."""


class CardEstimates:
    """The words of all cards, worked out again only when the request or a measurement is new."""

    def __init__(self, hardware: Hardware, root: Path) -> None:
        self.hardware, self.root = hardware, root
        self._known: tuple[object, dict[str, str]] = (None, {})

    def of(self, values: Values) -> dict[str, str]:
        """Words by preset; empty where no model was measured on this machine."""
        names = tuple(sorted(path.name for path in (self.root / FOLDER).glob("*.json")))
        if not any(name.startswith("description-") for name in names):
            return {}
        try:
            request = msgspec.structs.replace(request_of(values), overrides={}, request_id=None)
        except RingsideError:
            return {}  # the plan says what is wrong
        # Which card is chosen changes nothing, so choosing one costs nothing.
        key = (msgspec.structs.replace(request, preset=""), names, spoken())
        if self._known[0] != key:
            self._known = (key, self._words(request))
        return self._known[1]

    def _words(self, request: RunRequest) -> dict[str, str]:
        choices = strategies(self.hardware)
        names = [card.name for card in (*choices.main, *choices.more) if card.reason is None]
        names.sort(key=lambda name: name != request.preset)
        found, until = {}, time.monotonic() + BUDGET_S
        for name in names:
            if time.monotonic() > until:
                break
            words = self._words_of(msgspec.structs.replace(request, preset=name))
            if words:
                found[name] = words
        return found

    def _resolved(self, request: RunRequest) -> RunSpec:
        """The request; a preset for one GPU takes the first of several that were chosen."""
        if request.gpus and not distributes(request.preset):
            request = msgspec.structs.replace(request, gpus=request.gpus[:1])
        return resolve(request, self.hardware)

    def _words_of(self, request: RunRequest) -> str:
        try:
            spec = self._resolved(request)
            inputs = inputs_for(spec, self.hardware, self.root, is_hurried=True)
            return estimate_words(estimate(spec, inputs))
        except (RingsideError, OSError, ValueError, ArithmeticError, LookupError):
            return ""  # an extra: the plan says what is wrong


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
