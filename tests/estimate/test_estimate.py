"""The whole prediction: figures, what they rest on, and what is never invented."""

from __future__ import annotations

import os
from dataclasses import replace

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringside.estimate import Calibration, Inputs, calibrate, estimate, outcome_of, store_estimate
from ringside.events import WindowTimed
from ringside.hardware import Hardware
from ringside.measurements import Crowded, Sweep
from ringside.measurements.crowd import crowd_of
from ringside.measurements.store import Store, key_of_machine, key_of_model
from ringside.run import fold_run

SGD = {"optimizer": "sgd"}


@pytest.fixture
def spec(make_spec):
    return make_spec("ddp", micro_batch=32, training=SGD)


@pytest.fixture
def inputs(make_description, make_sweep):
    return Inputs(description=make_description(), sweep=make_sweep(), num_samples=1_000)


def test_a_prediction_by_hand(spec, inputs):
    """16.8 ms for 64 images, 15 whole steps in 1,000; one device takes 16 ms for 32."""
    found = estimate(spec, inputs)
    assert found.step_ms == pytest.approx(16.8)
    assert found.step_ms_low < 16.8 < found.step_ms_high
    assert found.epoch_time_s == pytest.approx(15 * 0.0168)
    assert found.samples_per_s == pytest.approx(64 / 0.0168)
    assert found.speedup == pytest.approx(2 * 16 / 16.8)
    assert found.exposed_ratio == pytest.approx(0.8 / 16.8)
    assert found.memory_bytes == sum(found.memory_parts.values())
    assert found.parts["backward_ms"] == pytest.approx(10)
    assert (found.confidence, found.missing) == ("medium", ())


def test_what_is_missing_is_a_sentence_and_no_number(spec, inputs, make_spec):
    nothing = estimate(spec, Inputs())
    assert nothing.step_ms is nothing.speedup is nothing.memory_bytes is None
    assert nothing.confidence == "not enough data"
    assert len(nothing.missing) == 1
    assert "one device" in nothing.missing[0]
    without_sweep = estimate(spec, Inputs(description=inputs.description))
    assert without_sweep.step_ms is None
    assert without_sweep.memory_bytes is not None
    far = estimate(make_spec("ddp", micro_batch=512, training=SGD), inputs)
    assert far.step_ms is None
    assert "512" in far.missing[0]
    uncounted = estimate(spec, with_changes(inputs, num_samples=None))
    assert uncounted.step_ms is not None
    assert uncounted.epoch_time_s is None
    assert "training images" in uncounted.missing[0]


def with_changes(inputs: Inputs, **changes) -> Inputs:
    return replace(inputs, **changes)


def test_processes_that_slow_each_other_down(spec, inputs, make_description):
    """Side by side a step takes 20 ms instead of 16, so gradients are ready later too."""
    crowd = Crowded(num_processes=2, batch=32, step_us=(19_000.0, 20_000.0, 21_000.0))
    crowded = make_description(crowded=(crowd,))
    found = estimate(spec, with_changes(inputs, description=crowded))
    assert found.step_ms == pytest.approx(20.8)
    assert found.speedup == pytest.approx(2 * 16 / 20.8)
    unknown = estimate(spec, with_changes(inputs, description=make_description(crowded=())))
    assert unknown.step_ms == pytest.approx(16.8)
    assert unknown.confidence == "low"
    assert any("slow each other down" in note for note in unknown.notes)


def test_a_crowd_on_the_host_leaves_the_device_its_pace(
    spec, inputs, make_description, make_profile
):
    crowd = Crowded(num_processes=2, batch=32, step_us=(20_000.0,))
    profile = make_profile(32, host_us=16_000.0, device_us=8_000.0)
    description = make_description(profile, crowded=(crowd,))
    found = estimate(spec, with_changes(inputs, description=description))
    assert found.parts["launch_ms"] == pytest.approx(20)
    assert found.parts["backward_ms"] == pytest.approx(5)


def test_the_crowd_is_plain_ddp_of_the_same_step(make_spec):
    asked = make_spec("fsdp", num_processes=4, micro_batch=32, precision="bf16")
    crowd = crowd_of(asked)
    assert (crowd.strategy, crowd.num_processes, crowd.micro_batch) == ("ddp", 4, 32)
    assert (crowd.accelerate.mixed_precision, crowd.channels_last) == ("bf16", False)


def test_images_that_come_too_slowly_bound_the_step(spec, inputs):
    found = estimate(spec, with_changes(inputs, data_rate_per_s=640.0))
    assert found.step_ms == pytest.approx(100)
    assert found.samples_per_s == pytest.approx(640)
    assert any("640" in note for note in found.notes)
    fast = estimate(spec, with_changes(inputs, data_rate_per_s=1e6))
    assert fast.step_ms == pytest.approx(16.8)


def test_going_beyond_what_was_measured_lowers_confidence(make_spec, inputs):
    four = estimate(make_spec("ddp", num_processes=4, micro_batch=32, training=SGD), inputs)
    assert four.confidence == "low"
    assert four.step_ms_high / four.step_ms > 1.2
    assert estimate(make_spec("fsdp", micro_batch=32, training=SGD), inputs).confidence == "low"
    assert estimate(make_spec("single", micro_batch=32, training=SGD), inputs).confidence == "high"


