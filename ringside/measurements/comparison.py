"""Whether a variable makes collectives faster: its series beside that of the machine as it is."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from ringside.measurements.sweep import Point, Series, Sweep

Outcome = Literal["faster", "slower", "no difference", "mixed"]

# Two launches of the same thing differ by so much, whatever the repeats inside one say.
LEAST_DIFFERENCE = 0.05
# Where nobody kept the quartiles: a few late repeats put the 90th percentile anywhere, and of no
# median is so little known that twice the time means nothing.
MOST_BY_P90 = 0.5
MEDIAN_95 = 1.96 * 1.253 / 1.349
"""Times the distance of the quartiles over the root of the repeats: within that the median lies in
95 % of cases, were the repeats normal (McGill, Tukey & Larsen 1978)."""


@dataclass(frozen=True, kw_only=True)
class Trial:
    """One experiment against the plain series and, where there is one, the control.

    `ratios`: by size in bytes, how many times as fast it was as the control, else as the plain
    series; above 1 is faster. `faster` and `slower` are said only where the difference from both is
    larger than the doubt about the medians, and than 5 %.
    """

    environment: dict[str, str]
    outcome: Outcome
    ratios: dict[int, float]
    transport: str | None


def trials(sweep: Sweep) -> tuple[Trial, ...]:
    """All experiments of a sweep that have a plain series to stand beside."""
    found = []
    for series in sweep.series:
        plain = plain_of(sweep, series)
        if series.environment and plain is not None:
            bases = [base for base in (sweep.control, plain) if base and _is_like(base, series)]
            if trial := _compare(series, bases):
                found.append(trial)
    return tuple(found)


def plain_of(sweep: Sweep, series: Series) -> Series | None:
    """The same collective without the experiment's variables."""
    return next(
        (one for one in sweep.series if not one.environment and _is_like(one, series)), None
    )


def drift_ratio(sweep: Sweep) -> float | None:
    """How far two launches of the same thing lay apart, at the worst size; None without control."""
    plain = plain_of(sweep, sweep.control) if sweep.control is not None else None
    if sweep.control is None or plain is None:
        return None
    pairs = _pairs(sweep.control, [plain])
    return max((_apart(point, base) for point, (base,) in pairs), default=None)


def _is_like(one: Series, other: Series) -> bool:
    kinds = [(series.operation, series.dtype, series.backend) for series in (one, other)]
    return kinds[0] == kinds[1]


def _compare(series: Series, bases: list[Series]) -> Trial | None:
    pairs = _pairs(series, bases)
    if not pairs:
        return None
    words = {_word(point, there) for point, there in pairs} - {"no difference"}
    outcome: Outcome = "mixed" if len(words) > 1 else next(iter(words), "no difference")
    return Trial(
        environment=series.environment,
        outcome=outcome,
        ratios={point.num_bytes: there[0].median_us / point.median_us for point, there in pairs},
        transport=series.transport,
    )


def _pairs(series: Series, bases: list[Series]) -> list[tuple[Point, list[Point]]]:
    """Each point with those of its size, of which there is one at least."""
    found = []
    for point in series.points:
        there = [one for base in bases for one in base.points if one.num_bytes == point.num_bytes]
        there = [one for one in there if one.median_us > 0]
        if there and point.median_us > 0:
            found.append((point, there))
    return found


def _word(point: Point, bases: list[Point]) -> Outcome:
    """Of one size: what all of `bases` agree on."""
    words = {_against(base, point) for base in bases}
    return words.pop() if len(words) == 1 else "no difference"


def _against(base: Point, point: Point) -> Outcome:
    doubt = math.hypot(_doubt_ratio(base), _doubt_ratio(point))
    if _apart(point, base) <= max(LEAST_DIFFERENCE, doubt):
        return "no difference"
    return "faster" if point.median_us < base.median_us else "slower"


def _apart(point: Point, base: Point) -> float:
    """How many times the shorter of two medians lies in the longer, less one."""
    return max(point.median_us, base.median_us) / min(point.median_us, base.median_us) - 1


def _doubt_ratio(point: Point) -> float:
    """How far the median may be off, as a share of it."""
    if point.p25_us is None or point.p75_us is None:
        return min(MOST_BY_P90, max(0.0, point.p90_us / point.median_us - 1))
    quartiles_apart = point.p75_us - point.p25_us
    return MEDIAN_95 * quartiles_apart / point.median_us / math.sqrt(point.repeats)
