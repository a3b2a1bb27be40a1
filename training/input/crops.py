"""Which part of a picture is trained on: a pure function of seed, epoch and sample."""

from __future__ import annotations

from collections.abc import Sequence

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


def training_boxes(
    sizes: NDArray[np.int64], draws: NDArray[np.float32], min_area: float
) -> NDArray[np.int64]:
    """Square boxes of `min_area` to all of the largest square, at a random place.

    `sizes` [n, 2] holds heights and widths; returns [n, 3]: left, top and side in whole pixels.
    """
    shortest = sizes.min(axis=1)
    area = min_area + (1 - min_area) * draws[:, 0].astype(np.float64)
    side = np.clip(np.rint(shortest * np.sqrt(area)), 1, shortest).astype(np.int64)
    left = (draws[:, 1] * (sizes[:, 1] - side + 1)).astype(np.int64)
    top = (draws[:, 2] * (sizes[:, 0] - side + 1)).astype(np.int64)
    return np.stack([left, top, side], axis=1)


def centre_boxes(sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    """The largest square in the middle, as [n, 3]: left, top and side in whole pixels."""
    side = sizes.min(axis=1)
    return np.stack([(sizes[:, 1] - side) // 2, (sizes[:, 0] - side) // 2, side], axis=1)


def mirrored(draws: NDArray[np.float32]) -> NDArray[np.bool_]:
    """Which samples are seen in a mirror: half of them."""
    return draws[:, 3] < 0.5
