"""How sure the differences of two models are, class by class and in the mean, in one pass.

The resamples are those of `paired_bootstrap`, drawn once for all classes and metrics.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

import msgspec

from ringside.scores.bootstrap import (
    THRESHOLD,
    Interval,
    Metric,
    Resampling,
    interval_of,
    resamples,
)
from ringside.scores.predictions import Task, check_predictions, decide
from ringside.scores.weighted import (
    Ranked,
    auc,
    average_precision,
    divided,
    f1_counts,
    mean_of_defined,
    rank,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Probabilities = NDArray[np.float32]
    Targets = NDArray[np.uint8]

ClassMetric = Literal["auc", "f1", "average_precision"]
MEANS: dict[ClassMetric, Metric] = {
    "auc": "auc_macro", "f1": "f1_macro", "average_precision": "map_macro",
}  # fmt: skip

MAX_WORK, MIN_RESAMPLES = 10**9, 200

MIN_COUNT = 10
"""Positives, and negatives, from which on a class has an interval of its AUC and its AP.

Resamples of fewer hardly move them, and two equal models look different: with one positive in some
80 % of cases, with two in 30 to 40 %, with three to five in 10 to 15 %, with ten in 10 %, with 50
in the 5 % that they should. F1 errs the other way, and keeps its interval.
"""
RANKED: frozenset[ClassMetric] = frozenset({"auc", "average_precision"})


class Differences(msgspec.Struct, frozen=True):
    """The intervals of "b minus a": means over classes, and every class in the order of columns.

    An interval is None where the score is undefined, as of a class that was never trained, and of
    AUC and AP below `MIN_COUNT`. `num_samples` counts the samples that both models predicted.
    """

    num_samples: int
    means: dict[Metric, Interval | None]
    classes: tuple[dict[ClassMetric, Interval | None], ...]


def affordable(num_samples: int, num_classes: int) -> Resampling:
    """1000 resamples, fewer where that would take minutes (some 0.04 us for each cell)."""
    most = MAX_WORK // max(1, num_samples * num_classes)
    return Resampling(num_resamples=max(MIN_RESAMPLES, min(Resampling().num_resamples, most)))


def paired_differences(
    probabilities_a: Probabilities,
    probabilities_b: Probabilities,
    targets: Targets,
    *,
    task: Task = "multi_label",
    num_trained: Sequence[int] | None = None,
    resampling: Resampling | None = None,
) -> Differences:
    """What `paired_bootstrap` gives for each macro metric, and the same for every single class.

    A class below `MIN_COUNT` has none of AUC and AP. All arrays are `[n, c]`.
    Raises what `score` raises.
    """
    import numpy as np

    for probabilities in (probabilities_a, probabilities_b):
        check_predictions(probabilities, targets)
    num_samples, num_classes = targets.shape
    resampling = resampling or affordable(num_samples, num_classes)
    trained = np.flatnonzero(np.ones(num_classes) if num_trained is None else num_trained)
    models = [
        Model(probabilities[:, trained], decide(probabilities, task, THRESHOLD)[:, trained],
               targets[:, trained] == 1)
        for probabilities in (probabilities_a, probabilities_b)
    ]  # fmt: skip
    positives = np.count_nonzero(targets, axis=0)
    rarer = np.minimum(positives, num_samples - positives)
    everything = [model.scores(np.ones((1, num_samples))) for model in models]
    drawn = [[model.scores(w) for model in models] for w in resamples(num_samples, resampling)]
    means: dict[Metric, Interval | None] = {}
    classes: list[dict[ClassMetric, Interval | None]] = [
        dict.fromkeys(MEANS) for _ in range(num_classes)
    ]
    for metric, mean in MEANS.items():
        first, second = (scores[metric] for scores in everything)
        a, b = (np.concatenate([pair[i][metric] for pair in drawn]) for i in (0, 1))
        change = mean_of_defined(b.T) - mean_of_defined(a.T)
        delta = float((mean_of_defined(second.T) - mean_of_defined(first.T))[0])
        means[mean] = interval_of(delta, change, resampling.confidence)
        for at, column in enumerate(trained):
            if metric in RANKED and rarer[column] < MIN_COUNT:
                continue
            delta = float(second[0, at] - first[0, at])
            found = interval_of(delta, b[:, at] - a[:, at], resampling.confidence)
            classes[column][metric] = found
    return Differences(num_samples, means, tuple(classes))


class Model:
    """One model's scores of every trained class, as functions of weights."""

    def __init__(
        self,
        probabilities: Probabilities,
        predicted: NDArray[np.bool_],
        actual: NDArray[np.bool_],
    ) -> None:
        self.predicted, self.actual = predicted, actual
        self.ranked: list[Ranked] = [
            rank(probabilities[:, i], actual[:, i]) for i in range(actual.shape[1])
        ]

    def scores(self, weights: Floats) -> dict[ClassMetric, Floats]:
        """Each `[resamples, c]`; NaN where undefined."""
        import numpy as np

        aucs, precisions = np.empty((2, len(weights), len(self.ranked)))
        for at, ranked in enumerate(self.ranked):
            counts = ranked.counts(weights)
            aucs[:, at], precisions[:, at] = auc(counts), average_precision(counts)
        f1s = divided(*f1_counts(weights, self.predicted, self.actual))
        return {"auc": aucs, "f1": f1s, "average_precision": precisions}
