"""The quality gate: a faster run only counts when its scores did not fall.

A score has fallen when the 95 % interval of the difference lies below zero (outside the noise of
the validation images) and the difference is beyond the tolerance. It has held when the whole
interval lies above the negative tolerance (a test of non-inferiority: Piaggio et al. 2012,
JAMA 308, doi:10.1001/jama.2012.87802). Between the two nothing is decided: more validation images
are needed. Nor is it without evidence: of few images, or where no resample changes anything and the
images are too few for that to mean something. What another seed would change is no part of this
noise.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import msgspec

from ringside.scores import Interval, Metric
from ringside.words import say

TOLERANCE = 0.005
"""What a macro score may lose."""

MIN_IMAGES = 100
"""Fewer decide nothing: the interval knows no loss that these images do not hold.

What was seen on none of n images may still befall 3 / n of all (rule of three: Hanley and
Lippman-Hand 1983, JAMA 249, doi:10.1001/jama.1983.03330370053031), of 100 images 3 %.
"""

NO_WIDTH = 1e-12
"""Up to here an interval has no width but that of rounding."""

MIN_IMAGES_WITHOUT_WIDTH = round(3 / TOLERANCE)
"""Where no resample changes the difference, what went unseen may befall 3 / n: 600 images put that
at the tolerance."""

FASTER_RATIO = 1.05
"""From here on another speed is called another, as for measurements of links."""

Verdict = Literal["reference", "held", "worse", "undecided", "unknown"]
Speed = Literal["faster", "slower", "as_fast"]
SERIOUSNESS: tuple[Verdict, ...] = ("worse", "undecided", "unknown", "held")


class Gate(msgspec.Struct, frozen=True, kw_only=True):
    """Whether the scores held against those of the reference.

    `metric` is the score that decided: the one that fell most among those with this verdict.
    `speed` is that against the reference, None where the two are not comparable. `reason` says
    why the verdict is unknown, or undecided for want of evidence.
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
    num_images: int,
    rate_ratio: float | None,
    apart: Sequence[str],
) -> Gate:
    """The verdict on one run; `apart` holds what keeps its scores from being compared.

    `num_images` are behind the intervals.
    """
    speed = speed_word(rate_ratio)
    if apart:
        return Gate(verdict="unknown", speed=speed, reason="; ".join(apart))
    known = {name: delta for name, delta in deltas.items() if delta is not None}
    if not known:
        return Gate(verdict="unknown", speed=speed, reason=say("compare.no_scores"))
    verdicts = {
        name: verdict_on(delta, intervals.get(name), num_images) for name, delta in known.items()
    }
    worst = min(verdicts.values(), key=SERIOUSNESS.index)
    metric = min((name for name in known if verdicts[name] == worst), key=known.__getitem__)
    reason = no_evidence(intervals.get(metric), num_images)
    return Gate(verdict=worst, speed=speed, metric=metric, reason=reason)


def no_evidence(interval: Interval | None, num_images: int) -> str | None:
    """Why an interval, or its lack, can decide nothing; None where it can."""
    if interval is None:
        return say("compare.no_predictions")
    if num_images < MIN_IMAGES:
        return say("compare.few_images", n=num_images, least=MIN_IMAGES)
    has_width = interval.high - interval.low > NO_WIDTH
    if not has_width and num_images < MIN_IMAGES_WITHOUT_WIDTH:
        return say("compare.no_width", n=num_images, least=MIN_IMAGES_WITHOUT_WIDTH)
    return None


def verdict_on(delta: float, interval: Interval | None, num_images: int) -> Verdict:
    """Whether one score fell, held, or nobody can tell."""
    if interval is None:
        return "unknown"
    if no_evidence(interval, num_images):
        return "undecided"
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
