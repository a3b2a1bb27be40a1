"""From Kineto's microseconds to whole nanoseconds."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ringside.trace.intervals import Times


def nanoseconds(microseconds: list[float]) -> Times:
    """Whole nanoseconds; the whole microseconds apart, as a float cannot hold 1.7e18 ns."""
    import numpy as np

    values = np.array(microseconds, np.float64)
    whole = np.floor(values)
    parts = np.rint((values - whole) * 1000)
    return np.asarray(whole.astype(np.int64) * 1000 + parts.astype(np.int64), np.int64)


def ends(starts: list[float], durations: list[float]) -> Times:
    """Ends in whole nanoseconds, no finer than the starts: 1.7e15 µs (a clock that counts from
    1970) is a multiple of 0.25 µs in a float, and so are the ends that HTA rounds.
    """
    import numpy as np

    return nanoseconds((np.array(starts, np.float64) + np.array(durations, np.float64)).tolist())
