"""Time that devices were held, and curves over steps, epochs, time and images."""

from __future__ import annotations

import math

import pytest

from ringside.compare import curve, smoothed
from ringside.compare.cost import cost_of
from ringside.events import EventWriter, WindowTimed
from ringside.records import write_owner
from ringside.run import fold_run

RUN = "20260102-000000-swift-hare"


def test_a_finished_run_cost_its_time_on_every_device(make_spec, write_run):
    # 100 steps of 0.1 s, the first epoch ten times as long: 100 + 10 + 10 s.
    cost = cost_of(fold_run(write_run(make_spec("ddp", num_processes=4), RUN)))
    assert (cost.wall_time_s, cost.until) == (pytest.approx(120), "finished")
    assert cost.device_hours == pytest.approx(4 * 120 / 3600)


def test_a_broken_run_cost_until_its_end(make_spec, write_run):
    cost = cost_of(fold_run(write_run(make_spec("ddp"), RUN, state="failed")))
    assert (cost.wall_time_s, cost.until) == (1000.0, "ended")


def test_a_run_that_goes_on_costs_so_far(make_spec, write_run):
    run = write_run(make_spec("ddp"), RUN, state=None)
    owner = write_owner(run, "supervisor")
    cost = cost_of(fold_run(run), now=owner.started + 90)
    assert (cost.wall_time_s, cost.until) == (pytest.approx(90), "now")
    assert cost.device_hours == pytest.approx(2 * 90 / 3600)


@pytest.fixture
def record(make_spec, write_run):
    """Three epochs of 100 steps with a window every 50."""
    run = write_run(make_spec("ddp"), RUN, step_s=0.1)
    writer = EventWriter(run.events)
    for step in range(50, 301, 50):
        writer.write(WindowTimed(
            epoch=(step - 1) // 100 + 1, step=step, num_steps=50, samples_per_s=1.0,
            train_loss=None if step == 150 else 1 / step, learning_rate=0.1, step_ms=100.0,
            data_ms=0.0, forward_ms=0.0, backward_ms=0.0, optimizer_ms=0.0, step_ms_min=100.0,
            data_ms_min=0.0,
        ))  # fmt: skip
    writer.close()
    return fold_run(run)


def test_windows_have_every_axis(record):
    found = curve(record, "train_loss").points
    assert [point.step for point in found] == [50, 100, 200, 250, 300]
    assert [point.epoch for point in found] == [0.5, 1.0, 2.0, 2.5, 3.0]
    assert [point.num_samples for point in found] == [s * 128 for s in (50, 100, 200, 250, 300)]
    # The first epoch took 100 s, the second 10; the windows say 5 s each.
    assert [point.time_s for point in found] == pytest.approx([5, 10, 110, 115, 120])
    assert [point.value for point in found] == [1 / 50, 1 / 100, 1 / 200, 1 / 250, 1 / 300]


def test_scores_stand_at_the_ends_of_epochs(record):
    found = curve(record, "auc_macro").points
    assert [(point.step, point.epoch) for point in found] == [(100, 1.0), (200, 2.0), (300, 3.0)]
    assert [point.time_s for point in found] == pytest.approx([100, 110, 120])


def test_before_the_first_line_there_is_no_curve(make_spec, write_run):
    run = write_run(make_spec("ddp"), RUN, epochs=0, state=None)
    assert curve(fold_run(run), "auc_macro").points == ()
    run.events.unlink()
    assert curve(fold_run(run), "train_loss").points == ()


def test_smoothing_keeps_constants_and_starts_without_bias():
    assert smoothed([3.0] * 5, 0.9) == pytest.approx([3.0] * 5)
    assert smoothed([1.0, 2.0, 7.0], 0.0) == [1.0, 2.0, 7.0]


def test_smoothing_is_the_weighted_mean_of_what_was_so_far():
    values, weight = [0.3, 1.7, -2.0, 5.0], 0.6
    for n, value in enumerate(smoothed(values, weight), start=1):
        weights = [weight ** (n - 1 - i) for i in range(n)]
        by_hand = sum(w * v for w, v in zip(weights, values, strict=False)) / math.fsum(weights)
        assert value == pytest.approx(by_hand)


@pytest.mark.parametrize("weight", [1.0, -0.1, float("nan")])
def test_a_weight_beyond_its_range_is_refused(weight):
    with pytest.raises(ValueError, match="below 1"):
        smoothed([1.0], weight)
