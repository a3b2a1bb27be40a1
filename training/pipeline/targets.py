"""What the stages after the first need of the data: no pixels, only the targets of the batch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import torch

from training.order import Key

Batch = tuple[torch.Tensor, torch.Tensor, torch.Tensor]


class TargetBatches:
    """Batches in the first stage's order, whose images have no pixels: [n, 3, 0, 0].

    `targets` uint8 [num_samples, C] of the whole split; a batch has them as float32 [n, C].
    """

    def __init__(
        self, targets: np.ndarray, batches: Iterable[list[Key]], device: torch.device
    ) -> None:
        self.targets, self.batches, self.device = targets, batches, device

    def __iter__(self) -> Iterator[Batch]:
        for keys in self.batches:
            indices = np.array([index for _epoch, index in keys], dtype=np.int64)
            targets = torch.from_numpy(self.targets[indices]).to(self.device).float()
            images = torch.empty(len(keys), 3, 0, 0, device=self.device)
            yield images, targets, torch.from_numpy(indices)
