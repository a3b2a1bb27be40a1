"""Sets of time, as arrays: how much of it there is, what two of them share, what one leaves over.

A set is a pair (starts, ends) of int64 arrays in nanoseconds: sorted, half-open [start, end),
neither touching nor overlapping. `union` makes one from any spans; the other functions take and
give such sets.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Times = NDArray[np.int64]
    Spans = tuple[Times, Times]


def union(starts: Times, ends: Times) -> Spans:
    """The set that any spans cover together; spans without length count for nothing."""
    import numpy as np

    keep = ends > starts
    starts, ends = starts[keep], ends[keep]
    if not len(starts):
        return starts, ends
    order = np.argsort(starts, kind="stable")
    starts, ends = starts[order], np.maximum.accumulate(ends[order])
    first = np.concatenate([[True], starts[1:] > ends[:-1]])
    last = np.concatenate([first[1:], [True]])
    return starts[first], ends[last]


def total(spans: Spans) -> int:
    """Nanoseconds in the set."""
    return int((spans[1] - spans[0]).sum())


def join(a: Spans, b: Spans) -> Spans:
    """Time that is in a or in b."""
    import numpy as np

    return union(np.concatenate([a[0], b[0]]), np.concatenate([a[1], b[1]]))


def intersect(a: Spans, b: Spans) -> Spans:
    """Time that is in both."""
    import numpy as np

    if not len(a[0]) or not len(b[0]):
        return a[0][:0], a[1][:0]
    # For each span of a: the first of b that ends after its start, and how many of b it meets.
    first = np.searchsorted(b[1], a[0], side="right")
    count = np.maximum(np.searchsorted(b[0], a[1], side="left") - first, 0)
    of_a = np.repeat(np.arange(len(count)), count)
    of_b = np.arange(len(of_a)) - np.repeat(np.cumsum(count) - count, count) + first[of_a]
    return np.maximum(a[0][of_a], b[0][of_b]), np.minimum(a[1][of_a], b[1][of_b])


def subtract(a: Spans, b: Spans) -> Spans:
    """Time that is in a and not in b."""
    import numpy as np

    if not len(b[0]):
        return a
    low, high = np.iinfo(np.int64).min, np.iinfo(np.int64).max
    outside = np.concatenate([[low], b[1]]), np.concatenate([b[0], [high]])
    return intersect(a, outside)


def clip(spans: Spans, start: int, end: int) -> Spans:
    """The part of a set between two moments."""
    import numpy as np

    return intersect(spans, (np.array([start], np.int64), np.array([end], np.int64)))
