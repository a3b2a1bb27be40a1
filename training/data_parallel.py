"""nn.DataParallel: one process, one model, copied to every GPU anew in each step.

Kept to show why DistributedDataParallel exists: the copies, the gathered outputs and one Python
interpreter for all GPUs often make two GPUs slower than one (pytorch/pytorch#3917).
"""

from __future__ import annotations

import torch
from torch import nn


class InAutocast(nn.Module):
    """The model with its precision inside: autocast's type is a thread's own.

    DataParallel computes in threads and passes on whether autocast is on, but not its type, so bf16
    would become fp16 there (torch 2.11 to 2.14, `torch.nn.parallel.parallel_apply`).
    """

    def __init__(self, model: nn.Module, device: torch.device, dtype: torch.dtype | None) -> None:
        super().__init__()
        self.model, self.device_type, self.dtype = model, device.type, dtype

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Logits of [n, 3, H, W] images."""
        with torch.autocast(self.device_type, self.dtype, enabled=self.dtype is not None):
            logits: torch.Tensor = self.model(images)
        return logits


def spread(
    model: nn.Module, num_devices: int, device: torch.device, dtype: torch.dtype | None
) -> nn.DataParallel[InAutocast]:
    """The model over the first `num_devices` GPUs that this process sees.

    Where torch sees no GPU, nn.DataParallel is the plain model; `devices_of` then says 0.
    """
    ids = list(range(num_devices)) if device.type == "cuda" else None
    return nn.DataParallel(InAutocast(model, device, dtype), device_ids=ids)


def devices_of(model: nn.DataParallel[InAutocast]) -> int:
    """How many devices the wrapper really uses."""
    return len(model.device_ids)
