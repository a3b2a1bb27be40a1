"""What a run predicted for the validation split, kept so that runs can be compared fairly.

float32, because float16 would move an AUC by some 4e-5. One file a run, of the last evaluation.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ringside.rundir import RunDir, write_atomic
from ringside.scores import Differences, Task, paired_differences

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class Predictions:
    """Probabilities float32 [n, c] and targets uint8 [n, c] in the order of the split.

    `num_trained` has for every class the positives that were trained on; None: unknown.
    """

    def __init__(
        self,
        epoch: int,
        task: Task,
        probabilities: NDArray[np.float32],
        targets: NDArray[np.uint8],
        num_trained: Sequence[int] | None = None,
    ) -> None:
        self.epoch, self.task = epoch, task
        self.probabilities, self.targets = probabilities, targets
        self.num_trained = num_trained

    @property
    def untrained(self) -> list[int]:
        """The columns of the classes without any positive to train on, as far as that is known."""
        return [i for i, count in enumerate(self.num_trained or ()) if not count]


def write_predictions(run: RunDir, predictions: Predictions) -> None:
    """Keep them as `predictions.npz`, whole or not at all; RunDirError when that fails."""
    import numpy as np

    buffer = io.BytesIO()
    kept: dict[str, Any] = {
        "epoch": predictions.epoch,
        "task": predictions.task,
        "probabilities": predictions.probabilities.astype(np.float32),
        "targets": predictions.targets.astype(np.uint8),
    }
    if predictions.num_trained is not None:
        kept["num_trained"] = np.array(predictions.num_trained, dtype=np.int64)
    np.savez_compressed(buffer, **kept)
    write_atomic(run.predictions, buffer.getvalue())


def read_predictions(run: RunDir) -> Predictions | None:
    """What the run predicted last; None when it kept nothing or the file is damaged."""
    import numpy as np

    try:
        with np.load(run.predictions, allow_pickle=False) as file:
            return Predictions(
                int(file["epoch"]),
                _task(str(file["task"])),
                file["probabilities"],
                file["targets"],
                file["num_trained"].tolist() if "num_trained" in file else None,
            )
    except Exception:
        # A damaged file raises whatever zip, zlib or the parser of headers meets first: EOFError,
        # zlib.error, TokenError, NotImplementedError, ...
        return None


def _task(text: str) -> Task:
    if text not in ("multi_label", "single_label"):
        raise ValueError(f"unknown task {text}")
    return "multi_label" if text == "multi_label" else "single_label"


def score_differences(first: Predictions | None, second: Predictions | None) -> Differences | None:
    """The 95 % intervals of `second` minus `first`; None unless the samples are equal."""
    import numpy as np

    if first is None or second is None or first.task != second.task:
        return None
    if not np.array_equal(first.targets, second.targets):
        return None
    if first.untrained != second.untrained:  # their means are over other classes
        return None
    return paired_differences(
        first.probabilities, second.probabilities, first.targets,
        task=first.task, num_trained=first.num_trained,
    )  # fmt: skip
