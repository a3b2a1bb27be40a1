"""From encoded images to normalised batches on the device."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch.utils.data import DataLoader, Dataset

from ringside.data import ImageSplit
from ringside.data.pixels import decode_rgb, evaluation_crop
from ringside.errors import DataError, RingsideError
from training.order import Key

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
MIN_CROP_AREA = 0.7


class Images(Dataset[Any]):
    """Decoded and cropped images of one split: (uint8 [size, size, 3], uint8 [num_classes], index).

    A fault is returned, not raised: a DataLoader worker would wrap it and bury the file's name.
    """

    def __init__(self, split: ImageSplit, size: int, *, seed: int, augment: bool) -> None:
        self.split, self.size, self.seed, self.augment = split, size, seed, augment
        self.targets = split.targets

    def __len__(self) -> int:
        return len(self.split)

    def __getitem__(self, key: Key) -> Any:
        epoch, index = key
        try:
            pixels = decode_rgb(self.split.read(index), self.split.name(index))
        except RingsideError as fault:
            return fault
        if self.augment:
            rng = np.random.Generator(np.random.Philox(key=[self.seed, (epoch << 40) | index]))
            pixels = random_crop_flip(pixels, self.size, rng)
        else:
            pixels = evaluation_crop(pixels, self.size)
        return pixels, self.targets[index], index


def random_crop_flip(pixels: np.ndarray, size: int, rng: np.random.Generator) -> np.ndarray:
    """A square crop of 70 to 100 % of the largest square, resized to `size`, maybe mirrored."""
    height, width = pixels.shape[:2]
    side = min(height, width) * rng.uniform(MIN_CROP_AREA, 1.0) ** 0.5
    left, top = rng.uniform(0, width - side), rng.uniform(0, height - side)
    box = (left, top, left + side, top + side)
    image = Image.fromarray(pixels).resize((size, size), Image.Resampling.BILINEAR, box=box)
    cropped = np.asarray(image)
    return cropped[:, ::-1] if rng.random() < 0.5 else cropped


def collate(items: list[Any]) -> Any:
    """Stack one batch: pixels [B, size, size, 3] uint8, targets [B, C] uint8, indices [B] int64."""
    for item in items:
        if isinstance(item, RingsideError):
            return item
    pixels, targets, indices = zip(*items, strict=True)
    return (
        torch.from_numpy(np.stack(pixels)),
        torch.from_numpy(np.stack(targets)),
        torch.tensor(indices, dtype=torch.int64),
    )


def make_loader(
    images: Images, batches: Iterable[list[Key]], *, num_workers: int, pin: bool
) -> DataLoader[Any]:
    """A loader over ready-made batches of keys."""
    return DataLoader(
        images,
        batch_sampler=batches,
        num_workers=num_workers,
        collate_fn=collate,
        pin_memory=pin,
        persistent_workers=num_workers > 0,
        prefetch_factor=4 if num_workers else None,
    )


class Batches:
    """Iterates a loader and puts each batch, normalised to float32 [B, 3, H, W], on the device."""

    def __init__(self, loader: DataLoader[Any], device: torch.device) -> None:
        self.loader, self.device = loader, device
        self.mean = torch.tensor(MEAN, device=device).mul_(255).view(1, 3, 1, 1)
        self.scale = torch.tensor(STD, device=device).mul_(255).reciprocal_().view(1, 3, 1, 1)

    def __iter__(self) -> Any:
        for batch in self.loader:
            if isinstance(batch, RingsideError):
                raise DataError(str(batch))
            pixels, targets, indices = batch
            # [B, H, W, 3] seen as [B, 3, H, W] is channels_last without a copy.
            pixels = pixels.to(self.device, non_blocking=True).permute(0, 3, 1, 2)
            yield (
                (pixels.float() - self.mean) * self.scale,
                targets.to(self.device, non_blocking=True).float(),
                indices,
            )
