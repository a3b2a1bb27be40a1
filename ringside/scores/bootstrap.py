"""How sure the difference of two models is: a paired bootstrap over the validation samples.

One resample draws n samples with replacement, the same for both models, and is a row of whole
number weights. Every score is then a function of weights: sorting is done once per class, and all
resamples are worked out together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple

import msgspec

from ringside.scores.predictions import Task, check_predictions, decide
from ringside.scores.weighted import (
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

Metric = Literal["auc_macro", "f1_macro", "f1_micro", "map_macro", "accuracy"]

THRESHOLD = 0.5  # of multi-label decisions
MAX_WEIGHTS = 2_000_000  # per block of resamples: bounds the memory to about 150 MB


class Interval(msgspec.Struct, frozen=True):
    """The difference "b minus a" of a score on all samples, and its confidence limits.

    `num_resamples` counts the resamples in which the score was defined.
    """

    delta: float
    low: float
    high: float
    num_resamples: int


class Resampling(NamedTuple):
    """How many resamples are drawn, from which seed, and the confidence of the interval."""

    num_resamples: int = 1000
    seed: int = 0
    confidence: float = 0.95


DEFAULT = Resampling()


def paired_bootstrap(
    probabilities_a: Probabilities,
    probabilities_b: Probabilities,
    targets: Targets,
    *,
    metric: Metric = "auc_macro",
    task: Task = "multi_label",
    num_trained: Sequence[int] | None = None,
    resampling: Resampling = DEFAULT,
) -> Interval | None:
    """Percentile interval (Efron and Tibshirani 1993, chapter 13) of metric(b) - metric(a).

    All arrays are `[n, c]`; both models predict the same samples in the same order. The scores
    are those of `score` with the same `num_trained` and threshold 0.5: in every resample the mean
    is taken over the classes that are defined there. None when the score is undefined on all
    samples or in every resample.

    Raises what `score` raises.
    """
    import numpy as np

    for probabilities in (probabilities_a, probabilities_b):
        check_predictions(probabilities, targets)
    measure_a, measure_b = (
        _measure(metric, probabilities, targets, task, num_trained)
        for probabilities in (probabilities_a, probabilities_b)
    )
    num_samples = len(targets)
    everything = np.ones((1, num_samples))
    delta = float((measure_b(everything) - measure_a(everything))[0])
    deltas = np.concatenate(
        [measure_b(w) - measure_a(w) for w in resamples(num_samples, resampling)]
    )
    return interval_of(delta, deltas, resampling.confidence)


def interval_of(delta: float, deltas: Floats, confidence: float) -> Interval | None:
    """The percentile interval of resampled differences; None where nothing is defined."""
    import numpy as np

    deltas = deltas[np.isfinite(deltas)]
    if not np.isfinite(delta) or not len(deltas):
        return None
    tail = (1 - confidence) / 2
    low, high = np.quantile(deltas, [tail, 1 - tail])
    return Interval(delta, float(low), float(high), len(deltas))


def resamples(num_samples: int, resampling: Resampling) -> Iterator[Floats]:
    """Weights `[block, n]`: how often each sample was drawn. Block after block, to save memory."""
    import numpy as np

    rng = np.random.default_rng(resampling.seed)
    block = max(1, MAX_WEIGHTS // num_samples)
    for start in range(0, resampling.num_resamples, block):
        rows = min(block, resampling.num_resamples - start)
        drawn = rng.integers(num_samples, size=(rows, num_samples))
        cells = drawn + np.arange(rows)[:, None] * num_samples
        counts = np.bincount(cells.ravel(), minlength=rows * num_samples)
        yield counts.reshape(rows, num_samples).astype(np.float64)


def _measure(
    metric: Metric,
    probabilities: Probabilities,
    targets: Targets,
    task: Task,
    num_trained: Sequence[int] | None = None,
) -> Callable[[Floats], Floats]:
    """The score as a function of weights `[resamples, n]`; NaN where it is undefined."""
    import numpy as np

    actual = targets == 1
    predicted = decide(probabilities, task, THRESHOLD)
    if metric == "accuracy":
        correct = (predicted & actual).any(axis=1).astype(np.float64)
        return lambda weights: weights @ correct / weights.sum(axis=1)
    if metric == "f1_micro":
        return lambda weights: _pooled(*f1_counts(weights, predicted, actual))
    trained = range(targets.shape[1]) if num_trained is None else np.flatnonzero(num_trained)
    if not len(trained):
        return lambda weights: np.full(len(weights), np.nan)
    if metric == "f1_macro":
        of_trained = predicted[:, trained], actual[:, trained]
        return lambda weights: mean_of_defined(divided(*f1_counts(weights, *of_trained)).T)
    of_class = auc if metric == "auc_macro" else average_precision
    ranked = [rank(probabilities[:, i], actual[:, i]) for i in trained]
    return lambda weights: mean_of_defined(
        np.stack([of_class(one.counts(weights)) for one in ranked])
    )


def _pooled(hits: Floats, both: Floats) -> Floats:
    return divided(hits.sum(axis=1), both.sum(axis=1))
