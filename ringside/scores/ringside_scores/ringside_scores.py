"""Ringside's scores as a module of the `evaluate` library.

    metric = evaluate.load("ringside/scores/ringside_scores")
    metric.add_batch(predictions=probabilities, references=multi_hot_targets)
    metric.compute(classes=["cat", "dog"], task="multi_label")

It delegates to `ringside.scores.score`, so it gives the numbers that training and comparison show.
"""

# evaluate reads these lines by pattern when it loads the file: one import per line.
import datasets
import evaluate
import msgspec
import numpy as np

from ringside.scores import score
from ringside.scores.predictions import Task

DESCRIPTION = """\
AUC, F1, mean average precision and top-1 accuracy of a multi-label or single-label classifier,
with scores per class. Undefined classes are named and left out of the macro means.
"""
INPUTS = """\
predictions: probabilities [n, c]. references: multi-hot or one-hot targets [n, c].
classes: c names (default: "0", "1", ...). task: "multi_label" or "single_label".
threshold: the probability above which a class is predicted (multi-label only).
"""


class RingsideScores(evaluate.Metric):  # type: ignore[misc]  # evaluate is not typed
    """The scores as one dictionary, with the fields of `ringside.scores.Scores`."""

    def _info(self) -> evaluate.MetricInfo:
        features = {
            "predictions": datasets.Sequence(datasets.Value("float32")),
            "references": datasets.Sequence(datasets.Value("uint8")),
        }
        return evaluate.MetricInfo(
            description=DESCRIPTION,
            citation="",
            inputs_description=INPUTS,
            features=datasets.Features(features),
        )

    def _compute(
        self,
        predictions: list[list[float]],
        references: list[list[int]],
        classes: list[str] | None = None,
        task: Task = "multi_label",
        threshold: float = 0.5,
    ) -> dict[str, object]:
        targets = np.asarray(references, dtype=np.uint8)
        names = classes or [str(i) for i in range(targets.shape[1])]
        probabilities = np.asarray(predictions, dtype=np.float32)
        scores = score(probabilities, targets, names, task, threshold)
        return {
            name: msgspec.to_builtins(getattr(scores, name)) for name in scores.__struct_fields__
        }
