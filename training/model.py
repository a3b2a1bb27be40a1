"""The model, its loss and its optimizer."""

from __future__ import annotations

from collections.abc import Callable

import timm
import torch
from timm.optim import param_groups_weight_decay
from torch import nn
from torch.nn import functional

from ringside.errors import SetupError
from ringside.spec import RunSpec

Loss = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]


def make_model(spec: RunSpec, num_classes: int) -> nn.Module:
    """A timm model with `num_classes` outputs, initialised from the spec's seed."""
    torch.manual_seed(spec.seed)
    arguments: dict[str, object] = {"num_classes": num_classes}
    config = timm.get_pretrained_cfg(spec.model)
    if config is not None and config.fixed_input_size:
        # A vision transformer is built for one size; a convolutional model takes any.
        arguments["img_size"] = spec.data.image_size
    try:
        model = timm.create_model(spec.model, pretrained=spec.training.pretrained, **arguments)
    except (RuntimeError, AssertionError, TypeError, ValueError) as error:
        raise SetupError(f"timm cannot make {spec.model!r}: {error}.") from None
    except OSError as error:
        raise SetupError(
            f"The pretrained weights of {spec.model!r} could not be had ({type(error).__name__}); "
            "train from scratch or bring the hub's cache."
        ) from None
    if spec.channels_last:
        model = model.to(memory_format=torch.channels_last)
    return model


def make_loss(task: str) -> Loss:
    """Mean loss of a batch, computed in float32: BCE per label, or cross-entropy of one class."""
    if task == "multi_label":
        return lambda logits, targets: functional.binary_cross_entropy_with_logits(
            logits.float(), targets
        )
    return lambda logits, targets: functional.cross_entropy(logits.float(), targets.argmax(dim=1))


def probabilities(logits: torch.Tensor, task: str) -> torch.Tensor:
    """Scores in [0, 1] from float32 logits: sigmoid per label, or softmax over classes."""
    logits = logits.float()
    return logits.sigmoid() if task == "multi_label" else logits.softmax(dim=1)


def make_optimizer(spec: RunSpec, model: nn.Module) -> torch.optim.Optimizer:
    """SGD with momentum or AdamW; BatchNorm and biases are not decayed.

    Fused, because the step is bound by memory: on one CPU thread AdamW takes a fifth of the
    default's time. Only a fused SGD has no sharding strategy under FSDP2.
    """
    settings = spec.training
    groups = param_groups_weight_decay(model, settings.weight_decay)
    if settings.optimizer == "adamw":
        return torch.optim.AdamW(groups, lr=spec.learning_rate, fused=True)
    return torch.optim.SGD(
        groups,
        lr=spec.learning_rate,
        momentum=settings.momentum,
        nesterov=settings.momentum > 0,
        fused=spec.strategy != "fsdp",
    )
