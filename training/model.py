"""The model and its optimizer."""

from __future__ import annotations

import timm
import torch
from timm.layers import convert_sync_batchnorm
from timm.optim import param_groups_weight_decay
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm

from ringside.errors import SetupError
from ringside.spec import RunSpec
from ringside.words import say
from training.freezing import freeze_backbone


def make_model(spec: RunSpec, num_classes: int) -> nn.Module:
    """A timm model with `num_classes` outputs, initialised from the spec's seed.

    What the spec freezes is frozen, and BatchNorm is the kind that it asks for.
    """
    torch.manual_seed(spec.seed)
    arguments: dict[str, object] = {"num_classes": num_classes}
    if has_fixed_size(spec.model):
        arguments["img_size"] = spec.data.image_size
    # A resumed run has its checkpoint's weights, and need not ask the hub again.
    pretrained = spec.training.pretrained and spec.resume_from is None
    try:
        model = timm.create_model(spec.model, pretrained=pretrained, **arguments)
    except (RuntimeError, AssertionError, TypeError, ValueError) as error:
        raise SetupError(say("refused.model", model=spec.model, why=error)) from None
    except OSError as error:
        why = type(error).__name__
        raise SetupError(say("refused.pretrained", model=spec.model, why=why)) from None
    if spec.training.sync_batchnorm:
        model = _synchronised(model, spec.model)
    if spec.training.freeze == "backbone":
        freeze_backbone(model)
    if spec.weights_channels_last:
        model = model.to(memory_format=torch.channels_last)
    return model


def has_fixed_size(model: str) -> bool:
    """Whether timm builds this model (a vision transformer, say) for one image size; a
    convolutional one takes any."""
    config = timm.get_pretrained_cfg(model)
    return config is not None and bool(config.fixed_input_size)


def _synchronised(model: nn.Module, name: str) -> nn.Module:
    """BatchNorm over all ranks' images; torch's own conversion would lose timm's BatchNormAct2d's
    activations."""
    if not any(isinstance(layer, _BatchNorm) for layer in model.modules()):
        raise SetupError(say("refused.no_batchnorm", model=name))
    return convert_sync_batchnorm(model)


def probabilities(logits: torch.Tensor, task: str) -> torch.Tensor:
    """Scores in [0, 1] from float32 logits: sigmoid per label, or softmax over classes."""
    logits = logits.float()
    return logits.sigmoid() if task == "multi_label" else logits.softmax(dim=1)


def make_optimizer(spec: RunSpec, model: nn.Module) -> torch.optim.Optimizer:
    """SGD with momentum or AdamW over what trains; BatchNorm and biases are not decayed.

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
