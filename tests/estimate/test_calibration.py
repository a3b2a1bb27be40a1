"""Runs that correct the replay: what they may say, of which requests, and how surely.

Measured steps are worked out on paper from the model of four gradients: forward 5, backward 10,
optimizer 1 ms; buckets of 2, 30 and 8 MB ready 1, 5 and 10 ms after backward begins.
"""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest

from ringside.estimate import Calibration, Inputs, calibrate, estimate
from ringside.estimate.calibration import measured_step_us
from ringside.estimate.likeness import knobs_apart
from ringside.estimate.steps import NotEstimated
from ringside.run import fold_run

SGD = {"optimizer": "sgd"}


@pytest.fixture
def spec(make_spec):
    return make_spec("ddp", micro_batch=32, training=SGD)


@pytest.fixture
def record(spec, write_run):
    """A run of `spec` that has timed nothing yet."""
    return fold_run(write_run(spec, "20260101-000000-calm-otter"))


@pytest.fixture
def measured(make_description, make_sweep):
    """`measured(us_per_mb)`: the inputs over a link of this pace."""

    def make(us_per_mb: float, **changes) -> Inputs:
        inputs = Inputs(description=make_description(), sweep=make_sweep(us_per_mb))
        return replace(inputs, **changes)

    return make


def test_a_slower_link_than_swept(record, spec, measured, make_windows, make_spec):
    """Swept at 1 ms a megabyte and really 2.5: sent at 1, 6 and 81 ms, there at 101; 5 + 101 + 1.

    In halves, with 0.6 ms of casts in all: at 1, 5 and 42.95, there at 53.07. Waiting of half a
    second for images is none of it.
    """
    record.windows = make_windows(107.0, data_ms=500.0)
    inputs = measured(1_000.0)
    found = calibrate(record, inputs.description, inputs.sweep)
    assert found.contention_ratio == pytest.approx(2.5, rel=2e-3)
    assert found.work_ratio == 1
    calibrated = replace(inputs, calibration=found)
    same = estimate(spec, calibrated)
    assert same.step_ms == pytest.approx(107.0, rel=1e-3)
    assert same.confidence == "high"
    assert any("calm-otter" in note for note in same.notes)
    halved = make_spec("ddp", micro_batch=32, training=SGD | {"comm_hook": "bf16"})
    assert estimate(halved, calibrated).step_ms == pytest.approx(59.07, rel=2e-3)


def test_where_nothing_waits_the_work_takes_the_difference(record, measured, make_windows):
    record.windows = make_windows(19.2)
    inputs = measured(1.0)
    found = calibrate(record, inputs.description, inputs.sweep)
    assert found.contention_ratio == 1
    assert found.work_ratio == pytest.approx(1.2, rel=0.01)


def test_what_the_link_cannot_explain_is_the_works(record, measured, make_windows):
    """At 0.3 ms a megabyte and 5 times that a step takes 68 ms: 5, 62 and 1. 70 are 16 r + 2.4,
    as the last bucket leaves when backward ends."""
    record.windows = make_windows(70.0)
    inputs = measured(300.0)
    found = calibrate(record, inputs.description, inputs.sweep)
    assert found.contention_ratio == 1
    assert found.work_ratio == pytest.approx(67.6 / 16, rel=1e-3)


@pytest.mark.parametrize("step_ms", [0.5, 500.0])
def test_a_step_that_nothing_explains_corrects_nothing(record, measured, make_windows, step_ms):
    record.windows = make_windows(step_ms)
    inputs = measured(300.0)
    with pytest.raises(NotEstimated, match=f"calm-otter took {step_ms} ms a step") as refused:
        calibrate(record, inputs.description, inputs.sweep)
    assert "0.2 to 5 times" in str(refused.value)


def test_what_is_not_there_is_a_sentence(record, measured, make_windows):
    inputs = measured(100.0)
    with pytest.raises(NotEstimated, match="calm-otter has no measured steps"):
        calibrate(record, inputs.description, inputs.sweep)
    record.windows = make_windows(20.0)
    with pytest.raises(NotEstimated, match="one device"):
        calibrate(record, None, inputs.sweep)
    with pytest.raises(NotEstimated, match="exchange gradients"):
        calibrate(record, inputs.description, None)


def test_a_profiler_spoils_its_windows_and_those_after_it(record, make_windows):
    """Three epochs of 20 ms; then two under the profiler, and two after it, at 40 ms."""
    clean, slow = make_windows(20.0, epochs=3), make_windows(40.0, epochs=2)
    record.windows = [*clean, *make_windows(40.0, profiled=True), *slow]
    assert measured_step_us(record) == pytest.approx(20_000)
    record.windows = make_windows(40.0, profiled=True)
    assert measured_step_us(record) is None


