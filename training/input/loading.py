"""What loader workers do: read, and on the CPU path also decode and crop."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

from ringside.data import ImageSplit
from ringside.errors import RingsideError
from training.input.crops import (
    Box,
    are_mirrored,
    centre_box,
    draws_of,
    is_mirrored,
    training_box,
    training_boxes,
)
from training.input.decoding import crop, decode, ordinary_jpeg_size, planes
from training.order import Key


class Crop(NamedTuple):
    """How crops are made: to `size` pixels; randomly when `augment`."""

    size: int
    seed: int = 0
    augment: bool = False
    min_area: float = 1.0

    def of(self, height: int, width: int, draw: Sequence[float]) -> tuple[Box, bool]:
        """The box of one picture and whether it is mirrored; `draw` is a row of `draws_of`."""
        if not self.augment:
            return centre_box(height, width), False
        return training_box(height, width, draw, self.min_area), is_mirrored(draw)

    def of_all(self, sizes: np.ndarray, draws: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The same of many: boxes int64 [n, 3] (left, top, side) and mirrors bool [n].

        `sizes` [n, 2] are heights and widths, `draws` rows of `draws_of`.
        """
        if not self.augment:
            boxes = [centre_box(height, width) for height, width in sizes.tolist()]
            return np.array(boxes), np.zeros(len(sizes), bool)
        return training_boxes(sizes, draws, self.min_area), are_mirrored(draws)


class Decoded(NamedTuple):
    """A batch of crops: uint8 [n, size, size, 3]."""

    pixels: torch.Tensor
    targets: torch.Tensor
    indices: torch.Tensor
    draws: torch.Tensor
    epoch: int


class Encoded(NamedTuple):
    """A batch for decoding on the GPU: pictures packed in `data`, picture i ends at `ends[i]`.

    `sizes` [n, 2] holds heights and widths. A picture that `is_decoded` is there as pixels
    [H, W, 3]: its source has no codec, or the GPU's decoder might read it differently.
    """

    data: torch.Tensor
    ends: torch.Tensor
    sizes: torch.Tensor
    is_decoded: torch.Tensor
    targets: torch.Tensor
    indices: torch.Tensor
    draws: torch.Tensor
    epoch: int


class Pictures(Dataset[Any]):
    """Batches of one split by keys (epoch, index), decoded here or left for the GPU.

    A fault is returned, not raised: a DataLoader worker would wrap it and bury the file's name.
    """

    def __init__(self, split: ImageSplit, how: Crop, *, decode_here: bool) -> None:
        self.split, self.how, self.decode_here = split, how, decode_here
        self.targets = split.targets

    def __len__(self) -> int:
        return len(self.split)

    def __getitem__(self, key: Key) -> Any:
        return self.__getitems__([key])

    def __getitems__(self, keys: list[Key]) -> Decoded | Encoded | RingsideError:
        indices = [index for _, index in keys]
        draws = draws_of(self.how.seed, keys)
        try:
            parts = self._decoded(indices, draws) if self.decode_here else self._encoded(indices)
        except RingsideError as fault:
            return fault
        kind: Any = Decoded if self.decode_here else Encoded
        return kind(
            *parts,
            targets=torch.from_numpy(self.targets[indices]),
            indices=torch.tensor(indices, dtype=torch.int64),
            draws=torch.from_numpy(draws),
            epoch=keys[0][0],
        )

    def _decoded(self, indices: list[int], draws: np.ndarray) -> tuple[torch.Tensor]:
        size = self.how.size
        pixels = torch.empty((len(indices), size, size, 3), dtype=torch.uint8)
        for row, (index, draw) in enumerate(zip(indices, draws.tolist(), strict=True)):
            picture = self._picture(index)
            box, mirror = self.how.of(picture.shape[1], picture.shape[2], draw)
            part = crop(picture, box, size)
            pixels[row] = (part.flip(2) if mirror else part).permute(1, 2, 0)
        return (pixels,)

    def _picture(self, index: int) -> torch.Tensor:
        raw = self._raw(index)
        return raw if raw is not None else decode(self.split.read(index), self.split.name(index))

    def _raw(self, index: int) -> torch.Tensor | None:
        """Pixels of a source that keeps them without a codec."""
        pixels = getattr(self.split, "pixels", None)
        return planes(pixels(index)) if pixels is not None else None

    def _encoded(self, indices: list[int]) -> tuple[torch.Tensor, ...]:
        parts, sizes = [], np.zeros((len(indices), 2), np.int64)
        is_decoded = np.zeros(len(indices), bool)
        for row, index in enumerate(indices):
            picture = self._raw(index)
            if picture is None:
                data = self.split.read(index)
                size = ordinary_jpeg_size(data)
                if size is not None:
                    sizes[row] = size
                    parts.append(data)
                    continue
                picture = decode(data, self.split.name(index))
            sizes[row], is_decoded[row] = picture.shape[1:], True
            parts.append(picture.permute(1, 2, 0).numpy().tobytes())
        ends = np.cumsum([len(part) for part in parts], dtype=np.int64)
        packed = np.frombuffer(bytearray(b"".join(parts)), np.uint8)
        arrays = packed, ends, sizes, is_decoded
        return tuple(torch.from_numpy(array) for array in arrays)


def _whole(batch: Any) -> Any:
    """The data set makes whole batches; nothing is left to collate."""
    return batch


def make_loader(
    pictures: Pictures, batches: Iterable[list[Key]], *, num_workers: int, pin: bool
) -> DataLoader[Any]:
    """A loader over ready-made batches of keys.

    `pin` also for encoded batches: the JPEG engine fetches them from the host.
    """
    return DataLoader(
        pictures,
        batch_sampler=batches,
        num_workers=num_workers,
        collate_fn=_whole,
        pin_memory=pin,
        persistent_workers=num_workers > 0,
        # In all about 32 batches, whatever the number of workers: they lie in shared memory.
        prefetch_factor=max(2, min(4, 32 // num_workers)) if num_workers else None,
    )
