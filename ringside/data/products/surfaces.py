"""Patterns, materials and backgrounds as functions of the place, on planes `[size, size]`.

Coordinates run from 0 to 1 over the product (patterns, materials) or the picture (backgrounds),
so a texture has the same number of repeats at every size and stays visible at 64 pixels.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Plane = NDArray[np.floating[Any]]
    Canvas = NDArray[np.floating[Any]]  # [3, size, size], values from 0 to 1

RGB = {
    "red": (0.85, 0.10, 0.12),
    "orange": (0.96, 0.52, 0.08),
    "yellow": (0.97, 0.85, 0.15),
    "green": (0.18, 0.60, 0.22),
    "teal": (0.08, 0.60, 0.60),
    "blue": (0.16, 0.42, 0.90),
    "navy": (0.08, 0.12, 0.38),
    "purple": (0.52, 0.20, 0.72),
    "pink": (0.97, 0.55, 0.72),
    "brown": (0.45, 0.26, 0.12),
    "beige": (0.88, 0.78, 0.60),
    "black": (0.07, 0.07, 0.08),
    "white": (0.96, 0.96, 0.96),
    "grey": (0.52, 0.53, 0.55),
}
WOOD_RGB = (0.62, 0.40, 0.20)


def _wave(x: Plane) -> Plane:
    """A soft square wave of period 1, from 0 to 1."""
    square: Plane = np.clip(2.5 * np.sin(2 * np.pi * x) + 0.5, 0, 1)
    return square


def _triangle(x: Plane) -> Plane:
    """A triangle wave of period 1, from 0 to 1."""
    distance: Plane = np.abs(x % 1 - 0.5)
    return distance * 2


def _cells(u: Plane, v: Plane, repeats: float) -> Plane:
    """The distance from the centre of the nearest cell, 0 to about 0.7."""
    distance: Plane = np.hypot(u * repeats % 1 - 0.5, v * repeats % 1 - 0.5)
    return distance


PATTERN_OF: dict[str, Callable[[Plane, Plane, Plane], Plane | float]] = {
    "plain": lambda _u, _v, _noise: 0.0,
    "horizontal stripes": lambda _u, v, _noise: _wave(3.5 * v),
    "vertical stripes": lambda u, _v, _noise: _wave(3.5 * u),
    "diagonal stripes": lambda u, v, _noise: _wave(2.6 * (u + v)),
    "dots": lambda u, v, _noise: np.clip((0.34 - _cells(u, v, 3.5)) * 9, 0, 1),
    "checks": lambda u, v, _noise: np.abs(_wave(1.8 * u) - _wave(1.8 * v)),
    "grid": lambda u, v, _noise: np.maximum(_triangle(3.5 * u) > 0.7, _triangle(3.5 * v) > 0.7),
    "zigzag": lambda u, v, _noise: _wave(3 * v + 1.1 * _triangle(2 * u)),
    "waves": lambda u, v, _noise: _wave(3 * v + 0.4 * np.sin(3 * np.pi * u)),
    "diamonds": lambda u, v, _noise: np.clip(
        (_triangle(2.5 * u) + _triangle(2.5 * v) - 1.15) * 9, 0, 1
    ),
    "rings": lambda u, v, _noise: _wave(4.5 * np.hypot(u - 0.5, v - 0.5)),
    "camouflage": lambda _u, _v, noise: np.clip((noise - 0.5) * 14, 0, 1),
}


def paint(
    pattern: str, colours: tuple[str, ...], u: Plane, v: Plane, noise: Plane
) -> tuple[Canvas, Canvas]:
    """The painted body and accent. The second colour makes the pattern, else the accent."""
    first = np.array(RGB[colours[0]], dtype=np.float32)[:, None, None]
    second = np.array(RGB[colours[-1]], dtype=np.float32)[:, None, None]
    share = np.asarray(PATTERN_OF[pattern](u, v, noise), dtype=np.float32)
    body = first + (second - first) * share
    darker_or_lighter = first * 0.62 if first.mean() > 0.2 else first * 0.5 + 0.25
    accent = second if len(colours) > 1 else darker_or_lighter
    return body, np.broadcast_to(accent, (3, 1, 1))


def finish(material: str, colour: Canvas, u: Plane, v: Plane, noise: Plane) -> Canvas:
    """The painted product with the light and texture of its material."""
    light: Plane | Canvas = 1.12 - 0.3 * v
    if material == "glossy":
        shine: Plane = np.exp(-(((u + 0.5 * v - 0.5) * 9) ** 2))
        return colour * light + 0.75 * shine
    if material == "metal":
        light = 0.55 + 0.65 * np.sin(14 * u + 3 * v) ** 2
        colour = 0.5 * colour + 0.5 * colour.mean(axis=0) + 0.12
    elif material == "wood":
        light = 0.62 + 0.45 * _triangle(7 * u + 0.9 * noise)
        colour = 0.5 * colour + 0.5 * np.array(WOOD_RGB, dtype=np.float32)[:, None, None]
    elif material == "leather":
        light = 0.45 + 0.68 * np.clip(2.2 * _cells(u + 0.1 * noise, v, 8), 0, 1)
    elif material == "knit":
        light = 0.5 + 0.7 * _triangle(9 * v + 0.6 * _triangle(9 * u))
    elif material == "plush":
        light = 0.45 + 1.1 * noise
    return colour * light


def _mixed(low: tuple[float, ...], high: tuple[float, ...], share: Plane) -> Canvas:
    start, end = (np.array(rgb, dtype=np.float32)[:, None, None] for rgb in (low, high))
    return start + (end - start) * share


BACKGROUND_OF: dict[str, Callable[[Plane, Plane, Plane], Canvas]] = {
    "white ground": lambda _u, v, _noise: _mixed((1.0, 1.0, 1.0), (0.93, 0.93, 0.94), v),
    "grey studio": lambda _u, v, _noise: _mixed((0.45, 0.46, 0.48), (0.72, 0.72, 0.73), v),
    "spotlight": lambda u, v, _noise: _mixed(
        (0.98, 0.95, 0.86), (0.20, 0.18, 0.17), np.clip(2.2 * np.hypot(u - 0.5, v - 0.5), 0, 1)
    ),
    "pastel wall": lambda _u, v, _noise: _mixed((0.72, 0.86, 0.90), (0.93, 0.80, 0.78), v),
    "wooden table": lambda _u, v, noise: _mixed(
        (0.50, 0.31, 0.15), (0.76, 0.54, 0.30), _triangle(5 * v + 1.3 * noise)
    ),
    "marble": lambda u, v, noise: _mixed(
        (0.55, 0.57, 0.60), (0.95, 0.95, 0.93), np.abs(np.sin(6 * (u + v) + 9 * noise)) ** 0.6
    ),
    "concrete": lambda _u, _v, noise: _mixed((0.38, 0.38, 0.36), (0.74, 0.73, 0.70), noise),
    "night": lambda _u, v, _noise: _mixed((0.03, 0.03, 0.08), (0.10, 0.12, 0.26), v),
}


@lru_cache(maxsize=8)
def _noise_tile(size: int, cells: int) -> Plane:
    """Smooth noise from 0 to 1, `[2 * size, 2 * size]`, to cut pieces from."""
    from PIL import Image

    values = np.random.Generator(np.random.Philox(key=[size, cells])).random((cells, cells))
    image = Image.fromarray((values * 255).astype(np.uint8))
    smooth = image.resize((2 * size, 2 * size), Image.Resampling.BICUBIC)
    return np.asarray(smooth, dtype=np.float32) / 255


def cut_noise(size: int, cells: int, rng: np.random.Generator) -> Plane:
    """A piece of noise with about `cells / 2` bumps along the picture."""
    top, left = rng.integers(size, size=2)
    return _noise_tile(size, cells)[top : top + size, left : left + size]
