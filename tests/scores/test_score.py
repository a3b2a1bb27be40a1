"""Scores against scikit-learn, torchmetrics and numbers worked out by hand."""

import msgspec
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn import metrics as sklearn_metrics
from torchmetrics.classification import (
    MulticlassAccuracy,
    MulticlassAUROC,
    MultilabelAUROC,
    MultilabelAveragePrecision,
    MultilabelF1Score,
    MultilabelHammingDistance,
    MultilabelStatScores,
)

from ringside.errors import DataError
from ringside.scores import Scores, Task, score
from ringside.scores.predictions import decide


def floats(values: object) -> np.ndarray:
    return np.array(values, dtype=np.float32)


def ints(values: object) -> np.ndarray:
    return np.array(values, dtype=np.uint8)


def random_multi_label(n: int = 200, c: int = 7) -> tuple[np.ndarray, np.ndarray, list[str]]:
    rng = np.random.default_rng(3)
    targets = (rng.random((n, c)) < 0.3).astype(np.uint8)
    noise = rng.random((n, c)).astype(np.float32)
    return (noise + targets * floats(0.4)) / floats(1.4), targets, [f"c{i}" for i in range(c)]


def test_multi_label_equals_scikit_learn() -> None:
    probabilities, targets, classes = random_multi_label()
    scores = score(probabilities, targets, classes, "multi_label")
    assert scores.num_evaluated == 200
    assert scores.num_auc_classes == 7
    decided = probabilities > 0.5
    f1 = sklearn_metrics.f1_score
    assert scores.auc_macro == pytest.approx(
        sklearn_metrics.roc_auc_score(targets, probabilities, average="macro"), abs=1e-12
    )
    assert scores.map_macro == pytest.approx(
        sklearn_metrics.average_precision_score(targets, probabilities, average="macro"), abs=1e-12
    )
    assert scores.f1_macro == pytest.approx(f1(targets, decided, average="macro"), abs=1e-12)
    assert scores.f1_micro == pytest.approx(f1(targets, decided, average="micro"), abs=1e-12)
    matrices = sklearn_metrics.multilabel_confusion_matrix(targets, decided)
    for one, ((tn, fp), (fn, tp)) in zip(scores.per_class, matrices, strict=True):
        counts = (one.true_negatives, one.false_positives, one.false_negatives, one.true_positives)
        assert counts == (tn, fp, fn, tp)
        assert one.support == tp + fn
    assert scores.accuracy is None
    hamming = sklearn_metrics.hamming_loss(targets, decided)
    assert scores.hamming_loss == pytest.approx(hamming, abs=1e-12)


def test_multi_label_equals_torchmetrics() -> None:
    probabilities, targets, classes = random_multi_label()
    scores = score(probabilities, targets, classes, "multi_label", threshold=0.6)
    tensors = torch.tensor(probabilities), torch.tensor(targets.astype(np.int64))
    for value, metric in (
        (scores.auc_macro, MultilabelAUROC(7)),
        (scores.map_macro, MultilabelAveragePrecision(7)),
        (scores.f1_macro, MultilabelF1Score(7, threshold=0.6)),
        (scores.hamming_loss, MultilabelHammingDistance(7, threshold=0.6)),
    ):
        assert value == pytest.approx(metric(*tensors).item(), abs=1e-6)
    counts = MultilabelStatScores(7, threshold=0.6, average="none")(*tensors).tolist()
    for one, (tp, fp, tn, fn, support) in zip(scores.per_class, counts, strict=True):
        found = (one.true_positives, one.false_positives, one.true_negatives, one.false_negatives)
        assert (*found, one.support) == (tp, fp, tn, fn, support)


def test_single_label_equals_torchmetrics() -> None:
    rng = np.random.default_rng(0)
    actual = rng.integers(4, size=150)
    logits = rng.normal(size=(150, 4)) + 1.2 * np.eye(4)[actual]
    probabilities = floats(np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True))
    scores = score(probabilities, ints(np.eye(4)[actual]), list("abcd"), "single_label")
    tensors = torch.tensor(probabilities), torch.tensor(actual)
    accuracy = MulticlassAccuracy(4, average="micro")(*tensors).item()
    assert scores.accuracy == pytest.approx(accuracy, abs=1e-6)
    assert scores.auc_macro == pytest.approx(MulticlassAUROC(4)(*tensors).item(), abs=1e-6)
    predicted = probabilities.argmax(axis=1)
    expected = sklearn_metrics.f1_score(actual, predicted, average="macro")
    assert scores.f1_macro == pytest.approx(expected, abs=1e-12)
    assert scores.f1_micro == scores.accuracy  # every sample has one truth and one prediction


