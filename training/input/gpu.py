"""JPEG decoding on the GPU, with the careful way for what its decoder refuses."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import torch

from ringside.data.pixels import decode_rgb
from ringside.errors import SetupError
from ringside.words import say
from training.input.decoding import jpeg_decoder, planes
from training.input.loading import Encoded, Pictures

MAX_PIXELS = 2**27
"""Decoded at once, in 400 MB: more than 500 pictures of 500 x 500, but 11 of 12 megapixels.

As much again is held of those before; see `GpuDecoder._fresh`.
"""


def has_triton() -> bool:
    """Whether the crops' kernel can be built."""
    try:
        import triton  # noqa: F401
    except ImportError:
        return False
    return True


class GpuDecoder:
    """Decodes packed pictures on `device` and crops them to float32 [n, 3, size, size]."""

    def __init__(self, pictures: Pictures, device: torch.device) -> None:
        decode_jpegs = jpeg_decoder()
        if decode_jpegs is None or not has_triton():
            missing = "torchcodec" if decode_jpegs is None else "triton"
            raise SetupError(say("refused.gpu_decoder", name=missing))
        from training.input.resampling import crop_batch

        self.pictures, self.device = pictures, device
        self._crop_batch, self._decode_jpegs = crop_batch, decode_jpegs
        self._refused: set[int] = set()
        self._stream = torch.cuda.Stream(device) if device.type == "cuda" else None
        self._held: list[torch.Tensor] = []
        self._cropped: torch.cuda.Event | None = None

    def __call__(self, batch: Encoded, affine: torch.Tensor) -> torch.Tensor:
        """The crops of one batch, levels taken through `affine` (see `crop_batch`).

        Works on the current stream.
        """
        crops = [self._crop(batch, rows, affine) for rows in _portions(batch.sizes.numpy())]
        return crops[0] if len(crops) == 1 else torch.cat(crops)

    def _crop(self, batch: Encoded, rows: range, affine: torch.Tensor) -> torch.Tensor:
        decoded = self._decode(batch, rows)
        how, draws = self.pictures.how, batch.draws[rows.start : rows.stop].numpy()
        # A picture's own size: EXIF may have turned it.
        boxes, mirror = how.of_all(np.array([picture.shape[1:] for picture in decoded]), draws)
        crops = self._crop_batch(decoded, boxes, mirror, how.size, affine)
        if self._stream is not None:
            self._cropped = torch.cuda.current_stream(self.device).record_event()
        return crops

    def _decode(self, batch: Encoded, rows: range) -> list[torch.Tensor]:
        """uint8 [3, height, width] of any strides on the device, in the order of `rows`.

        Plain lists, and few calls for each picture: the thread that launches training's kernels
        waits whenever this one has Python's lock.
        """
        at = slice(rows.start, rows.stop)
        bounds = [0, *batch.ends.tolist()][rows.start : rows.stop + 1]
        data = batch.data[bounds[0] : bounds[-1]]
        lengths = [end - begin for begin, end in pairwise(bounds)]
        parts, indices = data.split(lengths), batch.indices[at].tolist()
        sizes, is_raw = batch.sizes[at].tolist(), batch.is_decoded[at].tolist()
        left = [i for i, index in enumerate(indices) if not (is_raw[i] or index in self._refused)]
        fresh = self._fresh([parts[i] for i in left], [indices[i] for i in left])
        decoded = dict(zip(left, fresh, strict=True))
        if all(is_raw):  # One copy for all of them.
            parts = data.to(self.device, non_blocking=True).split(lengths)
        for i in range(len(rows)):
            if is_raw[i]:
                pixels = parts[i].to(self.device, non_blocking=True)
                decoded[i] = pixels.view(*sizes[i], 3).permute(2, 0, 1)
            elif i not in decoded:
                decoded[i] = self._careful(parts[i], indices[i])
        return [decoded[i] for i in range(len(rows))]

    def _fresh(self, parts: list[torch.Tensor], indices: list[int]) -> list[torch.Tensor]:
        """Decoded on a stream of their own: the decoder waits for its stream, so not for crops.

        That stream's memory is free again once the crops from it are made. Until then the pictures
        are held, which is until the next ones are there. (torchcodec waits for the stream before it
        writes, from 0.17 on: what turned a picture as its EXIF says may still read the unturned.)
        """
        if not parts:
            return []
        with torch.cuda.stream(self._stream):
            fresh = self._decode_jpeg(parts, indices)
        if self._stream is not None:  # It may still turn pictures as their EXIF says.
            torch.cuda.current_stream(self.device).wait_stream(self._stream)
        self.let_go()
        self._held = fresh
        return fresh

    def let_go(self) -> None:
        """Of the pictures whose crops are asked for, once these are made."""
        if self._cropped is not None:
            self._cropped.synchronize()
        self._held = []

    def _decode_jpeg(self, parts: list[torch.Tensor], indices: list[int]) -> list[torch.Tensor]:
        """All in one call. What the decoder refuses is found by halving, and remembered."""
        try:
            return list(self._decode_jpegs(parts, device=self.device))
        except (torch.OutOfMemoryError, torch.AcceleratorError):
            raise
        except RuntimeError:
            if len(parts) == 1:
                self._refused.add(indices[0])
                return [self._careful(parts[0], indices[0])]
        half = len(parts) // 2
        first = self._decode_jpeg(parts[:half], indices[:half])
        return first + self._decode_jpeg(parts[half:], indices[half:])

    def _careful(self, part: torch.Tensor, index: int) -> torch.Tensor:
        """Pillow's reading of it, or its words for what is wrong with the file."""
        pixels = decode_rgb(part.numpy().tobytes(), self.pictures.split.name(index))
        return planes(pixels).to(self.device)


def _portions(sizes: np.ndarray) -> Iterator[range]:
    """Rows that are decoded together: as many as fit into `MAX_PIXELS`, at least one."""
    start, total = 0, 0
    for row, pixels in enumerate(sizes.prod(axis=1).tolist()):
        if row > start and total + pixels > MAX_PIXELS:
            yield range(start, row)
            start, total = row, 0
        total += pixels
    yield range(start, len(sizes))
