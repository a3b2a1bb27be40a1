"""From encoded pictures to normalised batches on the device, decoded on the CPU or on the GPU."""

from training.input.batches import Batch, Batches, SyntheticBatches, made_up
from training.input.feed import AnyBatches, Feed

__all__ = ["AnyBatches", "Batch", "Batches", "Feed", "SyntheticBatches", "made_up"]
