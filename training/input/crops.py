"""Which part of a picture is trained on: a pure function of seed, epoch and sample."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

NUM_DRAWS = 7
"""Area, left, top, mirror, brightness, contrast, saturation."""


def draws_of(seed: int, keys: Sequence[tuple[int, int]]) -> NDArray[np.float32]:
    """Uniform numbers in [0, 1) for each key (epoch, index), float32 [len(keys), NUM_DRAWS].

    A counter-based generator (Philox) keyed by the sample: no worker, rank or process count can
    change a sample's augmentation, and every epoch has its own.
    """
    table = np.empty((len(keys), NUM_DRAWS), np.float32)
    for row, (epoch, index) in zip(table, keys, strict=True):
        philox = np.random.Philox(key=[seed, (epoch << 40) | index])
        np.random.Generator(philox).random(out=row, dtype=np.float32)
    return table


class Box(NamedTuple):
    """A square part of a picture, in whole pixels."""

    left: int
    top: int
    side: int


def training_box(height: int, width: int, draw: Sequence[float], min_area: float) -> Box:
    """A square of `min_area` to all of the largest square, at a random place.

    Plain numbers, because for one picture numpy's calls cost more than the arithmetic.
    """
    shortest = min(height, width)
    area = min_area + (1 - min_area) * draw[0]
    side = min(shortest, max(1, round(shortest * math.sqrt(area))))
    return Box(int(draw[1] * (width - side + 1)), int(draw[2] * (height - side + 1)), side)


def training_boxes(
    sizes: NDArray[np.int64], draws: NDArray[np.float32], min_area: float
) -> NDArray[np.int64]:
    """`training_box` of many pictures at once, to the pixel.

    `sizes` [n, 2] are heights and widths, `draws` [n, NUM_DRAWS]; [n, 3] are left, top and side.
    """
    area, left, top = draws[:, :3].T.astype(np.float64)
    shortest = sizes.min(axis=1)
    side = np.rint(shortest * np.sqrt(min_area + (1 - min_area) * area)).astype(np.int64)
    side = np.clip(side, 1, shortest)
    room = sizes - side[:, None] + 1
    return np.stack([left * room[:, 1], top * room[:, 0], side], axis=1).astype(np.int64)


def centre_box(height: int, width: int) -> Box:
    """The largest square in the middle."""
    side = min(height, width)
    return Box((width - side) // 2, (height - side) // 2, side)


def is_mirrored(draw: Sequence[float]) -> bool:
    """Whether a sample is seen in a mirror: half of them are."""
    return draw[3] < 0.5


def are_mirrored(draws: NDArray[np.float32]) -> NDArray[np.bool_]:
    """`is_mirrored` of many samples."""
    return draws[:, 3] < 0.5
