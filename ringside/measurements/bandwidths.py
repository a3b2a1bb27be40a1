"""What a series of times says in bytes a second."""

from __future__ import annotations

from dataclasses import dataclass

from ringside.measurements.sweep import Series
from ringside.trace.bandwidth import bus_bandwidth

# Below it the time to start counts for more than the link.
LARGE_BYTES = 16 * 2**20


@dataclass(frozen=True, kw_only=True)
class Bandwidth:
    """One size; `busbw_bytes_per_s` is None on one rank."""

    num_bytes: int
    algbw_bytes_per_s: float
    busbw_bytes_per_s: float | None


def bandwidths(series: Series) -> tuple[Bandwidth, ...]:
    """algbw and busbw of nccl-tests (doc/PERFORMANCE.md) for each point, smallest first."""
    found = []
    for point in series.points:
        if point.median_us <= 0:
            continue
        seconds = point.median_us * 1e-6
        # Here a size is that of the whole array; bus_bandwidth takes one rank's input.
        parts = series.num_ranks if series.operation == "all_gather" else 1
        found.append(
            Bandwidth(
                num_bytes=point.num_bytes,
                algbw_bytes_per_s=point.num_bytes / seconds,
                busbw_bytes_per_s=bus_bandwidth(
                    series.operation, point.num_bytes // parts, series.num_ranks, seconds
                ),
            )
        )
    return tuple(found)


def plateau(series: Series) -> Bandwidth | None:
    """The largest message; None when it is smaller than 16 MiB, or of one rank."""
    rows = bandwidths(series)
    if not rows or rows[-1].num_bytes < LARGE_BYTES or rows[-1].busbw_bytes_per_s is None:
        return None
    return rows[-1]
