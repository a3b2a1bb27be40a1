"""The decision threshold per class that gives the highest F1 on the samples it is chosen from.

A score at such thresholds is too favourable for those same samples: it says what tuning could gain,
not what new pictures will show. Hence the suffix `_tuned` wherever it appears.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

SAME_F1 = 1e-12  # rounding between two ways to the same ratio


def best_threshold(
    probability: NDArray[np.float32], actual: NDArray[np.bool_]
) -> tuple[float, float] | None:
    """(threshold, F1 there) of one class, for the rule probability > threshold; arrays `[n]`.

    Among equally good thresholds the highest counts. It lies halfway between two neighbouring
    probabilities, so samples of the next evaluation that move a little are decided alike. None
    without a positive or without a negative: nothing can be chosen there.
    """
    import numpy as np
    from sklearn.metrics import precision_recall_curve

    if not 0 < actual.sum() < len(actual):
        return None
    precision, recall, cuts = precision_recall_curve(actual, probability)
    precision, recall = precision[:-1], recall[:-1]  # the last point belongs to no cut
    both = precision + recall
    # At a cut of 0 everything would be predicted, and no threshold from 0 on does that.
    f1 = np.divide(
        2 * precision * recall, both, out=np.zeros_like(both), where=(both > 0) & (cuts > 0)
    )
    at = int(np.flatnonzero(f1 >= f1.max() - SAME_F1)[-1])
    below = cuts[at - 1] if at else np.float32(0)
    return _between(float(below), float(cuts[at])), float(f1[at])


def _between(below: float, cut: float) -> float:
    """Halfway, as a float32, which is what probabilities are compared in; below `cut` if > 0."""
    import numpy as np

    middle = float(np.float32((below + cut) / 2))
    return middle if middle < cut else min(below, cut)
