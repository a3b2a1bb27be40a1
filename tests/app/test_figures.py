"""Numbers as text: with unit, in comparable figures, and a dash when missing."""

from __future__ import annotations

import pytest

from app.views import figures
from app.views.machine import machine_lines
from ringside.hardware import Gpu, Hardware
from ringside.words import speaking


@pytest.mark.parametrize(
    ("function", "value", "text"),
    [
        (figures.seconds, 0.0, "0.00 s"),
        (figures.seconds, 38.24, "38.2 s"),
        (figures.seconds, 232, "3 m 52 s"),
        (figures.seconds, 7500, "2 h 05 m"),
        (figures.whole_seconds, 9.4, "9 s"),
        (figures.milliseconds, 40.84, "40.8 ms"),
        (figures.milliseconds, 1500, "1.50 s"),
        (figures.count, 480_000, "480,000"),
        (figures.count, 69.84, "69.8"),
        (figures.count, 53, "53"),
        (figures.ratio, 1.966, "1.97×"),
        (figures.percent, 0.58, "58 %"),
        (figures.percent, 0.015, "1.5 %"),
        (figures.delta, 0.0041, "+0.004"),
        (figures.delta, -0.0211, "−0.021"),
        (figures.delta, -0.0001, "±0.000"),
        (figures.size, 94_850_000, "94.8 MB"),
        (figures.size, 999, "999 B"),
    ],
)
def test_text_of_a_number(function, value, text):
    assert function(value) == text


@pytest.mark.parametrize(
    "function",
    [
        figures.seconds, figures.whole_seconds, figures.milliseconds, figures.count, figures.ratio,
        figures.percent, figures.score, figures.delta, figures.size, figures.clock,
    ],
)  # fmt: skip
def test_missing_is_a_dash_and_never_zero(function):
    assert function(None) == "–"


@pytest.mark.parametrize(
    ("gone_s", "text"),
    [(1, "1 s"), (99, "99 s"), (240, "4 min"), (10_900, "3 h"), (200_000, "2 days")],
)
def test_how_long_ago(gone_s, text):
    assert figures.since(1000.0, 1000.0 + gone_s) == text


def test_days_are_days_of_the_reader_s_language():
    with speaking("zh"):
        assert figures.since(0.0, 200_000.0) == "2 天"


def test_a_clock_that_went_back_is_no_negative_age():
    assert figures.since(1000.0, 990.0) == "0 s"


def test_machine_without_gpus(hardware):
    assert machine_lines(hardware) == ("2 CPU cores", "torch 2.14 · accelerate 1.15")


def test_machine_with_gpus_names_and_counts_them():
    gpus = tuple(
        Gpu(index=i, name="NVIDIA H200", uuid=f"GPU-{i}", memory_total_bytes=1, memory_used_bytes=0)
        for i in range(2)
    )
    lines = machine_lines(Hardware(gpus=gpus, num_cores=32))
    assert lines == ("2 × NVIDIA H200 · 32 CPU cores", "")
