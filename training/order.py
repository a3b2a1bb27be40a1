"""Which sample is seen when, by which rank: a pure function of seed and epoch."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ringside.errors import DataError
from ringside.spec import RunSpec
from ringside.words import say

Key = tuple[int, int]
"""(epoch, index): the augmentation of a sample follows from these and the seed alone."""


def epoch_order(num_samples: int, seed: int, epoch: int) -> np.ndarray:
    """A permutation of range(num_samples), int64; the same on every rank and machine."""
    return np.random.Generator(np.random.Philox(key=[seed, epoch])).permutation(num_samples)


class TrainingOrder:
    """Batch sampler of one rank: an epoch is `steps_per_epoch` groups of micro-batches.

    A global batch is a slice of the epoch's order, so its samples do not depend on the number of
    processes; all stages of a pipeline have the order of the one that reads. The incomplete rest of
    an epoch is left out; another permutation leaves out others.
    """

    def __init__(self, spec: RunSpec, num_samples: int, rank: int) -> None:
        self.spec, self.num_samples, self.rank = spec, num_samples, rank
        self.epoch = 0
        self.first_step = 0
        self.steps_per_epoch = num_samples // spec.global_batch
        if self.steps_per_epoch == 0:
            raise DataError(say("refused.few_images", n=num_samples, num=spec.global_batch))

    @property
    def num_left_out(self) -> int:
        """Images of an epoch that do not fill a global batch."""
        return self.num_samples - self.steps_per_epoch * self.spec.global_batch

    def __len__(self) -> int:
        steps = self.steps_per_epoch - self.first_step
        return steps * self.spec.training.accumulation_steps

    def __iter__(self) -> Iterator[list[Key]]:
        order = epoch_order(self.num_samples, self.spec.seed, self.epoch)
        size, readers = self.spec.loader_batch, self.spec.num_readers
        k = self.spec.training.accumulation_steps
        for number in range(self.first_step * k, self.steps_per_epoch * k):
            start = (number * readers + self.rank % readers) * size
            yield [(self.epoch, int(i)) for i in order[start : start + size]]


def evaluation_batches(num_samples: int, size: int, rank: int, world: int) -> list[list[Key]]:
    """Fixed slices of the split, dealt round-robin: their make-up does not depend on `world`."""
    slices = [range(at, min(at + size, num_samples)) for at in range(0, num_samples, size)]
    return [[(0, i) for i in part] for part in slices[rank::world]]
