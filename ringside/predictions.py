"""What a run predicted for the validation split, kept so that runs can be compared fairly.

float32, because float16 would move an AUC by some 4e-5. One file a run, of the last evaluation.
"""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

from ringside.rundir import RunDir, write_atomic
from ringside.scores import Interval, Metric, Task, paired_bootstrap

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class Predictions:
    """Probabilities float32 [n, c] and targets uint8 [n, c] in the order of the split."""

    def __init__(
        self, epoch: int, task: Task, probabilities: NDArray[np.float32], targets: NDArray[np.uint8]
    ) -> None:
        self.epoch, self.task = epoch, task
        self.probabilities, self.targets = probabilities, targets


def write_predictions(run: RunDir, predictions: Predictions) -> None:
    """Keep them as `predictions.npz`, whole or not at all; RunDirError when that fails."""
    import numpy as np

    buffer = io.BytesIO()
    np.savez_compressed(
        buffer,
        epoch=predictions.epoch,
        task=predictions.task,
        probabilities=predictions.probabilities.astype(np.float32),
        targets=predictions.targets.astype(np.uint8),
    )
    write_atomic(run.predictions, buffer.getvalue())


def read_predictions(run: RunDir) -> Predictions | None:
    """What the run predicted last; None when it kept nothing or the file is damaged."""
    import zipfile

    import numpy as np

    try:
        with np.load(run.predictions, allow_pickle=False) as file:
            return Predictions(
                int(file["epoch"]), _task(str(file["task"])), file["probabilities"], file["targets"]
            )
    except (OSError, ValueError, KeyError, zipfile.BadZipFile):
        return None


def _task(text: str) -> Task:
    if text not in ("multi_label", "single_label"):
        raise ValueError(f"unknown task {text}")
    return "multi_label" if text == "multi_label" else "single_label"


def score_differences(
    first: Predictions | None, second: Predictions | None
) -> dict[str, Interval | None]:
    """The 95 % interval of `second` minus `first` by metric; empty unless the samples are equal."""
    import numpy as np

    if first is None or second is None or first.task != second.task:
        return {}
    if not np.array_equal(first.targets, second.targets):
        return {}
    metrics: tuple[Metric, ...] = ("auc_macro", "f1_macro")
    return {
        metric: paired_bootstrap(
            first.probabilities, second.probabilities, first.targets,
            metric=metric, task=first.task,
        )
        for metric in metrics
    }  # fmt: skip
