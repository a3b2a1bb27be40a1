"""Two runs on the same samples differ by an interval; on other samples by nothing that is said."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from ringside.compare import compare
from ringside.predictions import (
    Predictions,
    read_predictions,
    score_differences,
    write_predictions,
)
from ringside.run import fold_run
from ringside.rundir import create_run_dir


@pytest.fixture
def predicted():
    """`predicted(noise)`: 300 samples, 4 labels; more noise, worse scores."""

    def make(noise, *, seed=0, epoch=3):
        rng = np.random.default_rng(7)
        targets = rng.integers(0, 2, (300, 4)).astype(np.uint8)
        wobble = np.random.default_rng(seed).normal(0, noise, targets.shape)
        return Predictions(
            epoch, "multi_label", (targets + wobble).clip(0, 1).astype(np.float32), targets
        )

    return make


def test_they_come_back_as_they_were(root, predicted):
    run = create_run_dir(root)
    assert read_predictions(run) is None
    kept = predicted(0.5)
    write_predictions(run, kept)
    back = read_predictions(run)
    assert (back.epoch, back.task) == (3, "multi_label")
    assert back.probabilities.dtype == np.float32
    np.testing.assert_array_equal(back.probabilities, kept.probabilities)
    np.testing.assert_array_equal(back.targets, kept.targets)
    run.predictions.write_bytes(b"half a file")
    assert read_predictions(run) is None


@pytest.mark.parametrize("step", [0, 1])
def test_a_damaged_file_is_none(root, predicted, step):
    """Cut short, or with a byte changed: whatever is met first, nothing is raised."""
    run = create_run_dir(root)
    write_predictions(run, predicted(0.5))
    whole = run.predictions.read_bytes()
    for at in range(0, len(whole), len(whole) // 150):
        spoilt = whole[:at] if step == 0 else whole[:at] + b"\xff" + whole[at + 1 :]
        run.predictions.write_bytes(spoilt)
        found = read_predictions(run)
        assert step or found is None
    # Names, lengths and methods of compression stand at the end, headers at the start.
    for at in [*range(80), *range(len(whole) - 300, len(whole))]:
        run.predictions.write_bytes(whole[:at] + b"\x63" + whole[at + 1 :])
        read_predictions(run)


def test_classes_that_were_never_trained_are_kept_and_left_out(root, predicted):
    run, good, bad = create_run_dir(root), predicted(0.3), predicted(1.5, seed=1)
    for kept in (good, bad):
        kept.num_trained = [5, 0, 2, 9]
    write_predictions(run, bad)
    back = read_predictions(run)
    assert back.num_trained == [5, 0, 2, 9]
    trained = [0, 2, 3]
    by_hand = roc_auc_score(bad.targets[:, trained], bad.probabilities[:, trained]) - roc_auc_score(
        good.targets[:, trained], good.probabilities[:, trained]
    )
    found = score_differences(good, back).means["auc_macro"].delta
    assert found == pytest.approx(by_hand, abs=1e-9)
    back.num_trained = None  # of an older run: its means are over four classes
    assert score_differences(good, back) is None
    good.num_trained = [1, 1, 1, 1]
    assert score_differences(good, back)


def test_a_clearly_worse_run_has_an_interval_below_zero(predicted):
    good, bad = predicted(0.3), predicted(1.5, seed=1)
    interval = score_differences(good, bad).means["auc_macro"]
    by_hand = roc_auc_score(bad.targets, bad.probabilities, average="macro") - roc_auc_score(
        good.targets, good.probabilities, average="macro"
    )
    assert interval.delta == pytest.approx(by_hand, abs=1e-9)
    assert interval.low < by_hand < interval.high < 0


def test_equal_runs_are_the_same(predicted):
    interval = score_differences(predicted(0.5), predicted(0.5)).means["auc_macro"]
    assert (interval.delta, interval.low, interval.high) == (0, 0, 0)


def test_other_samples_are_not_compared(predicted):
    a, b = predicted(0.5), predicted(0.5)
    b.targets = 1 - b.targets
    assert score_differences(a, b) is None
    assert score_differences(a, None) is None


def test_a_comparison_shows_the_interval_of_the_scored_epoch(root, make_spec, write_run, predicted):
    base = write_run(make_spec("single"), "20260101-000000-calm-fox")
    run = write_run(make_spec("ddp"), "20260102-000000-swift-hare")
    write_predictions(base, predicted(0.3))
    write_predictions(run, predicted(0.8, seed=1))
    row = compare(root, [fold_run(base), fold_run(run)]).runs[1]
    assert row.auc_interval.high < 0
    write_predictions(run, predicted(0.8, seed=1, epoch=2))
    row = compare(root, [fold_run(base), fold_run(run)]).runs[1]
    assert row.auc_interval is None
