"""Scores of one set of predictions, on the whole validation split at once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from ringside.scores.predictions import Task, check_predictions, decide
from ringside.scores.thresholds import best_threshold

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class ClassScores(msgspec.Struct, frozen=True):
    """One class against the rest; `support` is the number of its positives.

    `num_trained` is the number of its positives that were trained on, None when that is unknown.
    A class that was never trained has counts and no score: what it got is no merit of the model.
    Else None is where the ratio is undefined: `auc` without a positive or without a negative,
    `average_precision` without a positive, `f1` when the class is in neither truth nor prediction.
    The counts and `f1` are at the common threshold. `f1_tuned` is the highest F1 that any threshold
    reaches on these samples, `threshold_tuned` where; None without a positive or without a
    negative, and in a single-label task, which has no thresholds.
    """

    name: str
    support: int
    auc: float | None
    average_precision: float | None
    f1: float | None
    true_positives: int
    false_positives: int
    false_negatives: int
    true_negatives: int
    threshold_tuned: float | None = None
    f1_tuned: float | None = None
    num_trained: int | None = None

    @property
    def is_untrained(self) -> bool:
        """Whether it is known that no positive of the class was trained on."""
        return self.num_trained == 0


class Scores(msgspec.Struct, frozen=True):
    """All scores, from 0 to 1; None where undefined.

    `auc_macro` is the mean over the `num_auc_classes` classes with a defined AUC; the others are
    named in `undefined_classes`, and those of them that were never trained in `untrained_classes`
    too: no mean over classes has them. `f1_micro`, `accuracy` and `hamming_loss` count decisions,
    all of them. `accuracy` is top-1 and single-label only. `hamming_loss` is the
    share of wrong decisions among all labels of all samples, and `f1_macro_tuned` the mean
    `f1_tuned` of the classes that have one; both are multi-label only.
    """

    num_evaluated: int
    auc_macro: float | None
    num_auc_classes: int
    undefined_classes: list[str]
    f1_macro: float | None
    f1_micro: float | None
    map_macro: float | None
    accuracy: float | None
    threshold: float
    per_class: list[ClassScores]
    hamming_loss: float | None = None
    f1_macro_tuned: float | None = None
    untrained_classes: list[str] = []


def score(
    probabilities: NDArray[np.float32],
    targets: NDArray[np.uint8],
    classes: Sequence[str],
    task: Task,
    threshold: float = 0.5,
    *,
    num_trained: Sequence[int] | None = None,
) -> Scores:
    """Score predictions `[n, c]` against multi-hot (single-label: one-hot) targets `[n, c]`.

    `num_trained` has for every class the number of positives that were trained on; None when that
    is unknown, and then every class counts as trained.

    AUC is the area under the ROC curve, one class against the rest (scikit-learn's
    `roc_auc_score`); average precision is the step-wise sum of `average_precision_score`.
    F1 = 2 TP / (2 TP + FP + FN). Macro F1 is the mean over the classes that occur in truth or
    prediction: a class in neither is neither right nor wrong. Micro F1 pools the counts of all
    classes. A class is predicted at probability > threshold (as in torchmetrics); in a
    single-label task it is the most probable class, and the threshold has no effect.

    Raises `DataError` when there is nothing to score or a value is not finite, `ValueError` when
    the shapes do not fit.
    """
    check_predictions(probabilities, targets)
    if len(classes) != targets.shape[1]:
        raise ValueError(f"{len(classes)} class names for {targets.shape[1]} columns")
    trained = num_trained if num_trained is not None else [None] * len(classes)
    predicted = decide(probabilities, task, threshold)
    per_class = [
        _score_class(name, probabilities[:, i], predicted[:, i], targets[:, i] == 1, task)
        for i, name in enumerate(classes)
    ]
    per_class = [_with_trained(*pair) for pair in zip(per_class, trained, strict=True)]
    undefined = [one.name for one in per_class if one.auc is None]
    return Scores(
        num_evaluated=len(targets),
        auc_macro=_mean(one.auc for one in per_class),
        num_auc_classes=len(per_class) - len(undefined),
        undefined_classes=undefined,
        f1_macro=_mean(one.f1 for one in per_class),
        f1_micro=_f1_micro(per_class),
        map_macro=_mean(one.average_precision for one in per_class),
        accuracy=_accuracy(predicted, targets) if task == "single_label" else None,
        threshold=threshold,
        per_class=per_class,
        hamming_loss=_hamming_loss(predicted, targets) if task == "multi_label" else None,
        f1_macro_tuned=_mean(one.f1_tuned for one in per_class),
        untrained_classes=[one.name for one in per_class if one.is_untrained],
    )


def _score_class(
    name: str,
    probability: NDArray[np.float32],
    predicted: NDArray[np.bool_],
    actual: NDArray[np.bool_],
    task: Task,
) -> ClassScores:
    from sklearn.metrics import average_precision_score, roc_auc_score

    support = int(actual.sum())
    true_positives = int((predicted & actual).sum())
    false_positives = int(predicted.sum()) - true_positives
    false_negatives = support - true_positives
    has_both = 0 < support < len(actual)
    tuned = best_threshold(probability, actual) if task == "multi_label" else None
    return ClassScores(
        name=name,
        support=support,
        auc=float(roc_auc_score(actual, probability)) if has_both else None,
        average_precision=float(average_precision_score(actual, probability)) if support else None,
        f1=_f1(true_positives, false_positives, false_negatives),
        true_positives=true_positives,
        false_positives=false_positives,
        false_negatives=false_negatives,
        true_negatives=len(actual) - support - false_positives,
        threshold_tuned=tuned[0] if tuned else None,
        f1_tuned=tuned[1] if tuned else None,
    )


def _with_trained(one: ClassScores, num_trained: int | None) -> ClassScores:
    """The class with what is known of its training; without scores when it had none."""
    one = replace(one, num_trained=num_trained)
    if not one.is_untrained:
        return one
    return replace(
        one, auc=None, average_precision=None, f1=None, threshold_tuned=None, f1_tuned=None
    )


def _f1(true_positives: int, false_positives: int, false_negatives: int) -> float | None:
    denominator = 2 * true_positives + false_positives + false_negatives
    return 2 * true_positives / denominator if denominator else None


def _f1_micro(per_class: Sequence[ClassScores]) -> float | None:
    return _f1(
        sum(one.true_positives for one in per_class),
        sum(one.false_positives for one in per_class),
        sum(one.false_negatives for one in per_class),
    )


def _hamming_loss(predicted: NDArray[np.bool_], targets: NDArray[np.uint8]) -> float:
    from sklearn.metrics import hamming_loss

    return float(hamming_loss(targets, predicted.astype(targets.dtype)))


def _accuracy(predicted: NDArray[np.bool_], targets: NDArray[np.uint8]) -> float:
    return float((predicted & (targets == 1)).any(axis=1).mean())


def _mean(values: Iterable[float | None]) -> float | None:
    """Of the values that are defined."""
    defined = [value for value in values if value is not None]
    return sum(defined) / len(defined) if defined else None
