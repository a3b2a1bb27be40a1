"""BatchNorm statistics that do not depend on the rank that is asked."""

from __future__ import annotations

import torch
from torch import distributed, nn

from training.freezing import held_layers


def running_statistics(model: nn.Module) -> list[torch.Tensor]:
    """All floating-point buffers that training changes (running means and variances), in order.

    Those of a frozen backbone are the same everywhere, and a mean of equals may round.
    """
    held = {id(buffer) for layer in held_layers(model) for buffer in layer.buffers(recurse=False)}
    return [b for b in model.buffers() if b.is_floating_point() and id(b) not in held]


@torch.no_grad()
def average_statistics(model: nn.Module, world: int) -> None:
    """Average the buffers over all ranks in one flattened all-reduce.

    Each rank normalises with its own batches; without this an evaluation or a checkpoint would
    depend on the rank (under FSDP one rank's buffers win silently). One message instead of 106.
    """
    buffers = running_statistics(model)
    if world == 1 or not buffers:
        return
    flat = torch.cat([buffer.reshape(-1).float() for buffer in buffers])
    distributed.all_reduce(flat)
    flat /= world
    parts = flat.split([buffer.numel() for buffer in buffers])
    for buffer, part in zip(buffers, parts, strict=True):
        buffer.copy_(part.view_as(buffer))
