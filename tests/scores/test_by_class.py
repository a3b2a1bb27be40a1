"""Intervals of all classes at once, against the one-at-a-time bootstrap and scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import average_precision_score, f1_score, roc_auc_score

from ringside.scores import Resampling, paired_bootstrap, paired_differences
from ringside.scores.by_class import MEANS, affordable

FEW = Resampling(40, seed=3)


def two_models(n=150, c=4, seed=0):
    rng = np.random.default_rng(seed)
    targets = (rng.random((n, c)) < 0.3).astype(np.uint8)
    a = rng.random((n, c)).round(2).astype(np.float32)
    b = np.clip(rng.random((n, c)) + 0.3 * targets, 0, 1).round(2).astype(np.float32)
    return a, b, targets


@pytest.mark.parametrize("task", ["multi_label", "single_label"])
@pytest.mark.parametrize("num_trained", [None, [3, 0, 1, 2]])
def test_means_are_those_of_the_bootstrap_of_one_metric(task, num_trained):
    a, b, targets = two_models()
    if task == "single_label":
        targets = np.eye(4, dtype=np.uint8)[targets.argmax(axis=1)]
    found = paired_differences(a, b, targets, task=task, num_trained=num_trained, resampling=FEW)
    for metric in MEANS.values():
        alone = paired_bootstrap(
            a, b, targets, metric=metric, task=task, num_trained=num_trained, resampling=FEW
        )
        assert alone is not None
        assert found.means[metric] == pytest.approx(alone)


def test_a_class_is_what_the_bootstrap_of_its_column_gives():
    a, b, targets = two_models()
    found = paired_differences(a, b, targets, resampling=FEW)
    for column, one in enumerate(found.classes):
        only = [array[:, [column]] for array in (a, b, targets)]
        for metric, mean in MEANS.items():
            assert one[metric] == pytest.approx(
                paired_bootstrap(*only, metric=mean, resampling=FEW)
            )


def test_deltas_are_those_of_scikit_learn():
    a, b, targets = two_models()
    first = paired_differences(a, b, targets, resampling=FEW).classes[2]
    t, x, y = targets[:, 2], a[:, 2], b[:, 2]
    assert first["auc"].delta == pytest.approx(roc_auc_score(t, y) - roc_auc_score(t, x))
    assert first["f1"].delta == pytest.approx(f1_score(t, y > 0.5) - f1_score(t, x > 0.5))
    assert first["average_precision"].delta == pytest.approx(
        average_precision_score(t, y) - average_precision_score(t, x)
    )


def test_a_class_without_a_positive_or_without_training_has_no_interval():
    a, b, targets = two_models()
    targets[:, 1] = 0
    found = paired_differences(a, b, targets, num_trained=[0, 5, 5, 5], resampling=FEW)
    assert set(found.classes[0].values()) == {None}
    assert found.classes[1]["auc"] is None
    assert found.classes[2]["auc"].low < found.classes[2]["auc"].high


def test_large_splits_get_fewer_resamples():
    assert affordable(320, 16).num_resamples == 1000
    assert affordable(48_000, 100).num_resamples == 208
    assert affordable(10**6, 1000).num_resamples == 200


@pytest.mark.parametrize("is_common", [False, True])
def test_a_rare_class_has_an_interval_of_f1_alone(is_common):
    """Rare positives, or rare negatives."""
    a, b, targets = two_models()
    rare = np.arange(len(targets))
    for column, count in enumerate((1, 9, 10, 60)):
        targets[:, column] = (rare < count) != is_common
    found = paired_differences(a, b, targets, resampling=FEW)
    for metric in ("auc", "average_precision"):
        assert [one[metric] is None for one in found.classes] == [True, True, False, False]
    assert all(one["f1"] for one in found.classes[1:])
    assert found.num_samples == 150
    # The mean is over all four classes still.
    assert found.means["auc_macro"].delta == pytest.approx(
        roc_auc_score(targets, b) - roc_auc_score(targets, a)
    )


def test_equal_models_seem_to_differ_in_about_one_case_of_ten_at_most():
    """400 classes with ten positives each, and two models whose errors are of one kind."""
    rng = np.random.default_rng(0)
    targets = np.zeros((500, 400), dtype=np.uint8)
    targets[:10] = 1
    shared = rng.normal(0, 1, targets.shape) + 2.0 * targets
    a, b = (
        (1 / (1 + np.exp(-shared - rng.normal(0, 0.7, targets.shape)))).astype(np.float32)
        for _ in range(2)
    )
    classes = paired_differences(a, b, targets, resampling=Resampling(200)).classes
    for metric in ("auc", "average_precision"):
        outside = [one[metric].low > 0 or one[metric].high < 0 for one in classes]
        assert 0.03 < np.mean(outside) < 0.14
