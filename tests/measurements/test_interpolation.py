"""Between measured sizes, beyond them, and the two figures that sum a series up."""

from __future__ import annotations

import json
import statistics
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringside.measurements import Point, Series
from ringside.measurements.interpolation import interpolate_us, summary

MIB = 2**20
LAB = Path(__file__).parents[3] / "shared" / "lab" / "h200x2"
SWEEPS = sorted(LAB.glob("*/sweep.json"))


def series(*points: tuple[int, float], operation: str = "all_reduce", num_ranks: int = 2) -> Series:
    return Series(
        operation=operation,
        dtype="fp32",
        backend="nccl",
        num_ranks=num_ranks,
        points=tuple(
            Point(num_bytes=size, median_us=us, p90_us=us, repeats=5) for size, us in points
        ),
    )


def line(alpha_us: float, bytes_per_us: float, sizes: list[int], **fields: object) -> Series:
    return series(*((size, alpha_us + size / bytes_per_us) for size in sizes), **fields)


SIZES = [2**14 * 4**i for i in range(8)]


def test_a_line_of_start_and_bytes_is_met_between_its_points() -> None:
    found = line(50.0, 1000.0, SIZES)
    for size in (20_000, 3 * MIB, 26 * MIB, 97_136 * 1024):
        assert interpolate_us(found, size) == pytest.approx(50 + size / 1000)


def test_a_measured_size_is_itself() -> None:
    assert interpolate_us(series((1000, 7.0), (4000, 5.0), (9000, 11.0)), 4000) == 5.0


def test_outside_by_a_factor_of_two_and_no_farther() -> None:
    found = line(50.0, 1000.0, SIZES)
    assert interpolate_us(found, 2 * SIZES[-1]) == pytest.approx(50 + 2 * SIZES[-1] / 1000)
    assert interpolate_us(found, SIZES[0] // 2) == pytest.approx(50 + SIZES[0] / 2000)
    assert interpolate_us(found, 2 * SIZES[-1] + 1) is None
    assert interpolate_us(found, SIZES[0] // 2 - 1) is None


def test_beyond_the_ends_a_time_neither_falls_with_the_size_nor_grows_faster() -> None:
    falling = series((1000, 9.0), (2000, 5.0))
    assert interpolate_us(falling, 3000) == 5.0
    assert interpolate_us(falling, 500) == 9.0
    steep = series((1000, 1.0), (2000, 10.0))
    assert interpolate_us(steep, 4000) == pytest.approx(20.0)
    assert interpolate_us(steep, 500) == pytest.approx(0.5)


def test_nothing_is_made_up() -> None:
    assert interpolate_us(series(), 1000) is None
    assert interpolate_us(series((1000, 5.0)), 1500) is None
    assert interpolate_us(series((1000, 5.0)), 1000) == 5.0
    assert interpolate_us(series((1000, 5.0), (2000, 6.0)), 0) is None


@given(
    st.lists(st.tuples(st.integers(1, 2**28), st.floats(1, 1e6)), min_size=2, max_size=12),
    st.integers(1, 2**29),
)
def test_between_two_neighbours_the_time_is_between_theirs(
    points: list[tuple[int, float]], size: int
) -> None:
    points = sorted(dict(points).items())
    found = interpolate_us(series(*points), size)
    inside = points[0][0] <= size <= points[-1][0]
    if len(points) > 1 and inside:
        below = max(p for p in points if p[0] <= size)
        above = min(p for p in points if p[0] >= size)
        assert found is not None
        assert min(below[1], above[1]) * 0.999999 <= found <= max(below[1], above[1]) * 1.000001
    elif found is not None:
        assert found > 0


@pytest.mark.skipif(not SWEEPS, reason="the sweeps of two H200s are not beside this checkout")
def test_left_out_sizes_of_two_h200s_come_back() -> None:
    errors = []
    for path in SWEEPS:
        rows = json.loads(path.read_text())
        for dtype in ("torch.float32", "torch.bfloat16"):
            points = [(r["kib"] * 1024, 1000 * r["ms"]) for r in rows if r["dtype"] == dtype]
            for out in range(1, len(points) - 1):
                size, us = points[out]
                found = interpolate_us(series(*points[:out], *points[out + 1 :]), size)
                assert found is not None
                errors.append(abs(found / us - 1))
    assert statistics.mean(errors) < 0.04
    assert statistics.median(errors) < 0.03
    assert max(errors) < 0.2  # 256 KiB over sockets, with neighbours 4 times smaller and larger.


@pytest.mark.parametrize(
    ("operation", "num_ranks", "factor"),
    [("all_reduce", 2, 1.0), ("all_reduce", 4, 1.5), ("reduce_scatter", 4, 0.75),
     ("all_gather", 4, 0.75)],
)  # fmt: skip
def test_a_summary_gives_back_the_start_and_the_bus(
    operation: str, num_ranks: int, factor: float
) -> None:
    sizes = [MIB, 4 * MIB, 16 * MIB, 64 * MIB]
    found = summary(line(60.0, 100_000.0, sizes, operation=operation, num_ranks=num_ranks))
    assert found is not None
    assert found[0] == pytest.approx(60.0)
    assert found[1] == pytest.approx(factor * 100e9)  # 100 000 bytes in a microsecond.


def test_a_summary_looks_at_its_own_range_only() -> None:
    sizes = [MIB, 4 * MIB, 16 * MIB, 64 * MIB]
    points = [(size, 60 + size / 100_000) for size in sizes]
    found = summary(series((16_384, 1e6), *points, (256 * MIB, 1.0)))
    assert found == pytest.approx((60.0, 100e9))


def test_a_summary_has_no_start_below_nothing() -> None:
    found = summary(series((MIB, 5.0), (4 * MIB, 30.0), (16 * MIB, 130.0)))
    assert found is not None
    assert found[0] == 0.0


def test_a_summary_is_none_without_enough_sizes_ranks_or_growth() -> None:
    sizes = [MIB, 4 * MIB, 16 * MIB]
    assert summary(line(1.0, 1.0, sizes[:2])) is None
    assert summary(line(1.0, 1.0, sizes, num_ranks=1)) is None
    assert summary(series((MIB, 50.0), (4 * MIB, 20.0), (16 * MIB, 5.0))) is None
