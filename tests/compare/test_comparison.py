"""Who is compared with whom, and every class against scikit-learn."""

from __future__ import annotations

import json

import pytest
from msgspec.structs import replace
from sklearn.metrics import confusion_matrix, f1_score, roc_auc_score

from ringside.compare import compare
from ringside.run import fold_run

BASE, RUN, OTHER = (
    f"2026010{day}-000000-{name}"
    for day, name in enumerate(("calm-fox", "swift-hare", "warm-seal"), start=1)
)


@pytest.fixture
def three(make_spec, write_run):
    """One device; two; and two with bf16: 640, 1024 and 2048 images/s."""
    return [
        fold_run(write_run(make_spec("single"), BASE, step_s=0.1)),
        fold_run(write_run(make_spec("ddp"), RUN, step_s=0.125)),
        fold_run(write_run(make_spec("ddp", precision="bf16"), OTHER, step_s=0.0625)),
    ]


def test_without_a_choice_the_first_is_the_reference_and_each_has_its_own_baseline(root, three):
    found = compare(root, three[::-1])
    assert (found.reference, found.baseline) == (OTHER, None)
    bf16, ddp, single = found.runs
    assert bf16.gate.verdict == "reference"
    assert bf16.rate_ratio is None
    assert ddp.rate_ratio == pytest.approx(0.5)
    assert ddp.speedup.value == pytest.approx(1.6)
    assert single.speedup.reason == "this is a baseline"


def test_a_chosen_baseline_divides_and_is_the_reference(root, three):
    found = compare(root, three, three[0])
    single, ddp, bf16 = found.runs
    assert (found.reference, found.baseline) == (BASE, BASE)
    assert single.speedup.reason == "the others are measured against this run"
    assert (ddp.speedup.value, ddp.speedup.baseline_id) == (pytest.approx(1.6), BASE)
    assert ddp.speedup.efficiency_ratio == pytest.approx(0.8)
    # The gain of bf16 is in the images/s, and in no speed-up.
    assert bf16.rate_ratio == pytest.approx(3.2)
    assert bf16.speedup.value is None
    assert "precision: bf16 and no" in bf16.speedup.reason


def test_a_baseline_that_is_not_among_the_runs_comes_first(root, three):
    found = compare(root, three[1:], three[0])
    assert [run.id for run in found.runs] == [BASE, RUN, OTHER]
    assert compare(root, three[::-1], three[1]).reference == RUN


def test_other_data_have_no_ratio(root, three, make_spec, write_run):
    other = fold_run(write_run(make_spec("ddp", data="products"), "20260109-000000-odd-gecko"))
    last = compare(root, [*three, other]).runs[-1]
    assert (last.rate_ratio, last.gate.speed, last.gate.verdict) == (None, None, "unknown")
    assert "data: emoji and products" in last.gate.reason


def test_other_planned_epochs_have_a_ratio_and_no_verdict(root, three, make_spec, write_run):
    longer = fold_run(
        write_run(make_spec("ddp", epochs=9), "20260109-000000-odd-gecko", step_s=0.125)
    )
    last = compare(root, [three[0], longer]).runs[-1]
    assert last.rate_ratio == pytest.approx(1.6)
    assert last.gate.reason == "planned epochs: 3 and 9"


def test_every_class_has_the_differences_of_scikit_learn(root, three, targets, keep_predictions):
    from ringside.rundir import RunDir

    a = keep_predictions(RunDir(root / BASE), 0.3)
    b = keep_predictions(RunDir(root / RUN), 0.45, seed=1)
    first, second = compare(root, three[:2]).runs
    assert [one.auc_delta for one in first.classes] == [None] * 3
    for at, one in enumerate(second.classes):
        truth, x, y = targets[:, at], a[:, at], b[:, at]
        by_hand = roc_auc_score(truth, y) - roc_auc_score(truth, x)
        assert one.auc_delta == pytest.approx(by_hand, abs=1e-9)
        assert one.auc_interval.delta == pytest.approx(by_hand, abs=1e-9)
        assert one.auc_interval.low < by_hand < one.auc_interval.high
        assert one.f1_delta == pytest.approx(f1_score(truth, y > 0.5) - f1_score(truth, x > 0.5))
        tn, fp, fn, tp = confusion_matrix(truth, y > 0.5).ravel()
        assert (one.true_positives, one.false_positives) == (tp, fp)
        assert (one.false_negatives, one.true_negatives) == (fn, tn)
        assert one.true_positives + one.false_negatives == one.support
    assert second.map_interval.high < 0


