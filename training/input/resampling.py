"""Crop, resize and mirror pictures of different sizes on the GPU, all of a batch in one launch.

Ordinary operators would launch several kernels for every picture: at thousands of pictures a
second the launches, not the pixels, would be the limit.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
import triton
import triton.language as tl

from training.input.upload import upload

BLOCK = 256


@triton.jit
def _resample(places, affine, out, size: tl.constexpr, block: tl.constexpr):  # type: ignore[no-untyped-def]
    """One program fills `block` output pixels of one picture; its row of `places` is int64.

    The weights are those of Pillow's and torch's antialiased bilinear resize: a triangle as wide as
    the larger of one input and one output pixel, cut off at the edges of the crop.
    """
    number = tl.program_id(0).to(tl.int64)  # A batch may have more than 2^31 values.
    place = places + number * 8
    source, mirror = tl.load(place).to(tl.pointer_type(tl.uint8)), tl.load(place + 7)
    plane, line = tl.load(place + 1).to(tl.int32), tl.load(place + 2).to(tl.int32)
    step, side = tl.load(place + 3).to(tl.int32), tl.load(place + 6).to(tl.int32)
    left, top = tl.load(place + 4).to(tl.int32), tl.load(place + 5).to(tl.int32)

    pixel = tl.program_id(1) * block + tl.arange(0, block)
    inside = pixel < size * size
    row, column = pixel // size, pixel % size
    column = tl.where(mirror > 0, size - 1 - column, column)

    scale = side.to(tl.float32) / size
    support = tl.maximum(scale, 1.0)
    middle_y, middle_x = scale * (row + 0.5), scale * (column + 0.5)
    first_y = tl.maximum((middle_y - support + 0.5).to(tl.int32), 0)
    first_x = tl.maximum((middle_x - support + 0.5).to(tl.int32), 0)
    taps = (2 * support).to(tl.int32) + 2

    red = tl.zeros((block,), tl.float32)
    green = tl.zeros((block,), tl.float32)
    blue = tl.zeros((block,), tl.float32)
    total = tl.zeros((block,), tl.float32)
    for step_y in range(taps):
        y = first_y + step_y
        weight_y = 1.0 - tl.abs(y.to(tl.float32) + 0.5 - middle_y) / support
        weight_y = tl.where(y < side, tl.maximum(weight_y, 0.0), 0.0)
        for step_x in range(taps):
            x = first_x + step_x
            weight = 1.0 - tl.abs(x.to(tl.float32) + 0.5 - middle_x) / support
            weight = tl.where(x < side, tl.maximum(weight, 0.0), 0.0) * weight_y
            used = inside & (weight > 0)
            at = source + (top + y) * line + (left + x) * step
            red += weight * tl.load(at, mask=used, other=0).to(tl.float32)
            green += weight * tl.load(at + plane, mask=used, other=0).to(tl.float32)
            blue += weight * tl.load(at + 2 * plane, mask=used, other=0).to(tl.float32)
            total += weight
    target = out + (number * size * size + pixel) * 3
    # Whole levels, as a decoder on the CPU would have them.
    red = tl.floor(red / total + 0.5) * tl.load(affine) + tl.load(affine + 3)
    green = tl.floor(green / total + 0.5) * tl.load(affine + 1) + tl.load(affine + 4)
    blue = tl.floor(blue / total + 0.5) * tl.load(affine + 2) + tl.load(affine + 5)
    tl.store(target, red, mask=inside)
    tl.store(target + 1, green, mask=inside)
    tl.store(target + 2, blue, mask=inside)


def crop_batch(
    pictures: Sequence[torch.Tensor],
    boxes: np.ndarray,
    mirror: np.ndarray,
    size: int,
    affine: torch.Tensor,
) -> torch.Tensor:
    """Resize the box of each picture, to float32 [n, 3, size, size] in channels_last.

    `pictures` are uint8 [3, height, width] of any strides on one device, `boxes` [n, 3] hold left,
    top and side, `mirror` [n] says which are flipped. A level (0 to 255, at most one off torch's
    own resize) becomes level x affine[0] + affine[1], per channel: float32 [2, 3] on the device.
    Runs on the current stream.
    """
    device = pictures[0].device
    places = np.empty((len(pictures), 8), np.int64)
    places[:, 0] = [picture.data_ptr() for picture in pictures]
    places[:, 1:4] = [picture.stride() for picture in pictures]
    places[:, 4:7], places[:, 7] = boxes, mirror
    out = torch.empty((len(pictures), size, size, 3), device=device)
    grid = (len(pictures), triton.cdiv(size * size, BLOCK))
    _resample[grid](upload(places, device), affine, out, size=size, block=BLOCK)
    return out.permute(0, 3, 1, 2)