def test_a_run_of_several_says_nothing_of_one_alone(
    record, spec, measured, make_windows, make_spec
):
    """The run took 19.2 ms where 16 were measured alone: the speed-up is 2 * 16 / 19.2."""
    record.windows = make_windows(19.2)
    inputs = measured(1e-6)
    single = make_spec("single", micro_batch=32, training=SGD)
    found = calibrate(record, inputs.description, inputs.sweep)
    assert found.work_ratio == pytest.approx(1.2, rel=1e-3)
    calibrated = estimate(spec, replace(inputs, calibration=found))
    assert calibrated.step_ms == pytest.approx(19.2, rel=1e-3)
    assert calibrated.speedup == pytest.approx(2 * 16 / 19.2, rel=1e-3)
    alone = estimate(single, replace(inputs, calibration=found))
    assert (alone.step_ms, alone.confidence) == (pytest.approx(16), "high")
    assert any("does not correct the step of one alone" in note for note in alone.notes)


def test_a_run_of_one_corrects_one_alone(spec, measured, make_spec):
    """It took 24 ms instead of 16, and so does the baseline: two devices are twice as fast."""
    single = make_spec("single", micro_batch=32, training=SGD)
    found = Calibration(work_ratio=1.5, run="calm-otter", spec=single)
    inputs = measured(1e-6, calibration=found)
    assert estimate(single, inputs).step_ms == pytest.approx(24)
    predicted = estimate(spec, inputs)
    assert predicted.speedup == pytest.approx(2)
    assert predicted.confidence == "medium"
    assert any("another number of processes (1, not 2)" in note for note in predicted.notes)


@pytest.mark.parametrize(
    ("fields", "knobs", "confidence"),
    [
        ({}, [], "high"),
        ({"training": {"comm_hook": "bf16"}}, ["comm_hook"], "high"),
        ({"training": {"learning_rate": 0.5}}, [], "high"),
        ({"micro_batch": 16}, ["batch"], "high"),
        ({"environment": {"NCCL_ALGO": "Ring"}}, ["NCCL_ALGO"], "high"),
        (
            {"training": {"bucket_cap_mb": 10, "static_graph": True}},
            ["bucket_cap_mb", "static_graph"],
            "medium",
        ),
    ],
)
def test_it_is_sure_with_one_knob_changed(spec, measured, make_spec, fields, knobs, confidence):
    fields = {"micro_batch": 32} | fields | {"training": SGD | fields.get("training", {})}
    other = make_spec("ddp", **fields)
    assert knobs_apart(spec, other) == knobs
    found = Calibration(work_ratio=1.1, run="calm-otter", spec=spec)
    predicted = estimate(other, measured(100.0, calibration=found))
    assert predicted.confidence == confidence
    said = any("more than one setting" in note for note in predicted.notes)
    assert said == (confidence == "medium")


def test_a_run_of_another_model_is_refused(spec, measured, make_spec):
    other = make_spec("ddp", micro_batch=32, training=SGD, model="resnet18")
    found = Calibration(work_ratio=1.1, run="calm-otter", spec=other)
    predicted = estimate(spec, measured(100.0, calibration=found))
    assert predicted.step_ms is None
    assert "calm-otter did another step" in predicted.missing[0]


def test_a_run_with_shards_says_nothing_of_one_without(spec, measured, make_spec):
    """What FSDP's units cost the host would count as work of DDP."""
    shards = make_spec("fsdp", micro_batch=32, training=SGD, device="cuda")
    for own, asked in ((shards, spec), (spec, shards)):
        found = Calibration(work_ratio=1.9, run="calm-otter", spec=own)
        predicted = estimate(asked, measured(100.0, calibration=found))
        assert predicted.step_ms is None
        assert "weights in shards" in predicted.missing[0]


def test_no_run_makes_up_for_a_crowd_that_was_not_measured(spec, measured, make_description):
    alone = make_description(crowded=())
    found = Calibration(work_ratio=1.1, run="calm-otter", spec=spec)
    predicted = estimate(spec, measured(100.0, calibration=found, description=alone))
    assert predicted.confidence == "low"
    assert any("slow each other down" in note for note in predicted.notes)


def test_a_fixed_batch_is_followed_and_not_a_knob_of_its_own(spec):
    """Twice the micro-steps of half the images are two knobs; as many of as many images, one."""
    twice = msgspec.structs.replace(spec.training, accumulation_steps=2)
    halved = msgspec.structs.replace(spec, training=twice)
    doubled = msgspec.structs.replace(halved, global_batch=2 * spec.global_batch)
    assert knobs_apart(spec, halved) == ["accumulation_steps", "batch"]
    assert knobs_apart(spec, doubled) == ["accumulation_steps"]
