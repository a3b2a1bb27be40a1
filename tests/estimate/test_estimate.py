"""The whole prediction: figures, what they rest on, and what is never invented."""

from __future__ import annotations

import os
from dataclasses import replace

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringside.estimate import Calibration, Inputs, estimate, outcome_of, store_estimate
from ringside.estimate.keeping import inputs_for
from ringside.hardware import Hardware
from ringside.measurements import Crowded, Sweep
from ringside.measurements.crowd import crowd_of
from ringside.measurements.store import Store, key_of_machine, key_of_model
from ringside.run import fold_run
from tests.estimate.conftest import GRADIENTS

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
    assert (found.exposed_ratio, found.gain_ratio) == pytest.approx((0.8 / 16.8, 0.8 / 16.8))
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
    assert (far.memory_bytes, far.memory_parts, len(far.missing)) == (None, {}, 1)
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
    assert (crowd.accelerate.mixed_precision, crowd.channels_last) == ("bf16", True)


def crowd_of_two(step_us: float) -> tuple[Crowded, ...]:
    return (Crowded(num_processes=2, batch=32, step_us=(step_us,)),)


def test_images_that_come_too_slowly_bound_the_step(spec, inputs):
    found = estimate(spec, with_changes(inputs, data_rate_per_s=640.0))
    assert found.step_ms == pytest.approx(100)
    assert found.samples_per_s == pytest.approx(640)
    assert any("640" in note for note in found.notes)
    # One device would take 2,000 images a second, and these loaders have no more for it.
    assert found.speedup == pytest.approx(1)
    assert found.gain_ratio == 0
    fast = estimate(spec, with_changes(inputs, data_rate_per_s=1e6))
    assert fast.step_ms == pytest.approx(16.8)
    assert fast.speedup == pytest.approx(2 * 16 / 16.8)


def test_images_for_one_device_and_not_for_two(spec, inputs):
    """3,000 a second: one device takes 2,000 of them, two would take 3,810."""
    found = estimate(spec, with_changes(inputs, data_rate_per_s=3_000.0))
    assert found.speedup == pytest.approx(1.5)


def test_waiting_that_the_host_hides_is_not_to_be_won(
    make_spec, inputs, make_description, make_profile, make_sweep
):
    """The host launches 10 + 20 + 2 ms. At 128 images the optimizer takes the device 0.5 ms, so at
    32 that is its part of the device's 16.5 ms; casting takes 3/5 of it.

    In halves at 1 ms a megabyte the buckets take 1, 15 and 4 ms and 0.3 ms of casts. They are ready
    at shares 0.1, 0.5 and 1 of what the host launches from 10 to 30: 12, 20 and 30; so they arrive
    at 13, 35.2 and 39.3. The optimizer is done at 39.8, the next step's forward, launched from 32
    to 42, at 45.1 and its first bucket before the host has launched that far. The step is the
    host's, 32 ms, and the device only waits from 30 to 39.3.
    """
    late = tuple(msgspec.structs.replace(one, ready_us=2 * one.ready_us) for one in GRADIENTS)
    paced = make_profile(
        32, step_us=(32_000.0,), forward_us=10_000.0, backward_us=20_000.0, optimizer_us=2_000.0,
        host_us=32_000.0, device_us=16_500.0, gradients=late,
    )  # fmt: skip
    free = make_profile(
        128, step_us=(40_000.0,), forward_us=12_500.0, backward_us=27_000.0, optimizer_us=500.0,
        host_us=32_000.0, device_us=40_000.0,
    )  # fmt: skip
    slow = with_changes(
        inputs,
        description=make_description(paced, free, crowded=crowd_of_two(32_000.0)),
        sweep=make_sweep(1_000.0),
    )
    spec = make_spec("ddp", micro_batch=32, training=SGD | {"comm_hook": "bf16"})
    found = estimate(spec, slow)
    assert found.parts["optimizer_ms"] == pytest.approx(0.5)
    assert found.parts["communication_ms"] == pytest.approx(20.3)
    assert found.step_ms == pytest.approx(32)
    assert found.parts["exposed_ms"] == pytest.approx(20 + 15.225 + 4.06 - 30)
    assert found.gain_ratio == pytest.approx(0)
    assert any("the host sets the pace" in note for note in found.notes)


