"""The quality gate: a faster run only counts when its scores did not fall.

A score has fallen when the 95 % interval of the difference lies below zero (outside the noise of
the validation images) and the difference is beyond the tolerance. It has held when the whole
interval lies above the negative tolerance (a test of non-inferiority: Piaggio et al. 2012,
JAMA 308, doi:10.1001/jama.2012.87802). Between the two nothing is decided: more validation images
are needed. What another seed would change is no part of this noise.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import msgspec

from ringside.scores import Interval, Metric
from ringside.words import say

TOLERANCE = 0.005
"""What a macro score may lose."""

FASTER_RATIO = 1.05
"""From here on another speed is called another, as for measurements of links."""

Verdict = Literal["reference", "held", "worse", "undecided", "unknown"]
Speed = Literal["faster", "slower", "as_fast"]
SERIOUSNESS: tuple[Verdict, ...] = ("worse", "undecided", "unknown", "held")


class Gate(msgspec.Struct, frozen=True, kw_only=True):
    """Whether the scores held against those of the reference.

    `metric` is the score that decided: the one that fell most among those with this verdict.
    `speed` is that against the reference, None where the two are not comparable. `reason` says
    why the verdict is unknown.
    """

    verdict: Verdict
    speed: Speed | None = None
    metric: Metric | None = None
    tolerance: float = TOLERANCE
    reason: str | None = None


def gate(
    deltas: Mapping[Metric, float | None],
    intervals: Mapping[Metric, Interval | None],
    *,
    rate_ratio: float | None,
    apart: Sequence[str],
) -> Gate:
    """The verdict on one run; `apart` holds what keeps its scores from being compared."""
    speed = speed_word(rate_ratio)
    if apart:
        return Gate(verdict="unknown", speed=speed, reason="; ".join(apart))
    known = {name: delta for name, delta in deltas.items() if delta is not None}
    if not known:
        return Gate(verdict="unknown", speed=speed, reason=say("compare.no_scores"))
    verdicts = {name: verdict_on(delta, intervals.get(name)) for name, delta in known.items()}
    worst = min(verdicts.values(), key=SERIOUSNESS.index)
    metric = min((name for name in known if verdicts[name] == worst), key=known.__getitem__)
    reason = say("compare.no_predictions") if worst == "unknown" else None
    return Gate(verdict=worst, speed=speed, metric=metric, reason=reason)


def verdict_on(delta: float, interval: Interval | None) -> Verdict:
    """Whether one score fell, held, or nobody can tell."""
    if interval is None:
        return "unknown"
    if interval.high < 0 and delta < -TOLERANCE:
        return "worse"
    return "held" if interval.low >= -TOLERANCE else "undecided"


def speed_word(rate_ratio: float | None) -> Speed | None:
    """Faster or slower than the reference by more than measurements spread."""
    if rate_ratio is None:
        return None
    if rate_ratio >= FASTER_RATIO:
        return "faster"
    return "slower" if rate_ratio <= 1 / FASTER_RATIO else "as_fast"
