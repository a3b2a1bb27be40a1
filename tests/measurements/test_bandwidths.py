"""Bandwidths against the formulas of nccl-tests, and experiments against their own spread."""

from __future__ import annotations

import pytest

from ringside.measurements import Point, Series, Sweep
from ringside.measurements.bandwidths import bandwidths, plateau
from ringside.measurements.comparison import trials

MIB = 2**20


def series(times, *, operation="all_reduce", num_ranks=4, spread=1.0, **fields) -> Series:
    """`times`: microseconds by size; the 90th percentile lies `spread` times above."""
    points = tuple(
        Point(num_bytes=size, median_us=us, p90_us=us * spread, repeats=20)
        for size, us in times.items()
    )
    fields = {"dtype": "fp32", "backend": "nccl", **fields}
    return Series(operation=operation, num_ranks=num_ranks, points=points, **fields)


def sweep(*all_series) -> Sweep:
    return Sweep(t=0.0, key="k", device_name="GPU", num_ranks=4, series=all_series)


@pytest.mark.parametrize(
    ("operation", "factor"),
    [("all_reduce", 2 * 3 / 4), ("reduce_scatter", 3 / 4), ("all_gather", 3 / 4)],
)
def test_bus_bandwidth_is_that_of_nccl_tests(operation, factor):
    """64 MiB in 1 ms on four ranks; sizes are those of the whole array for all three."""
    (row,) = bandwidths(series({64 * MIB: 1000.0}, operation=operation))
    assert row.algbw_bytes_per_s == pytest.approx(64 * MIB / 1e-3)
    assert row.busbw_bytes_per_s == pytest.approx(factor * 64 * MIB / 1e-3)


def test_one_rank_has_no_bus():
    (row,) = bandwidths(series({MIB: 10.0}, num_ranks=1))
    assert row.busbw_bytes_per_s is None
    assert plateau(series({64 * MIB: 10.0}, num_ranks=1)) is None


def test_a_plateau_needs_a_large_message():
    assert plateau(series({MIB: 10.0, 4 * MIB: 20.0})) is None
    assert plateau(series({MIB: 10.0, 64 * MIB: 500.0})).num_bytes == 64 * MIB


@pytest.mark.parametrize(
    ("times", "spread", "outcome"),
    [
        ({MIB: 100.0, 32 * MIB: 1000.0}, 1.0, "no difference"),
        ({MIB: 100.0, 32 * MIB: 300.0}, 1.0, "faster"),
        ({MIB: 100.0, 32 * MIB: 3000.0}, 1.0, "slower"),
        ({MIB: 50.0, 32 * MIB: 3000.0}, 1.0, "mixed"),
        # 3 % is what two launches of one thing differ by.
        ({MIB: 97.0, 32 * MIB: 970.0}, 1.0, "no difference"),
        # A third faster, but its own repeats spread by half.
        ({MIB: 75.0, 32 * MIB: 750.0}, 1.5, "no difference"),
        ({MIB: 75.0, 32 * MIB: 750.0}, 1.1, "faster"),
    ],
)
def test_an_experiment_counts_beyond_the_spread(times, spread, outcome):
    plain = series({MIB: 100.0, 8 * MIB: 300.0, 32 * MIB: 1000.0})
    tried = series(times, spread=spread, environment={"NCCL_PROTO": "Simple"}, transport="SHM")
    (trial,) = trials(sweep(plain, tried))
    assert trial.outcome == outcome
    assert trial.ratios == pytest.approx({size: {MIB: 100, 32 * MIB: 1000}[size] / us
                                          for size, us in times.items()})  # fmt: skip
    assert (trial.environment, trial.transport) == ({"NCCL_PROTO": "Simple"}, "SHM")


def test_the_spread_of_the_plain_series_counts_too():
    plain = series({MIB: 100.0}, spread=1.6)
    tried = series({MIB: 70.0}, environment={"NCCL_ALGO": "Ring"})
    assert trials(sweep(plain, tried))[0].outcome == "no difference"


def test_an_experiment_without_its_like_is_left_out():
    plain = series({MIB: 100.0}, dtype="bf16")
    tried = series({MIB: 70.0}, environment={"NCCL_ALGO": "Ring"})
    other_sizes = series({2 * MIB: 70.0}, dtype="bf16", environment={"NCCL_ALGO": "Ring"})
    assert trials(sweep(plain, tried, other_sizes)) == ()