def test_going_beyond_what_was_measured_lowers_confidence(make_spec, inputs):
    four = estimate(make_spec("ddp", num_processes=4, micro_batch=32, training=SGD), inputs)
    assert four.confidence == "low"
    assert four.step_ms_high / four.step_ms > 1.2
    assert (
        estimate(make_spec("fsdp", micro_batch=32, training=SGD, device="cuda"), inputs).confidence
        == "low"
    )
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


@pytest.fixture
def stored(root, spec, inputs, monkeypatch):
    """A store that holds what an estimate of `spec` needs on this machine."""
    hardware = Hardware(num_cores=2)
    store = Store(root)
    key = key_of_machine(hardware, 2, os.environ)
    store.save(Sweep(t=1.0, key=key, device_name="cpu", num_ranks=2, series=inputs.sweep.series))
    store.save(msgspec.structs.replace(inputs.description, key=key_of_model(spec)))
    return hardware


def test_the_prediction_stays_with_its_run(spec, stored, root, write_run, make_windows):
    run = write_run(spec, "20260101-000000-calm-otter")
    assert outcome_of(fold_run(run)) is None
    kept = store_estimate(run, spec, stored, root)
    assert kept.step_ms == pytest.approx(16.8)
    assert run.estimate.exists()
    record = fold_run(run)
    assert outcome_of(record).step_ms is None
    record.windows = make_windows(16.0, data_ms=3.0)
    found = outcome_of(record)
    assert (found.predicted_step_ms, found.step_ms) == pytest.approx((16.8, 16.0))
    assert found.error_ratio == pytest.approx(0.05)
    assert found.memory_error_ratio == pytest.approx(found.predicted_memory_bytes / 6e8 - 1)


def test_another_number_of_ranks_takes_the_nearest_sweep(spec, inputs, root, make_spec):
    """Between 2, 3 and 8 ranks 4 are nearest to 3; each time grows by 2(n-1)/n, and that is rough.

    Of 4 ranks the buckets take 0.225, 3.375 and 0.9 ms: the last is seen.
    """
    hardware = Hardware(num_cores=8)
    store = Store(root)
    for count in (2, 3, 8):
        key = key_of_machine(hardware, count, os.environ)
        series = tuple(msgspec.structs.replace(one, num_ranks=count) for one in inputs.sweep.series)
        store.save(Sweep(t=1.0, key=key, device_name="cpu", num_ranks=count, series=series))
    four = make_spec("ddp", num_processes=4, micro_batch=32, training=SGD)
    found = inputs_for(four, hardware, root)
    assert found.sweep.num_ranks == 3
    predicted = estimate(four, with_changes(inputs, sweep=found.sweep))
    assert predicted.step_ms == pytest.approx(16 + 0.8 * (3 / 4) / (2 / 3))
    assert predicted.confidence == "low"
    assert inputs_for(spec, hardware, root).sweep.num_ranks == 2


def test_variables_of_a_request_choose_the_link(spec, stored, root, make_sweep):
    """`--set environment.NCCL_P2P_DISABLE=1` asks for the sweep that was measured so."""
    variables = {"NCCL_P2P_DISABLE": "1"}
    other = msgspec.structs.replace(spec, environment=variables)
    assert inputs_for(other, stored, root).sweep is None
    key = key_of_machine(stored, 2, dict(os.environ) | variables)
    Store(root).save(msgspec.structs.replace(make_sweep(500.0), t=2.0, key=key))
    assert inputs_for(other, stored, root).sweep.t == 2.0
    assert inputs_for(spec, stored, root).sweep.t == 1.0


def test_what_goes_wrong_with_a_prediction_does_not_stop_a_run(spec, stored, root, write_run):
    run = write_run(spec, "20260101-000000-calm-otter")
    run.estimate.mkdir()
    assert store_estimate(run, spec, stored, root) is None
    assert outcome_of(fold_run(run)) is None
