"""Where a ResNet is cut into stages of about equal work, and what is left of it on one of them.

A stage is the timm model itself with `nn.Identity` in the place of everything that other stages
hold: timm's own forward computes it, and its weights keep timm's names.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import torch
from timm.models.resnet import ResNet
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from ringside.errors import SetupError
from ringside.words import say

Part = tuple[str, ...]
"""Names of modules that stay together, such as ("layer1.0",)."""

STEM: Part = ("conv1", "bn1", "act1", "maxpool")
LAYERS = ("layer1", "layer2", "layer3", "layer4")
HEAD: Part = ("global_pool", "fc")


class Cut(NamedTuple):
    """The parts of each stage in order; `borders` holds the shape of what leaves each one.

    A border is [micro-batch, channels, height, width]; the last is [micro-batch, classes].
    """

    stages: tuple[tuple[Part, ...], ...]
    borders: tuple[torch.Size, ...]


def cut(model: nn.Module, name: str, num_stages: int, images: torch.Size) -> Cut:
    """Stages of about equal floating-point work for `images` [micro-batch, 3, height, width].

    Raises SetupError for a model that is not of timm's ResNet family, or has too few parts.
    """
    parts = parts_of(model, name)
    if num_stages > len(parts):
        raise SetupError(say("refused.cut", model=name, n=len(parts), num=num_stages))
    work, shapes = measure(model, parts, images)
    ranges = balance(work, num_stages)
    return Cut(
        stages=tuple(tuple(parts[i] for i in stage) for stage in ranges),
        borders=tuple(shapes[stage[-1]] for stage in ranges),
    )


def parts_of(model: nn.Module, name: str) -> list[Part]:
    """Stem, every block, head: the smallest pieces with one tensor between two of them."""
    if not isinstance(model, ResNet):
        raise SetupError(say("refused.no_resnet", model=name))
    blocks = [(f"{layer}.{i}",) for layer in LAYERS for i in range(len(getattr(model, layer)))]
    return [STEM, *blocks, HEAD]


def measure(
    model: nn.Module, parts: Sequence[Part], images: torch.Size
) -> tuple[list[int], list[torch.Size]]:
    """Floating-point operations of each part's forward pass, and the shape that leaves it.

    Counted on the meta device: nothing is computed, and every rank comes to the same numbers.
    """
    shapes: dict[str, torch.Size] = {}
    handles = [
        model.get_submodule(part[-1]).register_forward_hook(
            lambda _module, _inputs, output, last=part[-1]: shapes.update({last: output.shape})
        )
        for part in parts
    ]
    weights = {name: tensor.to("meta") for name, tensor in model.state_dict().items()}
    try:
        with FlopCounterMode(display=False) as counter, torch.no_grad():
            torch.func.functional_call(model, weights, (torch.empty(images, device="meta"),))
    except (RuntimeError, ValueError) as error:
        raise SetupError(say("refused.size_of_stages", n=images[-1], reason=error)) from error
    finally:
        for handle in handles:
            handle.remove()
    counts = counter.get_flop_counts()
    root = type(model).__name__
    # A module without convolution or matrix product is not in the table.
    work = [sum(sum(counts.get(f"{root}.{name}", {}).values()) for name in part) for part in parts]
    return work, [shapes[part[-1]] for part in parts]


def balance(work: Sequence[int], num_stages: int) -> list[range]:
    """Contiguous ranges, one a stage and none empty, whose costliest is as cheap as can be."""

    @functools.cache
    def best(end: int, stages: int) -> tuple[int, tuple[int, ...]]:
        """The cost of the costliest of `stages` ranges that cover work[:end], and their ends."""
        if stages == 1:
            return sum(work[:end]), (end,)
        choices = []
        for begin in range(stages - 1, end):
            cost, ends = best(begin, stages - 1)
            choices.append((max(cost, sum(work[begin:end])), (*ends, end)))
        return min(choices)

    _, ends = best(len(work), num_stages)
    return [range(begin, end) for begin, end in zip((0, *ends), ends, strict=False)]


def keep_only(model: nn.Module, stages: Iterable[Iterable[Part]], kept: int) -> None:
    """Replace what other stages hold by `nn.Identity`, in place; their weights are freed."""
    for number, parts in enumerate(stages):
        for name in (name for part in parts for name in part if number != kept):
            model.set_submodule(name, nn.Identity())