def test_the_threshold_itself_is_not_predicted() -> None:
    scores = score(floats([[0.51], [0.5]]), ints([[1], [0]]), ["a"], "multi_label")
    assert scores.per_class[0].false_positives == 0
    assert scores.f1_macro == 1.0


def test_the_most_probable_class_counts_however_low_it_is() -> None:
    scores = score(floats([[0.4, 0.3, 0.3]]), ints([[1, 0, 0]]), list("abc"), "single_label")
    assert scores.accuracy == 1.0
    assert scores.f1_macro == 1.0


def test_five_samples_by_hand() -> None:
    """2 of 6 positive-negative pairs would be 1/3; one is right: 1/6. F1 = 2 * 1 / (2 + 1 + 2)."""
    scores = score(
        floats([[0.1], [0.2], [0.9], [0.3], [0.8]]), ints([[1], [1], [0], [0], [1]]), ["a"],
        "multi_label",
    )  # fmt: skip
    assert scores.num_evaluated == 5
    assert scores.auc_macro == pytest.approx(1 / 6)
    assert scores.f1_macro == pytest.approx(0.4)


def test_parts_do_not_average_to_the_whole() -> None:
    y = ints([1, 0, 0, 0, 1, 1, 1, 0])[:, None]
    p = floats([0.55, 0.5, 0.4, 0.3, 0.9, 0.8, 0.35, 0.6])[:, None]
    whole = score(p, y, ["a"], "multi_label")
    parts = [score(p[h], y[h], ["a"], "multi_label").auc_macro for h in (slice(4), slice(4, 8))]
    assert whole.auc_macro == pytest.approx(0.75)
    assert whole.f1_macro == pytest.approx(0.75)
    assert np.mean(parts) == pytest.approx(0.8333, abs=1e-4)


def test_a_class_without_positives_is_named_and_left_out() -> None:
    targets = ints([[1, 0, 0], [0, 1, 0], [1, 1, 0], [0, 0, 0]])
    probabilities = floats(targets * 0.8 + 0.1)
    scores = score(probabilities, targets, ["a", "b", "never"], "multi_label")
    assert (scores.auc_macro, scores.num_auc_classes) == (1.0, 2)
    assert scores.undefined_classes == ["never"]
    never = scores.per_class[2]
    assert (never.auc, never.average_precision, never.f1, never.support) == (None, None, None, 0)


def test_a_class_without_negatives_has_no_auc_but_counts() -> None:
    scores = score(floats([[0.9], [0.1]]), ints([[1], [1]]), ["always"], "multi_label")
    assert (scores.auc_macro, scores.num_auc_classes) == (None, 0)
    assert scores.undefined_classes == ["always"]
    assert scores.per_class[0].average_precision == 1.0
    assert scores.f1_macro == pytest.approx(2 / 3)


@pytest.mark.parametrize("task", ["multi_label", "single_label"])
def test_a_class_that_was_never_trained_is_in_no_mean(task: Task) -> None:
    """scikit-learn on the trained columns alone is the reference; decisions are all counted."""
    probabilities, targets, classes = random_multi_label()
    if task == "single_label":
        targets = ints(np.eye(7)[np.arange(len(targets)) % 7])
    plain = score(probabilities, targets, classes, task)
    scores = score(probabilities, targets, classes, task, num_trained=[9, 0, 4, 1, 0, 2, 8])
    trained = [0, 2, 3, 5, 6]
    for value, function in (
        (scores.auc_macro, sklearn_metrics.roc_auc_score),
        (scores.map_macro, sklearn_metrics.average_precision_score),
    ):
        expected = function(targets[:, trained], probabilities[:, trained], average="macro")
        assert value == pytest.approx(expected, abs=1e-12)
    decided = decide(probabilities, task, 0.5)
    expected = sklearn_metrics.f1_score(targets[:, trained], decided[:, trained], average="macro")
    assert scores.f1_macro == pytest.approx(expected, abs=1e-12)
    assert scores.auc_macro != plain.auc_macro
    assert (scores.num_auc_classes, plain.num_auc_classes) == (5, 7)
    named = [classes[1], classes[4]]
    assert (scores.undefined_classes, scores.untrained_classes) == (named, named)
    assert (scores.f1_micro, scores.accuracy, scores.hamming_loss) == (
        plain.f1_micro, plain.accuracy, plain.hamming_loss,
    )  # fmt: skip
    never = scores.per_class[1]
    assert (never.auc, never.average_precision, never.f1, never.f1_tuned) == (None,) * 4
    assert never.threshold_tuned is None
    assert never.true_positives == plain.per_class[1].true_positives
    assert (never.num_trained, scores.per_class[0].num_trained) == (0, 9)
    assert (plain.untrained_classes, plain.per_class[1].num_trained) == ([], None)


