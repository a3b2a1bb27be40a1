"""JPEG decoding on the GPU, with the careful way for what its decoder refuses."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import torch

from ringside.data.pixels import decode_rgb
from ringside.errors import SetupError
from training.input.crops import mirrored
from training.input.decoding import jpeg_decoder, planes
from training.input.loading import Encoded, Pictures


class GpuDecoder:
    """Decodes packed pictures on `device` and crops them to float32 [n, 3, size, size]."""

    def __init__(self, pictures: Pictures, device: torch.device) -> None:
        from training.input.resampling import crop_batch

        self.pictures, self.device = pictures, device
        decode_jpegs = jpeg_decoder()
        if decode_jpegs is None:
            raise SetupError("decoder gpu needs torchcodec: install it, or choose decoder cpu.")
        self._crop_batch, self._decode_jpegs = crop_batch, decode_jpegs

    def __call__(self, batch: Encoded, affine: torch.Tensor) -> torch.Tensor:
        """The crops of one batch, levels taken through `affine` (see `crop_batch`).

        Works on the current stream.
        """
        decoded = self._decode(batch)
        sizes = np.array([picture.shape[1:] for picture in decoded])
        draws = batch.draws.numpy()
        mirror = mirrored(draws) if self.pictures.how.augment else np.zeros(len(sizes), bool)
        boxes = self.pictures.boxes(sizes, draws)
        return self._crop_batch(decoded, boxes, mirror, self.pictures.how.size, affine)

    def _decode(self, batch: Encoded) -> list[torch.Tensor]:
        parts = [batch.data[start:end] for start, end in pairwise([0, *batch.ends.tolist()])]
        pictures: list[torch.Tensor | None] = [None] * len(parts)
        for row, (height, width) in enumerate(batch.sizes.tolist()):
            if height:
                pictures[row] = parts[row].view(3, height, width).to(self.device)
        encoded = [row for row, picture in enumerate(pictures) if picture is None]
        fresh = self._decode_jpeg([parts[row] for row in encoded], batch.indices[encoded])
        for row, picture in zip(encoded, fresh, strict=True):
            pictures[row] = picture
        return [picture.contiguous() for picture in pictures if picture is not None]

    def _decode_jpeg(self, parts: list[torch.Tensor], indices: torch.Tensor) -> list[torch.Tensor]:
        """All in one call; if that fails, one by one, so that a bad file is found and named."""
        if not parts:
            return []
        try:
            return list(self._decode_jpegs(parts, device=self.device))
        except RuntimeError:
            pairs = zip(parts, indices.tolist(), strict=True)
            return [self._careful(part, index) for part, index in pairs]

    def _careful(self, part: torch.Tensor, index: int) -> torch.Tensor:
        pixels = decode_rgb(part.numpy().tobytes(), self.pictures.split.name(index))
        return planes(pixels).contiguous().to(self.device)
