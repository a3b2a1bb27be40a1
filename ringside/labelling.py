"""Which labels a picture gets: from probabilities, by threshold, by rank, or both."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final, Literal

import msgspec

from ringside.checkpoints import COMMON_THRESHOLD, About, Thresholds
from ringside.errors import SpecError

TUNED: Final = "tuned"


class Label(msgspec.Struct, frozen=True):
    """One label of a picture and its probability."""

    name: str
    probability: float


class LabelRule(msgspec.Struct, frozen=True, kw_only=True):
    """At most `top` labels, each with a probability above `threshold`; None does not limit."""

    top: int | None = None
    threshold: float | Literal["tuned"] | None = None


def make_rule(top: int | None, threshold: str | None, about: About, tuned: Thresholds) -> LabelRule:
    """The rule that a person asked for, else 0.5 for several labels and the best of one class.

    SpecError for a threshold that is no probability or that this model does not have.
    """
    if top is not None and top < 1:
        raise SpecError(f"--top must be at least 1, not {top}.")
    if threshold is None:
        if top is not None:
            return LabelRule(top=top)
        is_multi = about.task == "multi_label"
        return LabelRule(threshold=COMMON_THRESHOLD) if is_multi else LabelRule(top=1)
    if threshold != TUNED:
        return LabelRule(top=top, threshold=_probability(threshold))
    if about.task != "multi_label":
        raise SpecError(
            "--threshold tuned needs a task with several labels per image; this model chooses one "
            "class, so leave it out."
        )
    if not tuned.num_evaluated:
        raise SpecError("This model has no tuned thresholds: give a number, such as 0.5.")
    return LabelRule(top=top, threshold=TUNED)


def labels_of(
    probabilities: Sequence[float], about: About, tuned: Thresholds, rule: LabelRule
) -> list[Label]:
    """The labels of one picture, the most probable first."""
    found = [
        Label(name, float(probability))
        for name, probability in zip(about.classes, probabilities, strict=True)
        if _passes(name, float(probability), tuned, rule.threshold)
    ]
    return sorted(found, key=lambda label: -label.probability)[: rule.top]


def _passes(
    name: str, probability: float, tuned: Thresholds, threshold: float | str | None
) -> bool:
    if threshold is None:
        return True
    limit = threshold if isinstance(threshold, float) else tuned.of(name)
    return probability > limit


def _probability(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value <= 1:
        raise SpecError(f"--threshold must be a number from 0 to 1 or `tuned`, not {text}.")
    return value
