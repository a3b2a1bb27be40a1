"""Arms taken apart, on numbers that can be checked by hand."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ringside.measurements import Arm, Experiment
from ringside.measurements.attribution import Attribution, attribution
from ringside.spec import RunSpec

NAMES = (
    "one", "many", "many_without_reduction", "many_synthetic", "many_synthetic_without_reduction",
)  # fmt: skip


@pytest.fixture
def take_apart(make_spec: Callable[..., RunSpec]) -> Callable[..., Attribution]:
    """Arms in the order of NAMES: a number is that step five times, with `noise` around it."""

    def take(*steps: float | tuple[float, ...] | str, noise: float = 0.0) -> Attribution:
        arms = []
        for name, step in zip(NAMES, steps, strict=True):
            blocks, problem = step, None
            if isinstance(step, str):
                blocks, problem = (), step
            elif not isinstance(step, tuple):
                blocks = tuple(step + noise * k for k in (-2, -1, 0, 1, 2))
            arms.append(Arm(name=name, num_processes=2, step_ms=blocks, problem=problem))
        spec = make_spec("ddp")
        return attribution(
            Experiment(t=1.0, key="k", spec=spec, device_name="cpu", arms=tuple(arms))
        )

    return take


def test_images_that_come_in_bursts_count_in_the_mean(
    make_spec: Callable[..., RunSpec],
) -> None:
    """One block waits for what the four others use; where nothing waits, it is an outlier."""
    uneven = (250.0, 250.0, 250.0, 1188.0, 250.0)

    def found(data_ms: float | None) -> Attribution:
        arms = [
            Arm(name="many", num_processes=2, step_ms=uneven, data_ms=data_ms),
            Arm(name="many_synthetic", num_processes=2, step_ms=(250.0,) * 5, data_ms=0.0),
        ]
        spec = make_spec("ddp")
        return attribution(
            Experiment(t=1.0, key="k", spec=spec, device_name="cpu", arms=tuple(arms))
        )

    starved, fed = found(187.6), found(3.0)
    assert starved.step_ms == pytest.approx(437.6)
    assert starved.step_spread_ms == pytest.approx(np.std(uneven, ddof=1))
    assert starved.input is not None
    assert starved.input.ms == pytest.approx(187.6)
    assert (fed.step_ms, fed.step_spread_ms) == (250.0, 0.0)
    assert found(None).step_ms == 250.0


def test_costs_that_add_up(take_apart: Callable[..., Attribution]) -> None:
    found = take_apart(70.0, 100.0, 75.0, 90.0, 65.0)
    assert (found.step_ms, found.own_work_ms, found.step_spread_ms) == (100.0, 65.0, 0.0)
    assert found.communication is not None
    assert (found.communication.ms, found.communication.share_ratio) == (25.0, 0.25)
    assert found.input is not None
    assert (found.input.ms, found.input.share_ratio) == (10.0, 0.1)
    assert found.contention is not None
    assert found.contention.ms == 5.0
    assert found.unexplained is not None
    assert (found.unexplained.ms, found.unexplained.state) == (0.0, "within_noise")
    assert (found.predicted_ms, found.prediction_error_ratio) == (65.0, 0.0)
    assert found.efficiency_ratio == 0.7
    assert [part.name for part in found.parts] == [
        "communication", "input", "contention", "unexplained",
    ]  # fmt: skip


def test_an_exchange_that_hides_behind_the_input(take_apart: Callable[..., Attribution]) -> None:
    """The loader needs 60 ms; computing takes 20, and the exchange 3 more where it is fed."""
    found = take_apart(60.0, 60.0, 60.0, 23.0, 20.0)
    assert found.communication is not None
    assert (found.communication.ms, found.communication.state) == (0.0, "within_noise")
    assert found.input is not None
    assert found.input.ms == 37.0
    assert found.unexplained is not None
    assert (found.unexplained.ms, found.unexplained.state) == (3.0, "measured")
    assert found.predicted_ms == 23.0
    assert found.prediction_error_ratio == pytest.approx(0.15)


def test_costs_that_share_time(take_apart: Callable[..., Attribution]) -> None:
    """Either way 30 ms are saved, and both ways not 60 but 40."""
    found = take_apart(50.0, 100.0, 70.0, 70.0, 60.0)
    assert found.unexplained is not None
    assert (found.unexplained.ms, found.unexplained.state) == (-20.0, "negative")
    assert found.unexplained.shown_ms == -20.0
    assert found.predicted_ms == 40.0


def test_spreads_are_of_the_blocks_and_add_up_in_squares(
    take_apart: Callable[..., Attribution],
) -> None:
    found = take_apart(70.0, 100.0, 75.0, 90.0, 65.0, noise=1.0)
    own = 1.4826  # The blocks are 0, 1, 1, 2 and 2 away from their middle.
    assert found.step_spread_ms == pytest.approx(own)
    assert found.communication is not None
    assert found.communication.spread_ms == pytest.approx(own * 2**0.5)
    assert found.unexplained is not None
    assert found.unexplained.spread_ms == pytest.approx(own * 5**0.5)


def test_one_disturbed_block_moves_nothing(take_apart: Callable[..., Attribution]) -> None:
    found = take_apart(70.0, (100.0, 100.0, 100.0, 100.0, 900.0), 75.0, 90.0, 65.0)
    assert (found.step_ms, found.step_spread_ms) == (100.0, 0.0)


def test_a_drift_between_two_rounds_is_spread(take_apart: Callable[..., Attribution]) -> None:
    found = take_apart(70.0, (90.0,) * 5 + (110.0,) * 5, 95.0, 90.0, 65.0)
    assert found.step_spread_ms == pytest.approx(14.826)
    assert found.communication is not None
    assert found.communication.state == "within_noise"
    assert (found.communication.ms, found.communication.shown_ms) == (5.0, 0.0)


def test_a_negative_cost_within_the_spread_is_shown_as_none(
    take_apart: Callable[..., Attribution],
) -> None:
    found = take_apart(70.0, 100.0, 101.0, 90.0, 91.0, noise=1.0)
    assert found.communication is not None
    assert (found.communication.ms, found.communication.state) == (-1.0, "within_noise")
    assert found.communication.shown_ms == 0.0


def test_a_negative_cost_beyond_the_spread_is_unexplained_and_not_hidden(
    take_apart: Callable[..., Attribution],
) -> None:
    """Without its exchange the step takes 20 ms longer, and no cost can do that."""
    found = take_apart(70.0, 100.0, 120.0, 90.0, 110.0)
    assert found.communication is not None
    assert (found.communication.ms, found.communication.state) == (-20.0, "negative")
    assert found.communication.shown_ms == 0.0
    assert found.unexplained is not None
    assert (found.unexplained.ms, found.unexplained.state) == (-20.0, "negative")
    faster = take_apart(130.0, 100.0, 120.0, 90.0, 110.0)
    assert faster.contention is not None
    assert (faster.contention.ms, faster.contention.state) == (-10.0, "negative")


@pytest.mark.parametrize("noise", [0.0, 3.0])
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])  # It only makes arms.
@given(steps=st.lists(st.floats(1, 1000), min_size=5, max_size=5))
def test_what_is_shown_adds_up_to_the_step(
    take_apart: Callable[..., Attribution], noise: float, steps: list[float]
) -> None:
    found = take_apart(*steps, noise=noise)
    assert found.communication is not None
    assert found.input is not None
    assert found.unexplained is not None
    shown = found.communication.shown_ms + found.input.shown_ms + found.unexplained.shown_ms
    assert (found.own_work_ms or 0) + shown == pytest.approx(found.step_ms)


def test_what_is_missing_takes_only_its_own_parts_along(
    take_apart: Callable[..., Attribution],
) -> None:
    no_reduction = take_apart(70.0, 100.0, "It did not start.", 90.0, "It did not start.")
    assert (no_reduction.communication, no_reduction.contention) == (None, None)
    assert (no_reduction.unexplained, no_reduction.own_work_ms) == (None, None)
    assert (no_reduction.predicted_ms, no_reduction.prediction_error_ratio) == (None, None)
    assert no_reduction.input is not None
    assert no_reduction.input.ms == 10.0
    assert no_reduction.missing == {
        "many_without_reduction": "It did not start.",
        "many_synthetic_without_reduction": "It did not start.",
    }
    no_one = take_apart("No memory.", 100.0, 75.0, 90.0, 65.0)
    assert (no_one.contention, no_one.efficiency_ratio) == (None, None)
    assert no_one.communication is not None
    nothing = take_apart(70.0, "No memory.", 75.0, 90.0, 65.0)
    assert (nothing.step_ms, nothing.parts) == (None, ())
    few = take_apart(70.0, 100.0, (75.0, 75.0), 90.0, 65.0)
    assert few.communication is None
    assert "2 of the 3 blocks" in few.missing["many_without_reduction"]
