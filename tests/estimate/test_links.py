"""Times of collectives from sweeps, also from those of real links."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ringside.estimate.links import Link
from ringside.measurements import Point, Series, Sweep

LAB = Path(__file__).parents[3] / "shared" / "lab" / "h200x2"


def lab_sweep(transport: str) -> Sweep:
    """The lab's all-reduces of two GPUs."""
    path = LAB / transport / "sweep.json"
    if not path.exists():
        pytest.skip(f"{path} is not on this machine")
    rows = json.loads(path.read_text())
    series = tuple(
        Series(
            operation="all_reduce", dtype=dtype, backend="nccl", num_ranks=2,
            points=tuple(
                Point(num_bytes=1024 * row["kib"], median_us=1000 * row["ms"],
                      p90_us=1000 * row["ms"], repeats=20)
                for row in rows if row["dtype"] == name
            ),
        )
        for name, dtype in (("torch.float32", "fp32"), ("torch.bfloat16", "bf16"))
    )  # fmt: skip
    return Sweep(t=0.0, key="k", device_name="NVIDIA H200", num_ranks=2, series=series)


@pytest.mark.parametrize("transport", ["nvlink", "shm", "socket"])
def test_a_size_that_was_left_out_is_told_from_its_neighbours(transport):
    """97 MiB, ResNet-50's gradients in one piece, from 64 and 256 MiB."""
    sweep = lab_sweep(transport)
    num_bytes = 97136 * 1024
    points = tuple(p for p in sweep.series[0].points if p.num_bytes != num_bytes)
    measured = next(p for p in sweep.series[0].points if p.num_bytes == num_bytes).median_us
    kept = Series(operation="all_reduce", dtype="fp32", backend="nccl", num_ranks=2, points=points)
    link = Link(Sweep(t=0, key="k", device_name="", num_ranks=2, series=(kept,)), 2)
    assert link.timing("all_reduce", num_bytes).us == pytest.approx(measured, rel=0.05)


def test_half_the_bytes_take_half_the_time_over_sockets():
    link = Link(lab_sweep("socket"), 2)
    whole, half = (
        link.timing("all_reduce", n, d).us for n, d in ((2**25, "fp32"), (2**24, "bf16"))
    )
    assert half / whole == pytest.approx(0.5, abs=0.05)


def test_outside_the_measured_sizes(make_sweep):
    link = Link(make_sweep(100), 2)
    smallest = link.timing("all_reduce", 2**14).us
    assert link.timing("all_reduce", 1000).us == smallest
    beyond = link.timing("all_reduce", 2**32)
    assert beyond.is_extrapolated
    assert beyond.us == pytest.approx(100 * 2**32 / 1e6)
    assert link.timing("all_reduce", 2**34) is None


def test_experiments_and_other_operations_do_not_stand_in(make_sweep):
    whole = make_sweep(100)
    only = tuple(s for s in whole.series if s.operation == "all_reduce" and s.dtype == "fp32")
    tried = tuple(
        Series(
            operation=s.operation, dtype=s.dtype, backend=s.backend, num_ranks=2,
            points=tuple(
                Point(num_bytes=p.num_bytes, median_us=1.0, p90_us=1.0, repeats=1)
                for p in s.points
            ),
            environment={"NCCL_ALGO": "Ring"},
        )
        for s in only
    )  # fmt: skip
    sweep = Sweep(t=0, key="k", device_name="", num_ranks=2, series=(*tried, *only))
    link = Link(sweep, 2)
    assert link.timing("all_gather", 10**6) is None
    assert link.timing("all_reduce", 10**6).us == pytest.approx(100)
    # 16 bit travels as fast as 32 bit of as many bytes.
    assert link.timing("all_reduce", 10**6, "bf16").us == pytest.approx(100)
    assert Link(sweep, 2, contention_ratio=1.5).timing("all_reduce", 10**6).us == pytest.approx(150)
    assert link.free().timing("all_reduce", 10**6).us == 0
    assert Link(sweep, 1).timing("all_reduce", 10**6).us == 0
