"""The best threshold of a class, against an exhaustive search and scikit-learn's F1."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.metrics import f1_score

from ringside.scores import score
from ringside.scores.thresholds import best_threshold


def floats(values: object) -> np.ndarray:
    return np.array(values, dtype=np.float32)


def tried_everywhere(probability: np.ndarray, actual: np.ndarray) -> float:
    """The highest F1 over every decision that a threshold from 0 on can make."""
    cuts = [0.0, *map(float, probability)]
    return max(f1_score(actual, probability > cut, zero_division=0) for cut in cuts)


@given(data=st.data(), n=st.integers(2, 40))
def test_no_threshold_is_better(data: st.DataObject, n: int) -> None:
    tenths = data.draw(hnp.arrays(np.int64, n, elements=st.integers(0, 10)))
    probability, actual = floats(tenths / 10), data.draw(hnp.arrays(np.bool_, n))
    found = best_threshold(probability, actual)
    if actual.all() or not actual.any():
        assert found is None
        return
    threshold, f1 = found
    assert 0 <= threshold < 1
    assert f1 == pytest.approx(tried_everywhere(probability, actual), abs=1e-12)
    assert f1 == pytest.approx(
        f1_score(actual, probability > threshold, zero_division=0), abs=1e-12
    )


def test_by_hand() -> None:
    """Cuts between 0.9 | 0.6 | 0.4 | 0.2: F1 is 2/3, 1/2, 4/5, 2/3; 0.3 wins."""
    found = best_threshold(floats([0.9, 0.6, 0.4, 0.2]), np.array([True, False, True, False]))
    assert found == (pytest.approx(0.3), pytest.approx(0.8))


def test_of_equally_good_thresholds_the_highest_counts() -> None:
    """All of 0.8, 0.7, 0.5, 0.1: F1 is 2/3, 1/2, 2/5, 2/3; cutting high raises fewer alarms."""
    found = best_threshold(floats([0.8, 0.7, 0.5, 0.1]), np.array([True, False, False, True]))
    assert found == (pytest.approx(0.75), pytest.approx(2 / 3))


def test_neighbouring_floats_are_told_apart() -> None:
    """Halfway between two neighbours there is no float32; the decision must still be right."""
    low = np.float32(0.7)
    high = np.nextafter(low, np.float32(1))
    probability, actual = floats([high, low, high, low]), np.array([True, False, True, False])
    threshold, f1 = best_threshold(probability, actual)
    assert f1 == 1.0
    assert ((probability > threshold) == actual).all()


def test_a_score_names_the_tuned_f1_apart_and_leaves_undefined_classes_out() -> None:
    targets = np.array([[1, 0, 1], [0, 0, 1], [1, 0, 1]], dtype=np.uint8)
    probabilities = floats([[0.4, 0.2, 0.9], [0.1, 0.3, 0.8], [0.3, 0.1, 0.2]])
    scores = score(probabilities, targets, ["tuned", "never", "always"], "multi_label")
    assert scores.undefined_classes == ["never", "always"]
    assert scores.f1_macro_tuned == 1.0
    assert [one.f1_tuned for one in scores.per_class] == [1.0, None, None]
    assert scores.per_class[0].threshold_tuned == pytest.approx(0.2)
    assert scores.per_class[0].f1 == 0.0  # at 0.5 nothing of it is predicted
    # By hand at 0.5: both of `tuned` are missed, and one of `always`: 3 of 9.
    assert scores.hamming_loss == pytest.approx(3 / 9)


def test_a_single_label_task_has_no_thresholds() -> None:
    scores = score(floats([[0.9, 0.1], [0.4, 0.6]]), np.eye(2, dtype=np.uint8), ["a", "b"],
                   "single_label")  # fmt: skip
    assert (scores.hamming_loss, scores.f1_macro_tuned) == (None, None)
    assert [one.threshold_tuned for one in scores.per_class] == [None, None]
