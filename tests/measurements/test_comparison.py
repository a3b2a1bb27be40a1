"""Trials beside the machine as it is, on figures of two H200s that other jobs used meanwhile."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from ringside.measurements import Point, Series, Sweep
from ringside.measurements.comparison import drift_ratio, trials

MIB = 2**20
RECORDED = Path(__file__).with_name("two_h200_beside_other_jobs.json")


def outcomes(sweep: Sweep) -> dict[str, str]:
    return {
        " ".join(f"{name}={value}" for name, value in trial.environment.items()): trial.outcome
        for trial in trials(sweep)
    }


def test_twice_the_time_is_slower_however_late_a_tenth_of_the_repeats_was() -> None:
    """The 90th percentiles lie at 2 to 240 times the medians, for other jobs held the GPUs."""
    sweep = msgspec.json.decode(RECORDED.read_bytes(), type=Sweep)
    assert outcomes(sweep) == {
        "NCCL_ALGO=Ring": "no difference", "NCCL_PROTO=LL128": "no difference",
        "NCCL_MIN_CTAS=16": "slower", "NCCL_P2P_DISABLE=1": "slower",
    }  # fmt: skip


def point(median: float, *, width: float = 0.02, late: float = 1.0, repeats: int = 100) -> Point:
    """`width`: between the quartiles, as a share of the median; the slowest tenth took `late`."""
    return Point(
        num_bytes=MIB, median_us=median, p90_us=late * median, repeats=repeats,
        p25_us=median * (1 - width / 2), p75_us=median * (1 + width / 2),
    )  # fmt: skip


def series(one: Point, **environment: str) -> Series:
    return Series(
        operation="all_reduce", dtype="fp32", backend="nccl", num_ranks=2, points=(one,),
        environment=environment,
    )  # fmt: skip


def sweep(plain: Point, tried: Point, control: Point | None = None) -> Sweep:
    return Sweep(
        t=0.0, key="k", device_name="GPU", num_ranks=2,
        series=(series(plain), series(tried, NCCL_ALGO="Ring")),
        control=None if control is None else series(control),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("plain", "tried", "outcome"),
    [
        (point(100), point(115), "slower"),
        (point(100), point(85), "faster"),
        (point(100), point(104), "no difference"),
        # A tenth of the repeats was late; the quartiles know nothing of it.
        (point(100, late=40), point(85, late=40), "faster"),
        # Half of the repeats as far apart as the median itself, and few of them.
        (point(100, width=1.0, repeats=10), point(130, width=1.0, repeats=10), "no difference"),
        (point(100, width=1.0, repeats=1000), point(130, width=1.0, repeats=1000), "slower"),
    ],
)
def test_medians_are_told_apart_by_quartiles(plain: Point, tried: Point, outcome: str) -> None:
    assert outcomes(sweep(plain, tried)) == {"NCCL_ALGO=Ring": outcome}


@pytest.mark.parametrize(
    ("control", "outcome"),
    [(point(100), "slower"), (point(118), "no difference"), (point(140), "no difference")],
)
def test_a_difference_that_two_plain_launches_have_too_is_none(
    control: Point, outcome: str
) -> None:
    found = sweep(point(100), point(120), control)
    (trial,) = trials(found)
    assert trial.outcome == outcome
    assert trial.ratios == {MIB: pytest.approx(control.median_us / 120)}
    assert drift_ratio(found) == pytest.approx(control.median_us / 100 - 1)


def test_without_a_control_no_drift_is_known() -> None:
    assert drift_ratio(sweep(point(100), point(100))) is None


def test_a_wrong_difference_is_said_in_about_one_of_twenty(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two series of the same normal times, which spread so much that 5 % hides nothing."""
    monkeypatch.setattr("ringside.measurements.comparison.LEAST_DIFFERENCE", 0.0)
    random = np.random.default_rng(0)

    def drawn() -> Point:
        times = random.normal(100, 10, 100)
        p25, median, p75, p90 = np.quantile(times, [0.25, 0.5, 0.75, 0.9]).tolist()
        made: dict[str, Any] = {"p25_us": p25, "p75_us": p75, "p90_us": p90}
        return Point(num_bytes=MIB, median_us=median, repeats=100, **made)

    told = [outcomes(sweep(drawn(), drawn()))["NCCL_ALGO=Ring"] for _ in range(1000)]
    assert 0.02 < np.mean([one != "no difference" for one in told]) < 0.09
