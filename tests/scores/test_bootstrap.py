"""The interval of a difference of two models."""

import time

import numpy as np
import pytest

from ringside.errors import DataError
from ringside.scores import Resampling, bootstrap, paired_bootstrap, score

METRICS = ["auc_macro", "f1_macro", "f1_micro", "map_macro", "accuracy"]


def two_models(
    n: int = 120, c: int = 5, gain: float = 0.3, seed: int = 0
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Multi-label predictions in steps of 0.01, so that there are equal ones."""
    rng = np.random.default_rng(seed)
    targets = (rng.random((n, c)) < 0.3).astype(np.uint8)
    a = rng.random((n, c))
    b = np.clip(rng.random((n, c)) + gain * targets, 0, 1)
    return a.round(2).astype(np.float32), b.round(2).astype(np.float32), targets


def one_hot(targets: np.ndarray) -> np.ndarray:
    return np.eye(targets.shape[1], dtype=np.uint8)[targets.argmax(axis=1)]


@pytest.mark.parametrize("metric", METRICS)
def test_every_resample_equals_the_score_of_the_drawn_samples(metric: str) -> None:
    """The weighted formulas against `score`, that is scikit-learn, on the repeated rows."""
    a, _, targets = two_models(n=40)
    task = "single_label" if metric == "accuracy" else "multi_label"
    targets = one_hot(targets) if metric == "accuracy" else targets
    measure = bootstrap._measure(metric, a, targets, task)
    weights = np.concatenate(list(bootstrap.resamples(40, Resampling(25, seed=5))))
    assert weights.sum(axis=1).tolist() == [40] * 25
    for value, row in zip(measure(weights), weights, strict=True):
        drawn = np.repeat(np.arange(40), row.astype(int))
        scores = score(a[drawn], targets[drawn], list("abcde"), task)
        assert value == pytest.approx(getattr(scores, metric), abs=1e-12)


@pytest.mark.parametrize("metric", METRICS)
def test_delta_is_the_difference_on_all_samples(metric: str) -> None:
    a, b, targets = two_models()
    task = "single_label" if metric == "accuracy" else "multi_label"
    targets = one_hot(targets) if metric == "accuracy" else targets
    interval = paired_bootstrap(a, b, targets, metric=metric, task=task, resampling=Resampling(50))
    of_a, of_b = (getattr(score(p, targets, list("abcde"), task), metric) for p in (a, b))
    assert interval.delta == pytest.approx(of_b - of_a, abs=1e-12)
    assert interval.low <= interval.high


@pytest.mark.parametrize("metric", METRICS)
def test_a_class_that_was_never_trained_has_no_part_in_a_mean(metric: str) -> None:
    a, b, targets = two_models()
    task = "single_label" if metric == "accuracy" else "multi_label"
    targets = one_hot(targets) if metric == "accuracy" else targets
    trained = [3, 0, 1, 0, 7]
    found = paired_bootstrap(
        a, b, targets, metric=metric, task=task, num_trained=trained, resampling=Resampling(50)
    )
    of_a, of_b = (
        getattr(score(p, targets, list("abcde"), task, num_trained=trained), metric) for p in (a, b)
    )
    assert found.delta == pytest.approx(of_b - of_a, abs=1e-12)
    of_all = paired_bootstrap(a, b, targets, metric=metric, task=task, resampling=Resampling(50))
    if metric in ("f1_micro", "accuracy"):
        assert found == of_all
        return
    kept = np.flatnonzero(trained)
    alone = paired_bootstrap(
        a[:, kept], b[:, kept], targets[:, kept], metric=metric, resampling=Resampling(50)
    )
    assert found == alone != of_all
    assert paired_bootstrap(a, b, targets, metric=metric, num_trained=[0] * 5) is None


def test_equal_models_differ_by_nothing() -> None:
    a, _, targets = two_models()
    interval = paired_bootstrap(a, a, targets)
    assert (interval.delta, interval.low, interval.high, interval.num_resamples) == (0, 0, 0, 1000)


def test_swapping_the_models_mirrors_the_interval() -> None:
    a, b, targets = two_models()
    there, back = paired_bootstrap(a, b, targets), paired_bootstrap(b, a, targets)
    assert there.delta > 0
    assert (back.delta, back.low, back.high) == pytest.approx(
        (-there.delta, -there.high, -there.low), abs=1e-12
    )


def test_the_seed_decides_and_confidence_widens() -> None:
    a, b, targets = two_models()
    first = paired_bootstrap(a, b, targets)
    assert paired_bootstrap(a, b, targets) == first
    assert paired_bootstrap(a, b, targets, resampling=Resampling(seed=1)) != first
    wide = paired_bootstrap(a, b, targets, resampling=Resampling(confidence=0.99))
    assert wide.low < first.low < first.high < wide.high


def test_blocks_do_not_change_the_result(monkeypatch: pytest.MonkeyPatch) -> None:
    a, b, targets = two_models()
    whole = paired_bootstrap(a, b, targets, resampling=Resampling(100))
    monkeypatch.setattr(bootstrap, "MAX_WEIGHTS", 120 * 7)
    assert paired_bootstrap(a, b, targets, resampling=Resampling(100)) == whole


def test_accuracy_interval_agrees_with_the_normal_approximation() -> None:
    """For the mean of differences d, the standard error is sd(d) / sqrt(n)."""
    a, b, targets = two_models(n=2000, gain=0.1)
    targets = one_hot(targets)
    interval = paired_bootstrap(a, b, targets, metric="accuracy", task="single_label")
    right = [p.argmax(axis=1) == targets.argmax(axis=1) for p in (a, b)]
    d = right[1].astype(float) - right[0]
    half = 1.96 * d.std() / np.sqrt(len(d))
    assert interval.delta == pytest.approx(d.mean())
    assert (interval.high - interval.low) / 2 == pytest.approx(half, rel=0.12)


def test_a_rare_class_is_left_out_where_a_resample_misses_it() -> None:
    a, b, targets = two_models()
    targets[:, 0] = 0
    targets[0, 0] = 1
    interval = paired_bootstrap(a, b, targets)
    assert interval.num_resamples == 1000
    assert np.isfinite([interval.delta, interval.low, interval.high]).all()


def test_resamples_without_any_defined_class_are_not_counted() -> None:
    targets = np.array([[1], [0], [0]], dtype=np.uint8)
    a = np.array([[0.1], [0.2], [0.3]], dtype=np.float32)
    interval = paired_bootstrap(a, 1 - a, targets)
    assert interval.delta == 1.0
    assert 550 < interval.num_resamples < 800  # 1 - (2/3)**3 - (1/3)**3 = 0.667


def test_an_undefined_score_has_no_interval() -> None:
    a, b, targets = two_models()
    assert paired_bootstrap(a, b, targets * 0) is None


def test_predictions_that_are_not_finite_are_refused() -> None:
    a, b, targets = two_models()
    b[3, 1] = np.nan
    with pytest.raises(DataError, match="1 of 120 predictions are not finite"):
        paired_bootstrap(a, b, targets)


def test_a_thousand_resamples_of_340_by_60_take_seconds() -> None:
    a, b, targets = two_models(n=340, c=60)
    start_s = time.process_time()
    paired_bootstrap(a, b, targets)
    assert time.process_time() - start_s < 4
