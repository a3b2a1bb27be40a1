"""Runs with predictions and class scores, whose differences scikit-learn can check."""

from __future__ import annotations

import numpy as np
import pytest

from ringside.class_scores import ClassTables, EpochClasses, write_class_scores
from ringside.predictions import Predictions, write_predictions
from ringside.scores import score

NAMES = ["hat", "shoe", "bag"]


@pytest.fixture
def targets():
    return (np.random.default_rng(7).random((400, len(NAMES))) < 0.3).astype(np.uint8)


@pytest.fixture
def keep_predictions(targets):
    """`keep_predictions(run, noise, epoch=3)`: as the trainer leaves them; returns them."""

    def keep(run, noise, *, epoch=3, names=NAMES, seed=0):
        wobble = np.random.default_rng(seed).normal(0, noise, targets.shape)
        probabilities = (0.5 + (targets - 0.5) * 0.5 + wobble).clip(0, 1).astype(np.float32)
        write_predictions(run, Predictions(epoch, "multi_label", probabilities, targets, [9, 9, 9]))
        found = score(probabilities, targets, names, "multi_label", num_trained=[9, 9, 9])
        last = EpochClasses(
            epoch=epoch, task="multi_label", num_evaluated=len(targets), threshold=0.5,
            classes=tuple(found.per_class),
        )  # fmt: skip
        write_class_scores(run, ClassTables(last=last))
        return probabilities

    return keep
