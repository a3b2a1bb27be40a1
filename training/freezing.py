"""A backbone that stays as it is, while only the classifier learns."""

from __future__ import annotations

from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm

from ringside.errors import SetupError
from ringside.words import say


def classifier_of(model: nn.Module) -> list[nn.Module]:
    """The last layers by timm's own word; a distilled transformer has two."""
    found = model.get_classifier()  # type: ignore[operator]
    return list(found) if isinstance(found, (tuple, list)) else [found]


def freeze_backbone(model: nn.Module) -> None:
    """Only the parameters of the classifier keep `requires_grad`.

    DDP and FSDP leave parameters without it alone, so nothing has to look for unused ones.
    """
    model.requires_grad_(False)
    for layer in classifier_of(model):
        layer.requires_grad_(True)
    if not any(p.requires_grad for p in model.parameters()):
        raise SetupError(say("refused.all_frozen", model=type(model).__name__))


def held_layers(model: nn.Module) -> list[nn.Module]:
    """BatchNorm layers of a frozen backbone; none in a model that trains as a whole."""
    if not is_frozen(model):
        return []
    head = {id(layer) for part in classifier_of(model) for layer in part.modules()}
    return [
        layer
        for layer in model.modules()
        if isinstance(layer, _BatchNorm) and id(layer) not in head
    ]


def hold_statistics(model: nn.Module) -> None:
    """Put the BatchNorm layers of a frozen backbone into evaluation mode.

    They normalise with the statistics they came with and leave them unchanged. To be called after
    every `model.train()`, which wakes all layers.
    """
    for layer in held_layers(model):
        layer.eval()


def is_frozen(model: nn.Module) -> bool:
    """Whether some parameters are left out of training."""
    return not all(p.requires_grad for p in model.parameters())
