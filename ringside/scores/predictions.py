"""Checks the input of the scores, and the rule from probabilities to decisions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from ringside.errors import DataError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Task = Literal["multi_label", "single_label"]


def check_predictions(probabilities: NDArray[np.float32], targets: NDArray[np.uint8]) -> None:
    """Refuse what has no score.

    `DataError` for no samples and for values that are not finite; `ValueError` for shapes that
    differ and targets other than 0 and 1, which are mistakes of the calling code.
    """
    import numpy as np

    if probabilities.ndim != 2 or probabilities.shape != targets.shape:
        raise ValueError(
            f"probabilities {probabilities.shape} and targets {targets.shape} must both be [n, c]"
        )
    if not np.isin(targets, (0, 1)).all():
        raise ValueError("targets must be 0 or 1")
    if probabilities.shape[0] == 0:
        raise DataError("There are no predictions to score: the validation split is empty.")
    num_bad = int(np.count_nonzero(~np.isfinite(probabilities).all(axis=1)))
    if num_bad:
        raise DataError(
            f"{num_bad} of {len(probabilities)} predictions are not finite (NaN or infinite): "
            "the training diverged; lower the learning rate or use another precision."
        )


def decide(probabilities: NDArray[np.float32], task: Task, threshold: float) -> NDArray[np.bool_]:
    """Which classes are predicted, `[n, c]`.

    Multi-label: every class with probability > threshold, as in torchmetrics. Single-label: the
    most probable class (the first of equals), whatever the threshold.
    """
    import numpy as np

    decisions = np.zeros(probabilities.shape, dtype=np.bool_)
    if task == "multi_label":
        np.greater(probabilities, threshold, out=decisions)
    else:
        decisions[np.arange(len(probabilities)), probabilities.argmax(axis=1)] = True
    return decisions
