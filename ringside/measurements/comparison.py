"""Whether a variable makes collectives faster: its series beside that of the machine as it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ringside.measurements.sweep import Point, Series, Sweep

Outcome = Literal["faster", "slower", "no difference", "mixed"]

# Two launches of the same thing differ by so much, whatever the repeats inside one say.
LEAST_DIFFERENCE = 0.05


@dataclass(frozen=True, kw_only=True)
class Trial:
    """One experiment against the plain series.

    `ratios`: by size in bytes, how many times as fast it was; above 1 is faster. `faster` and
    `slower` are said only where the difference is larger than the spread of both.
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
        if series.environment and plain is not None and (trial := _compare(series, plain)):
            found.append(trial)
    return tuple(found)


def plain_of(sweep: Sweep, series: Series) -> Series | None:
    """The same collective without the experiment's variables."""
    return next(
        (
            one
            for one in sweep.series
            if not one.environment
            and (one.operation, one.dtype, one.backend)
            == (series.operation, series.dtype, series.backend)
        ),
        None,
    )


def _compare(series: Series, plain: Series) -> Trial | None:
    by_size = {point.num_bytes: point for point in plain.points}
    pairs = [(by_size[p.num_bytes], p) for p in series.points if p.num_bytes in by_size]
    pairs = [(one, other) for one, other in pairs if one.median_us > 0 and other.median_us > 0]
    if not pairs:
        return None
    words = {_word(one, other) for one, other in pairs} - {"no difference"}
    outcome: Outcome = "mixed" if len(words) > 1 else next(iter(words), "no difference")
    return Trial(
        environment=series.environment,
        outcome=outcome,
        ratios={other.num_bytes: one.median_us / other.median_us for one, other in pairs},
        transport=series.transport,
    )


def _word(plain: Point, point: Point) -> Outcome:
    """Of one size; the spread of a point is how far its 90th percentile lies above its median."""
    spread = max(_spread(plain), _spread(point), LEAST_DIFFERENCE)
    if point.median_us * (1 + spread) < plain.median_us:
        return "faster"
    return "slower" if point.median_us > plain.median_us * (1 + spread) else "no difference"


def _spread(point: Point) -> float:
    return max(0.0, point.p90_us / point.median_us - 1)
