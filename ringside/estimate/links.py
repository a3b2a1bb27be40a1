"""How long a collective takes between the ranks that will train, from a measured sweep."""

from __future__ import annotations

from dataclasses import dataclass

from ringside.measurements import Series, Sweep
from ringside.measurements.sweep import Operation

LINEAR_BEYOND = 16
"""Up to so many times the largest measured size, time is taken to grow with the size."""


@dataclass(frozen=True)
class Timing:
    """Microseconds of one collective, and whether that went beyond what was measured.

    `spread_ratio`: how much slower the slow tenth of the repeats was.
    """

    us: float
    spread_ratio: float
    is_extrapolated: bool


class Link:
    """The sweep as a function: operation, bytes, ranks to microseconds.

    Series of other variables than those of the machine as it is are experiments and do not count.
    `contention_ratio` multiplies every time; 0 is a link that takes none.
    """

    def __init__(self, sweep: Sweep, num_ranks: int, *, contention_ratio: float = 1.0) -> None:
        self.sweep, self.num_ranks = sweep, num_ranks
        self.contention_ratio = contention_ratio
        self._series = [series for series in sweep.series if not series.environment]

    def free(self) -> Link:
        """The same collectives in no time."""
        return Link(self.sweep, self.num_ranks, contention_ratio=0.0)

    @property
    def backend(self) -> str | None:
        """gloo or nccl; None for an empty sweep."""
        return self._series[0].backend if self._series else None

    def timing(self, operation: Operation, num_bytes: int, dtype: str = "fp32") -> Timing | None:
        """None where the operation was not measured or the size is far beyond the largest."""
        if self.num_ranks < 2 or num_bytes <= 0:
            return Timing(us=0.0, spread_ratio=0.0, is_extrapolated=False)
        series = self._choose(operation, dtype)
        if series is None or not series.points:
            return None
        found = _time_us(series, num_bytes)
        if found is None:
            return None
        measured_us, is_extrapolated = found
        scale = _share(self.num_ranks) / _share(series.num_ranks)
        return Timing(
            us=measured_us * scale * self.contention_ratio,
            spread_ratio=_spread(series, num_bytes),
            is_extrapolated=is_extrapolated or self.num_ranks != series.num_ranks,
        )

    def _choose(self, operation: Operation, dtype: str) -> Series | None:
        """The series of this type; where there is none, of another: the bytes are what counts."""
        fitting = [series for series in self._series if series.operation == operation]
        own = [series for series in fitting if series.dtype == dtype]
        halves = [series for series in fitting if dtype != "fp32" and series.dtype != "fp32"]
        return next(iter(own or halves or fitting), None)


def _time_us(series: Series, num_bytes: int) -> tuple[float, bool] | None:
    from ringside.measurements.interpolation import interpolate_us

    sizes = [point.num_bytes for point in series.points]
    if num_bytes < min(sizes):
        # Below the smallest size there is only the time to start.
        return min(series.points, key=lambda point: point.num_bytes).median_us, False
    if (found := interpolate_us(series, num_bytes)) is not None:
        return found, num_bytes > max(sizes)
    largest = max(series.points, key=lambda point: point.num_bytes)
    if num_bytes > LINEAR_BEYOND * largest.num_bytes:
        return None
    return largest.median_us * num_bytes / largest.num_bytes, True


def _spread(series: Series, num_bytes: int) -> float:
    """Of the measured size that is nearest."""
    near = min(series.points, key=lambda point: abs(point.num_bytes - num_bytes))
    return max(0.0, near.p90_us / near.median_us - 1) if near.median_us else 0.0


def _share(num_ranks: int) -> float:
    return (num_ranks - 1) / num_ranks
