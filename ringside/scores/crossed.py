"""Every score of several models on one draw of images: what seeds and images each add to a noise.

All models are scored on the same resamples, so their scores move together as far as it is the
images that move them, and apart as far as it is the models.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from ringside.scores.bootstrap import Metric, Resampling, resamples
from ringside.scores.by_class import (
    MEANS,
    MIN_RESAMPLES,
    ClassMetric,
    Model,
    affordable,
)
from ringside.scores.predictions import Task, check_predictions, decide
from ringside.scores.weighted import mean_of_defined

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Probabilities = NDArray[np.float32]
    Targets = NDArray[np.uint8]


class Resampled(NamedTuple):
    """One score of every model: `measured` [m] on all images, `drawn` [resamples, m]."""

    measured: Floats
    drawn: Floats


class Crossed(NamedTuple):
    """The means over classes, and every trained class by its column; NaN where undefined."""

    num_samples: int
    means: dict[Metric, Resampled]
    classes: dict[tuple[int, ClassMetric], Resampled]


def crossed_scores(
    probabilities: Sequence[Probabilities],
    targets: Targets,
    *,
    task: Task = "multi_label",
    num_trained: Sequence[int] | None = None,
    resampling: Resampling | None = None,
) -> Crossed:
    """The scores of m models `[n, c]` on all images and on the same resamples of them.

    The resamples are those of `paired_bootstrap`. Raises what `score` raises.
    """
    import numpy as np

    for one in probabilities:
        check_predictions(one, targets)
    num_samples, num_classes = targets.shape
    resampling = resampling or _affordable(len(probabilities), num_samples, num_classes)
    trained = np.flatnonzero(np.ones(num_classes) if num_trained is None else num_trained)
    models = [
        Model(one[:, trained], decide(one, task, 0.5)[:, trained], targets[:, trained] == 1)
        for one in probabilities
    ]
    whole = [model.scores(np.ones((1, num_samples))) for model in models]
    drawn = [[model.scores(w) for model in models] for w in resamples(num_samples, resampling)]
    means: dict[Metric, Resampled] = {}
    classes: dict[tuple[int, ClassMetric], Resampled] = {}
    for metric, mean in MEANS.items():
        measured = np.stack([scores[metric][0] for scores in whole])  # [m, c]
        again = np.concatenate(
            [np.stack([scores[metric] for scores in block], axis=1) for block in drawn]
        )  # [resamples, m, c]
        means[mean] = Resampled(
            mean_of_defined(measured.T), mean_of_defined(np.moveaxis(again, 2, 0))
        )
        for at, column in enumerate(trained):
            classes[int(column), metric] = Resampled(measured[:, at], again[:, :, at])
    return Crossed(num_samples, means, classes)


def _affordable(num_models: int, num_samples: int, num_classes: int) -> Resampling:
    """As many resamples as a pair of models would get in the same time."""
    pair = affordable(num_samples * max(1, num_models // 2), num_classes)
    return pair._replace(num_resamples=max(MIN_RESAMPLES, pair.num_resamples))
