"""Lengths of time as people write them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringside.durations import MAX_S, check_time_limit, duration, parse_duration
from ringside.errors import SpecError


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90s", 90), ("30m", 1800), ("30min", 1800), ("2h30m", 9000), ("2 h 30 min", 9000),
        ("1d", 86400), ("1D2H", 93600), ("1d1h1m1s", 90061),
    ],
)  # fmt: skip
def test_written_as_people_do(text, seconds):
    assert parse_duration(text) == seconds


@pytest.mark.parametrize("text", ["", " ", "90", "2h30", "1.5h", "-1h", "30m2h", "h", "9" * 50])
def test_anything_else_is_refused_with_an_example(text):
    with pytest.raises(SpecError, match=r"is no length of time.*90s, 30m or 2h30m"):
        parse_duration(text)


@given(st.integers(1, MAX_S))
def test_what_is_shown_can_be_read_again(seconds):
    assert parse_duration(duration(seconds)) == seconds


@pytest.mark.parametrize(("seconds", "text"), [(7200, "2 h"), (90, "1 min 30 s"), (0, "0 s")])
def test_parts_of_nothing_are_left_out(seconds, text):
    assert duration(seconds) == text


@pytest.mark.parametrize(("seconds", "given"), [(0, "0 s"), (-1, "-1 s"), (MAX_S + 1, "365 d 1 s")])
def test_a_limit_is_some_time_and_at_most_a_year(seconds, given):
    with pytest.raises(SpecError, match=f" {given} .* between 1 second and 365 days"):
        check_time_limit(seconds)


def test_no_limit_stays_none():
    assert check_time_limit(None) is None
    assert check_time_limit(MAX_S) == MAX_S