def test_perfect_predictions_score_one_although_a_class_is_absent() -> None:
    targets = ints([[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0]])
    scores = score(targets.astype(np.float32), targets, list("ABCD"), "multi_label")
    assert (scores.f1_macro, scores.f1_micro, scores.map_macro) == (1.0, 1.0, 1.0)
    assert [one.support for one in scores.per_class] == [1, 1, 1, 0]


def test_a_class_predicted_but_never_true_counts_as_zero() -> None:
    scores = score(floats([[0.9, 0.9]]), ints([[1, 0]]), ["a", "b"], "multi_label")
    assert scores.f1_macro == 0.5
    assert scores.f1_micro == pytest.approx(2 / 3)


def test_nothing_true_and_nothing_predicted_is_undefined() -> None:
    scores = score(floats([[0.1]]), ints([[0]]), ["a"], "multi_label")
    assert (scores.f1_macro, scores.f1_micro, scores.map_macro, scores.auc_macro) == (None,) * 4


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_predictions_that_are_not_finite_are_refused(bad: float) -> None:
    with pytest.raises(DataError, match="1 of 2 predictions are not finite"):
        score(floats([[0.5], [bad]]), ints([[1], [0]]), ["a"], "multi_label")


def test_nothing_to_score_is_refused() -> None:
    with pytest.raises(DataError, match="no predictions"):
        score(floats(np.zeros((0, 2))), ints(np.zeros((0, 2))), ["a", "b"], "multi_label")


@pytest.mark.parametrize(
    ("targets", "classes"),
    [([[1], [0], [1]], ["a"]), ([[1], [2]], ["a"]), ([[1], [0]], ["a", "b"]), ([1, 0], ["a"])],
)
def test_shapes_that_do_not_fit_are_a_mistake_of_the_caller(
    targets: list[object], classes: list[str]
) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        score(floats([[0.5], [0.6]]), ints(targets), classes, "multi_label")


def test_scores_travel_as_json() -> None:
    scores = score(*random_multi_label(), "multi_label")
    assert msgspec.json.decode(msgspec.json.encode(scores), type=Scores) == scores


sizes = st.tuples(st.integers(1, 30), st.integers(1, 4))


@given(data=st.data(), shape=sizes)
def test_auc_is_the_share_of_pairs_in_order(data: st.DataObject, shape: tuple[int, int]) -> None:
    """Mann-Whitney: the AUC is the share of pairs in the right order, equal ones counting half."""
    tenths = hnp.arrays(np.int64, shape, elements=st.integers(0, 10))
    probabilities = floats(data.draw(tenths) / 10)
    targets = data.draw(hnp.arrays(np.uint8, shape, elements=st.integers(0, 1)))
    scores = score(probabilities, targets, [str(i) for i in range(shape[1])], "multi_label")
    for i, one in enumerate(scores.per_class):
        positives = probabilities[targets[:, i] == 1, i][:, None]
        negatives = probabilities[targets[:, i] == 0, i][None, :]
        pairs = (positives > negatives) + 0.5 * (positives == negatives)
        assert one.auc == (pytest.approx(pairs.mean()) if pairs.size else None)


@given(data=st.data(), shape=sizes)
def test_the_order_of_samples_does_not_matter(data: st.DataObject, shape: tuple[int, int]) -> None:
    probabilities = data.draw(hnp.arrays(np.float32, shape, elements=st.floats(0, 1, width=16)))
    targets = data.draw(hnp.arrays(np.uint8, shape, elements=st.integers(0, 1)))
    order = np.array(data.draw(st.permutations(range(shape[0]))))
    classes = [str(i) for i in range(shape[1])]
    scores = score(probabilities, targets, classes, "multi_label")
    shuffled = score(probabilities[order], targets[order], classes, "multi_label")
    assert shuffled.auc_macro == pytest.approx(scores.auc_macro)
    assert shuffled.f1_macro == scores.f1_macro
    counts = [one.true_positives + one.false_positives for one in scores.per_class]
    assert counts == (probabilities > 0.5).sum(axis=0).tolist()
