"""An exponential moving average of the weights, kept beside those that train."""

from __future__ import annotations

from timm.utils import ModelEmaV3
from torch import nn


def make_average(model: nn.Module, decay: float) -> ModelEmaV3:
    """timm's average of all weights and BatchNorm statistics, to be updated once a step.

    After step n it keeps min(decay, 1 - n^(-2/3)) of itself, so that it leaves the first weights
    behind soon: the first step is copied, the tenth keeps 0.78.
    """
    return ModelEmaV3(model, decay=decay, use_warmup=True)