def test_classes_of_other_names_keep_their_scores_and_have_no_difference(
    root, three, keep_predictions
):
    from ringside.rundir import RunDir

    keep_predictions(RunDir(root / BASE), 0.3)
    keep_predictions(RunDir(root / RUN), 0.3, names=["cap", "boot", "sack"])
    _, second = compare(root, three[:2]).runs
    assert [one.name for one in second.classes] == ["cap", "boot", "sack"]
    assert {one.auc_delta for one in second.classes} == {None}
    assert {one.auc_interval for one in second.classes} == {None}
    assert all(one.auc is not None for one in second.classes)


def test_the_noise_may_come_later(root, three):
    """A page hands in what is known so far; nothing else waits for it."""
    asked = []
    found = compare(root, three[:2], differ=lambda a, b: asked.append((a.id, b.id)))
    assert asked == [(BASE, RUN)]
    assert found.runs[1].auc_delta == 0
    assert found.runs[1].gate.verdict == "unknown"


def test_a_prediction_stands_beside_its_measurement(root, three):
    stored = {"format": 1, "preset": "ddp", "num_devices": 2, "micro_batch": 64,
              "global_batch": 128, "epoch_time_s": 10.0, "samples_per_s": 1280.0, "speedup": 2.0,
              "confidence": "medium"}  # fmt: skip
    (root / RUN / "estimate.json").write_text(json.dumps(stored))
    first, second = compare(root, three[:2]).runs
    assert first.predicted is None
    # 100 steps of 0.125 s; 1024 images/s; 1.6 times one device.
    assert second.predicted.epoch_time_s_error_ratio == pytest.approx(10 / 12.5 - 1)
    assert second.predicted.samples_per_s_error_ratio == pytest.approx(0.25)
    assert second.predicted.speedup_error_ratio == pytest.approx(0.25)
    (root / RUN / "estimate.json").write_text(json.dumps(stored | {"format": 99}))
    assert compare(root, three[:2]).runs[1].predicted is None


def test_scaling_puts_on_one_line_what_was_divided_by_one_baseline(
    root, three, make_spec, write_run
):
    four = fold_run(
        write_run(make_spec("ddp", num_processes=4), "20260107-000000-pale-otter", step_s=0.16)
    )
    other = fold_run(write_run(make_spec("single", model="resnet18"), "20260108-000000-old-owl"))
    odd = fold_run(write_run(make_spec("ddp", model="resnet18"), "20260109-000000-odd-gecko"))
    (line,) = compare(root, [four, *three, other, odd]).scaling
    assert (line.preset, line.mixed_precision, line.scaling) == ("ddp", "no", "weak")
    assert [(run.num_devices, run.speedup) for run in line.runs] == [
        (2, pytest.approx(1.6)), (4, pytest.approx(2.5)),
    ]  # fmt: skip
    assert line.runs[1].efficiency_ratio == pytest.approx(0.625)


def test_another_device_keeps_only_the_speed_from_being_compared(
    root, three, targets, keep_predictions
):
    from ringside.rundir import RunDir

    keep_predictions(RunDir(root / BASE), 0.3)
    keep_predictions(RunDir(root / RUN), 0.45, seed=1)
    base, run = three[:2]
    threads = replace(run, spec=replace(run.spec, threads_per_device=7))
    device = replace(run, observed=replace(run.observed, device_name="another"))
    for other, why in ((threads, "threads per device: "), (device, "device name: ")):
        found = compare(root, [base, other]).runs[1]
        assert (found.rate_ratio, found.gate.speed) == (None, None)
        assert found.not_comparable == ()
        assert found.speed_not_comparable[0].startswith(why)
        assert found.auc_interval.high < 0
        assert found.gate.verdict == "undecided"  # of the scores in the events, which are equal
        assert all(one.auc_delta is not None for one in found.classes)


def test_other_content_of_the_data_keeps_scores_from_being_compared(root, three):
    base, run = three[:2]
    other = replace(run, started=replace(run.started, data_fingerprint="other"))
    found = compare(root, [base, other]).runs[1]
    assert found.not_comparable[0].startswith("content of the data: ")
    assert found.speed_not_comparable == ()
    assert (found.rate_ratio, found.auc_delta, found.gate.verdict) == (None, None, "unknown")