@given(st.floats(0.2, 5), st.floats(1, 5), st.floats(1, 3))
def test_a_worse_link_never_makes_a_faster_run(make_spec_once, link_us_per_mb, factor, work_ratio):
    make_spec, make_description, make_sweep = make_spec_once
    spec = make_spec("ddp", micro_batch=32, training=SGD)
    calibration = Calibration(work_ratio=work_ratio)

    def step_ms(us_per_mb: float) -> float:
        found = Inputs(make_description(), make_sweep(us_per_mb), 1_000, None, calibration)
        return estimate(spec, found).step_ms

    assert step_ms(factor * 100 * link_us_per_mb) >= step_ms(100 * link_us_per_mb) - 1e-9


@pytest.fixture(scope="module")
def make_spec_once(request):
    """The factories, which hold no state, for hypothesis, which wants no fixture of a function."""
    from tests.conftest import make_spec as spec_fixture
    from tests.estimate import conftest as here

    unwrap = lambda fixture: getattr(fixture, "__wrapped__", None) or fixture.__pytest_wrapped__.obj  # noqa: E731
    make_profile = unwrap(here.make_profile)()
    return (
        unwrap(spec_fixture)(),
        unwrap(here.make_description)(make_profile),
        unwrap(here.make_sweep)(),
    )


def windows(step_ms: float, *, data_ms: float = 0.0, epochs: int = 2) -> list[WindowTimed]:
    """Two windows an epoch; those of the first are slower."""
    return [
        WindowTimed(
            epoch=epoch, step=step, num_steps=10, samples_per_s=1.0, train_loss=0.5,
            learning_rate=0.1, step_ms=step_ms * (3 if epoch == 1 else 1) + data_ms,
            data_ms=data_ms, forward_ms=1.0, backward_ms=1.0, optimizer_ms=1.0, step_ms_min=1.0,
            data_ms_min=0.0, memory_bytes=600_000_000,
        )
        for epoch in range(1, epochs + 1)
        for step in (10, 20)
    ]  # fmt: skip


def test_a_run_corrects_the_replay_of_itself_and_of_its_neighbours(
    spec, inputs, write_run, make_spec, make_description, make_sweep
):
    """The truth: a link 2.5 times slower than swept, which the run shows in its step."""
    slow = Inputs(description=make_description(), sweep=make_sweep(1_000), num_samples=1_000)
    contended = Calibration(contention_ratio=2.5)
    truth = estimate(spec, with_changes(slow, calibration=contended))
    record = fold_run(write_run(spec, "20260101-000000-calm-otter"))
    record.windows = windows(truth.step_ms, data_ms=5.0)
    found = calibrate(record, slow.description, slow.sweep)
    assert found.contention_ratio == pytest.approx(2.5, rel=1e-3)
    assert found.work_ratio == pytest.approx(1, rel=1e-3)
    same = estimate(spec, with_changes(slow, calibration=found))
    assert same.step_ms == pytest.approx(truth.step_ms, rel=1e-3)
    assert any("calm-otter" in note for note in same.notes)
    other = make_spec("ddp", micro_batch=32, training=SGD | {"comm_hook": "bf16"})
    assert estimate(other, with_changes(slow, calibration=found)).step_ms == pytest.approx(
        estimate(other, with_changes(slow, calibration=contended)).step_ms, rel=1e-3
    )


def test_where_nothing_waits_the_work_takes_the_difference(
    spec, write_run, make_description, make_sweep
):
    sweep = make_sweep(1.0)
    record = fold_run(write_run(spec, "20260101-000000-calm-otter"))
    record.windows = windows(19.2)
    found = calibrate(record, make_description(), sweep)
    assert found.contention_ratio == 1
    assert found.work_ratio == pytest.approx(1.2, rel=0.01)


def test_a_run_without_steps_or_description_calibrates_nothing(spec, inputs, write_run):
    record = fold_run(write_run(spec, "20260101-000000-calm-otter"))
    assert calibrate(record, inputs.description, inputs.sweep) is None
    record.windows = windows(20.0)
    assert calibrate(record, None, inputs.sweep) is None


@pytest.fixture
def stored(root, spec, inputs, monkeypatch):
    """A store that holds what an estimate of `spec` needs on this machine."""
    hardware = Hardware(num_cores=2)
    store = Store(root)
    key = key_of_machine(hardware, 2, os.environ)
    store.save(Sweep(t=1.0, key=key, device_name="cpu", num_ranks=2, series=inputs.sweep.series))
    store.save(msgspec.structs.replace(inputs.description, key=key_of_model(spec)))
    return hardware


def test_the_prediction_stays_with_its_run(spec, stored, root, write_run):
    run = write_run(spec, "20260101-000000-calm-otter")
    assert outcome_of(fold_run(run)) is None
    kept = store_estimate(run, spec, stored, root)
    assert kept.step_ms == pytest.approx(16.8)
    assert run.estimate.exists()
    record = fold_run(run)
    assert outcome_of(record).step_ms is None
    record.windows = windows(16.0, data_ms=3.0)
    found = outcome_of(record)
    assert (found.predicted_step_ms, found.step_ms) == pytest.approx((16.8, 16.0))
    assert found.error_ratio == pytest.approx(0.05)
    assert found.memory_error_ratio == pytest.approx(found.predicted_memory_bytes / 6e8 - 1)


def test_what_goes_wrong_with_a_prediction_does_not_stop_a_run(spec, stored, root, write_run):
    run = write_run(spec, "20260101-000000-calm-otter")
    run.estimate.mkdir()
    assert store_estimate(run, spec, stored, root) is None
    assert outcome_of(fold_run(run)) is None
