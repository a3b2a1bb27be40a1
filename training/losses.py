"""Training and evaluation losses: always float32 and from logits, whatever autocast computes in."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch.nn import functional

from ringside.errors import SpecError
from ringside.spec import TrainingSettings
from ringside.words import say

Loss = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
"""(logits [B, C] of any float type, targets float32 [B, C] in [0, 1]) to the mean, float32."""


def make_loss(task: str, *, smoothing: float = 0.0, pos_weight: torch.Tensor | None = None) -> Loss:
    """BCE per label, or cross-entropy of one class; plain as it is the loss of an evaluation.

    Smoothed targets are t(1 - s) + s/2 per label and torch's t(1 - s) + s/C over classes (Szegedy
    et al. 2016, arXiv:1512.00567). Targets of one class may be mixtures that sum to 1.
    """
    if task == "multi_label":

        def per_label(logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
            if smoothing:
                targets = targets * (1 - smoothing) + smoothing / 2
            return functional.binary_cross_entropy_with_logits(
                logits.float(), targets, pos_weight=pos_weight
            )

        return per_label
    return lambda logits, targets: functional.cross_entropy(
        logits.float(), targets, label_smoothing=smoothing
    )


def training_loss(
    task: str, settings: TrainingSettings, targets: np.ndarray, device: torch.device
) -> Loss:
    """The loss that a preset asks for; `targets` uint8 [n, C] are the training split's.

    SpecError where positives are to be weighed and each picture has one class.
    """
    pos_weight = None
    if settings.pos_weight_cap is not None:
        if task != "multi_label":
            raise SpecError(say("refused.pos_weight", cap=settings.pos_weight_cap))
        pos_weight = positive_weights(targets, settings.pos_weight_cap).to(device)
    return make_loss(task, smoothing=settings.label_smoothing, pos_weight=pos_weight)


def positive_weights(targets: np.ndarray, cap: float) -> torch.Tensor:
    """float32 [C]: negatives / positives of each label in `targets` [n, C], at most `cap`.

    A count of none is taken for one, so a label that every picture has, or none, stays finite.
    """
    positives = targets.sum(axis=0, dtype=np.int64)
    negatives = len(targets) - positives
    ratio = np.maximum(1, negatives) / np.maximum(1, positives)
    return torch.from_numpy(np.minimum(ratio, cap).astype(np.float32))
