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
"""Decoded at once, in 400 MB: more than 500 pictures of 500 x 500, but 11 of 12 megapixels."""


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
        draws = batch.draws[rows.start : rows.stop].tolist()
        how = self.pictures.how
        # A picture's own size: EXIF may have turned it.
        places = [
            how.of(picture.shape[1], picture.shape[2], draw)
            for picture, draw in zip(decoded, draws, strict=True)
        ]
        boxes, mirror = (np.array(column) for column in zip(*places, strict=True))
        crops = self._crop_batch(decoded, boxes, mirror, how.size, affine)
        if self._stream is not None:
            self._cropped = torch.cuda.current_stream(self.device).record_event()
        return crops

    def _decode(self, batch: Encoded, rows: range) -> list[torch.Tensor]:
        """uint8 [3, height, width] of any strides on the device, in the order of `rows`."""
        bounds = list(pairwise([0, *batch.ends.tolist()]))
        parts = {row: batch.data[slice(*bounds[row])] for row in rows}
        indices = dict(zip(rows, batch.indices[rows.start : rows.stop].tolist(), strict=True))
        decoded: dict[int, torch.Tensor] = {}
        pixels = self._upload(batch, bounds, rows)
        for row in rows:
            if batch.is_decoded[row]:
                height, width = batch.sizes[row].tolist()
                decoded[row] = pixels[row].view(height, width, 3).permute(2, 0, 1)
            elif indices[row] in self._refused:
                decoded[row] = self._careful(parts[row], indices[row])
        left = [row for row in rows if row not in decoded]
        fresh = self._fresh([parts[row] for row in left], [indices[row] for row in left])
        decoded |= dict(zip(left, fresh, strict=True))
        return [decoded[row] for row in rows]

    def _upload(
        self, batch: Encoded, bounds: list[tuple[int, int]], rows: range
    ) -> dict[int, torch.Tensor]:
        """The bytes of decoded pictures on the device; in one copy where there is nothing else."""
        decoded = [row for row in rows if batch.is_decoded[row]]
        if len(decoded) < len(rows):
            return {row: batch.data[slice(*bounds[row])].to(self.device) for row in decoded}
        first, last = bounds[rows.start][0], bounds[rows.stop - 1][1]
        whole = batch.data[first:last].to(self.device, non_blocking=True)
        return {row: whole[bounds[row][0] - first : bounds[row][1] - first] for row in decoded}

    def _fresh(self, parts: list[torch.Tensor], indices: list[int]) -> list[torch.Tensor]:
        """Decoded on a stream of their own: the decoder waits for its stream, so not for crops.

        That stream's memory is free again once the crops from it are made. Until then the pictures
        are held, which is until the next ones are there.
        """
        if not parts:
            return []
        with torch.cuda.stream(self._stream):
            fresh = self._decode_jpeg(parts, indices)
        if self._cropped is not None:
            self._cropped.synchronize()
        self._held = fresh
        return fresh

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
