"""Sets of time, against a reference that looks at every single nanosecond."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ringside.trace import intervals as iv

SPANS = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 12)), max_size=12)


def arrays(spans):
    return (
        np.array([start for start, _ in spans], np.int64),
        np.array([start + length for start, length in spans], np.int64),
    )


def moments(spans) -> set[int]:
    return {t for start, length in spans for t in range(start, start + length)}


def inside(spans) -> set[int]:
    return {t for start, end in zip(*spans, strict=True) for t in range(start, end)}


def is_set(spans) -> bool:
    """Sorted, not empty, and with a gap between any two."""
    starts, ends = spans
    return bool(np.all(ends > starts) and np.all(starts[1:] > ends[:-1]))


@given(SPANS)
def test_union_covers_what_any_span_covers(spans):
    got = iv.union(*arrays(spans))
    assert is_set(got)
    assert inside(got) == moments(spans)
    assert iv.total(got) == len(moments(spans))


@given(SPANS, SPANS)
def test_two_sets(a, b):
    x, y = iv.union(*arrays(a)), iv.union(*arrays(b))
    assert inside(iv.intersect(x, y)) == moments(a) & moments(b)
    assert inside(iv.subtract(x, y)) == moments(a) - moments(b)
    assert inside(iv.join(x, y)) == moments(a) | moments(b)
    assert iv.total(iv.intersect(x, y)) + iv.total(iv.subtract(x, y)) == iv.total(x)
    assert is_set(iv.join(x, y))
    assert is_set(iv.subtract(x, y))


@given(SPANS, st.integers(-2, 60), st.integers(0, 30))
def test_clip(spans, start, length):
    got = iv.clip(iv.union(*arrays(spans)), start, start + length)
    assert inside(got) == moments(spans) & set(range(start, start + length))
