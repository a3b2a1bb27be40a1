"""Scores as functions of whole number weights of the samples: what a bootstrap works out.

Sorting is done once per class, and all resamples are worked out together. Weights are
`[resamples, n]`; a score is NaN where it is undefined.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]


class Counts(NamedTuple):
    """Weights of one class, `[resamples, g]` over its groups of equal probability, ascending.

    `before` a group and `through` its end, of the positives and of all samples; the totals are
    `[resamples]`.
    """

    positives_before: Floats
    positives_through: Floats
    all_before: Floats
    all_through: Floats
    positives: Floats
    all: Floats


@dataclass(frozen=True)
class Ranked:
    """One class with its samples in ascending order of probability, equals in one group.

    Only groups with a positive are kept: the others add nothing to AUC and average precision.
    Group g holds the sorted samples `starts[g]` to `stops[g] - 1`, and of the sorted positives
    those from `firsts[g]` to `lasts[g] - 1`.
    """

    order: NDArray[np.intp]
    positives: NDArray[np.intp]
    starts: NDArray[np.intp]
    stops: NDArray[np.intp]
    firsts: NDArray[np.intp]
    lasts: NDArray[np.intp]

    def counts(self, weights: Floats) -> Counts:
        """What the scores are worked out of, for weights `[resamples, n]`."""
        everything = _cumulated(weights, self.order)
        positives = _cumulated(weights, self.positives)
        return Counts(
            positives[:, self.firsts], positives[:, self.lasts],
            everything[:, self.starts], everything[:, self.stops],
            positives[:, -1], everything[:, -1],
        )  # fmt: skip


def _cumulated(weights: Floats, order: NDArray[np.intp]) -> Floats:
    """Sums over the samples before each one in this order, `[resamples, len(order) + 1]`."""
    import numpy as np

    sums = np.zeros((len(weights), len(order) + 1))
    np.cumsum(weights[:, order], axis=1, out=sums[:, 1:])
    return sums


def rank(probability: NDArray[np.float32], actual: NDArray[np.bool_]) -> Ranked:
    """Sort one class once: `probability` and `actual` are `[n]`."""
    import numpy as np

    order = np.argsort(probability, kind="stable")
    is_new = np.diff(probability[order]) > 0
    starts = np.concatenate([[0], np.flatnonzero(is_new) + 1])
    stops = np.append(starts[1:], len(order))
    so_far = np.concatenate([[0], np.cumsum(actual[order])])
    firsts, lasts = so_far[starts], so_far[stops]
    kept = lasts > firsts
    positives = order[actual[order]]
    return Ranked(order, positives, starts[kept], stops[kept], firsts[kept], lasts[kept])


def auc(counts: Counts) -> Floats:
    """The share of positive-negative pairs in the right order; equal ones count half."""
    here = counts.positives_through - counts.positives_before
    below = counts.all_before - counts.positives_before
    through = counts.all_through - counts.positives_through
    pairs = counts.positives * (counts.all - counts.positives)
    return divided((here * (below + through) / 2).sum(axis=1), pairs)


def average_precision(counts: Counts) -> Floats:
    """The sum over thresholds of precision times the recall gained there."""
    import numpy as np

    here = counts.positives_through - counts.positives_before
    true_positives = counts.positives[:, None] - counts.positives_before
    predicted = counts.all[:, None] - counts.all_before
    gained = here * divided(true_positives, predicted)
    return divided(np.nansum(gained, axis=1), counts.positives)


def f1_counts(
    weights: Floats, predicted: NDArray[np.bool_], actual: NDArray[np.bool_]
) -> tuple[Floats, Floats]:
    """2 TP and 2 TP + FP + FN of every class, `[resamples, c]`; F1 is the one over the other.

    2 TP + FP + FN is all predicted and all actual together.
    """
    hits = weights @ (predicted & actual)
    return 2 * hits, weights @ predicted + weights @ actual


def divided(numerator: Floats, denominator: Floats) -> Floats:
    """Element by element; NaN where the denominator is 0."""
    import numpy as np

    quotient = np.full(np.shape(denominator), np.nan)
    np.divide(numerator, denominator, out=quotient, where=denominator != 0)
    return quotient


def mean_of_defined(values: Floats) -> Floats:
    """The mean over the classes of `[c, resamples]` without the undefined ones."""
    import numpy as np

    defined = np.isfinite(values)
    total: Floats = np.where(defined, values, 0).sum(axis=0)
    return divided(total, defined.sum(axis=0).astype(np.float64))
