"""One picture on the CPU: libjpeg-turbo for ordinary JPEG, Pillow's rule for all the rest."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch.nn import functional

from ringside.data.pixels import MAX_PIXELS, decode_rgb
from training.input.crops import Box

_SOI, _EOI = b"\xff\xd8", b"\xff\xd9"
_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_BASELINE_TO_PROGRESSIVE = (0xC0, 0xC1, 0xC2)
_APP14, _SCAN = 0xEE, 0xDA


def ordinary_jpeg_size(data: bytes) -> tuple[int, int] | None:
    """Height and width of a whole 8-bit grey or YCbCr JPEG, which every decoder reads alike.

    None for everything else. Looks at the markers only (ITU-T T.81, annex B). A file without its
    end marker may be cut off, CMYK and RGB need a colour rule: those take the careful way, which
    also has the right words.
    """
    if data[:2] != _SOI or _EOI not in data[-32:]:
        return None
    at, size = 2, None
    while at + 9 < len(data) and data[at] == 0xFF:
        marker = data[at + 1]
        if marker == _SCAN:
            return size
        if marker in _FRAMES:
            precision, components = data[at + 4], data[at + 9]
            height, width = _short(data, at + 5), _short(data, at + 7)
            known = marker in _BASELINE_TO_PROGRESSIVE and precision == 8 and components in (1, 3)
            size = (height, width) if known and 0 < height * width <= MAX_PIXELS else None
        if (
            marker == _APP14
            and data[at + 4 : at + 9] == b"Adobe"
            and data[at + 15 : at + 16] == b"\0"
        ):
            return None
        at += 2 + _short(data, at + 2)
    return None


def decode(data: bytes, name: str) -> torch.Tensor:
    """Pixels of one picture, uint8 [3, height, width], upright.

    Raises `PictureError` with `name` when the picture cannot be used.
    """
    if ordinary_jpeg_size(data) is not None:
        decode_jpeg = jpeg_decoder()
        try:
            if decode_jpeg is not None:
                picture: torch.Tensor = decode_jpeg(data)
                return picture
        except RuntimeError:
            pass  # Pillow says what is wrong with it, or reads it after all.
    return planes(decode_rgb(data, name))


def planes(pixels: np.ndarray) -> torch.Tensor:
    """uint8 [height, width, 3] seen as [3, height, width]."""
    return torch.from_numpy(pixels).permute(2, 0, 1)


def crop(picture: torch.Tensor, box: Box, size: int) -> torch.Tensor:
    """The box (left, top, side) of a picture, resized with antialiasing to [3, size, size]."""
    left, top, side = box
    part = picture[:, top : top + side, left : left + side]
    if side == size:
        return part
    # Whole pixels side by side is the layout that torch resizes fastest, and what a batch wants.
    packed = part.unsqueeze(0).contiguous(memory_format=torch.channels_last)
    return functional.interpolate(packed, size=(size, size), mode="bilinear", antialias=True)[0]


def jpeg_decoder() -> Callable[..., Any] | None:
    """torchcodec's `decode_jpeg`; None where it is not installed."""
    try:
        from torchcodec.decoders import decode_jpeg
    except (ImportError, RuntimeError, OSError):
        return None
    return decode_jpeg


def _short(data: bytes, at: int) -> int:
    return int.from_bytes(data[at : at + 2], "big")
