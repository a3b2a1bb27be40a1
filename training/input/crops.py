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
    """Squares of `min_area` to all of the largest square, at random places.

    `sizes` [n, 2] are heights and widths, `draws` [n, NUM_DRAWS]; [n, 3] are left, top and side, in
    whole pixels.
    """
    area, left, top = draws[:, :3].T.astype(np.float64)
    shortest = sizes.min(axis=1)
    side = np.rint(shortest * np.sqrt(min_area + (1 - min_area) * area)).astype(np.int64)
    side = np.clip(side, 1, shortest)
    room = sizes - side[:, None] + 1
    return np.stack([left * room[:, 1], top * room[:, 0], side], axis=1).astype(np.int64)


def centre_boxes(sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    """The largest squares in the middle; see `training_boxes`."""
    side = sizes.min(axis=1)
    return np.stack([(sizes[:, 1] - side) // 2, (sizes[:, 0] - side) // 2, side], axis=1)


def are_mirrored(draws: NDArray[np.float32]) -> NDArray[np.bool_]:
    """Which samples are seen in a mirror: half of them are."""
    return draws[:, 3] < 0.5
