"""How pixel values are shifted and scaled: as the model's own weights expect it."""

from __future__ import annotations

from typing import NamedTuple

import timm

Triple = tuple[float, float, float]


class Normalisation(NamedTuple):
    """Of red, green and blue, for values from 0 to 1: subtract `mean`, divide by `std`."""

    mean: Triple
    std: Triple


IMAGENET = Normalisation((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))


def normalisation_of(model: str) -> Normalisation:
    """timm's own for the model, also without its weights; else ImageNet's."""
    config = timm.get_pretrained_cfg(model)
    if config is None or len(config.mean) != 3 or len(config.std) != 3:
        return IMAGENET
    return Normalisation(tuple(config.mean), tuple(config.std))
