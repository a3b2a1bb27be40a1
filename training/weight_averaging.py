"""Local SGD: ranks train alone for some steps and then average their weights.

Accelerate's own LocalSGD never averages BatchNorm statistics and sends every tensor by itself (161
for a ResNet-50); here one flattened message carries weights and statistics together.
"""

from __future__ import annotations

import torch
from torch import distributed, nn

from training.batchnorm import running_statistics


class WeightAverager:
    """Averages a plain model over `world` ranks every `every` optimizer steps."""

    def __init__(self, model: nn.Module, world: int, every: int) -> None:
        self.world, self.every = world, every
        trained = [p.data for p in model.parameters() if p.requires_grad]
        self.tensors = trained + running_statistics(model)

    @property
    def bytes_per_step(self) -> int:
        """Bytes that a rank hands to averaging, per optimizer step on average."""
        return sum(t.numel() * t.element_size() for t in self.tensors) // self.every

    def is_due(self, step: int) -> bool:
        """Whether weights are averaged after optimizer step `step`, from 1 over all epochs.

        Counted so, a resumed run averages where the uninterrupted one does.
        """
        return step % self.every == 0

    def step(self, step: int) -> None:
        """Average when it is time after optimizer step `step`."""
        if self.is_due(step):
            self.average()

    @torch.no_grad()
    def average(self) -> None:
        """One all-reduce; afterwards all ranks hold the same weights and statistics."""
        if self.world == 1:
            return
        flat = torch.cat([tensor.reshape(-1) for tensor in self.tensors])
        distributed.all_reduce(flat)
        flat /= self.world
        sizes = [tensor.numel() for tensor in self.tensors]
        for tensor, part in zip(self.tensors, flat.split(sizes), strict=True):
            tensor.copy_(part.view_as(tensor))
