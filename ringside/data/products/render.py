"""Draws one synthetic catalogue picture and encodes it as JPEG.

The pixels depend on (seed, index) and the size alone: any picture can be drawn by any worker in
any order. Another version of numpy or Pillow may change single pixels.
"""

from __future__ import annotations

import io
from dataclasses import dataclass
from functools import lru_cache
from math import cos, radians, sin
from typing import TYPE_CHECKING

import numpy as np
from PIL import Image, ImageDraw, ImageFilter

from ringside.data.products.labels import Scene
from ringside.data.products.overlays import draw_overlays
from ringside.data.products.shapes import SHAPES, Layer
from ringside.data.products.surfaces import BACKGROUND_OF, cut_noise, finish, paint

if TYPE_CHECKING:
    from ringside.data.products.surfaces import Canvas, Plane

OVERSAMPLING = 2
LAYER_VALUES: dict[Layer, int] = {"hole": 0, "body": 1, "accent": 2}
JPEG_QUALITIES = (82, 94)
GLASS_OPACITY = 0.5
# Larger pictures are this one enlarged, with fresh grain: they serve to measure decoding.
MAX_DRAWN_PX = 256
GRAIN_LEVELS = 6


@dataclass(frozen=True)
class Placement:
    """Where a product stands: centre and side as shares of the picture, angle in radians."""

    x: float
    y: float
    side: float
    angle: float


def render_jpeg(scene: Scene, size: int, seed: int, index: int) -> bytes:
    """The picture of `scene`, `size` x `size` pixels, as JPEG."""
    rng = np.random.Generator(np.random.Philox(key=[seed, index]))
    image = _draw(scene, min(size, MAX_DRAWN_PX), rng)
    if size > MAX_DRAWN_PX:
        image = _enlarged(image, size, rng)
    encoded = io.BytesIO()
    image.save(encoded, "JPEG", quality=int(rng.integers(*JPEG_QUALITIES)))
    return encoded.getvalue()


def _draw(scene: Scene, size: int, rng: np.random.Generator) -> Image.Image:
    u, v = _grid(size)
    canvas = BACKGROUND_OF[scene.background](u, v, cut_noise(size, 14, rng))
    placements = _placements(scene, rng)
    body, accent = _masks(scene, placements, size)
    canvas = canvas * (1 - _shadow(body + accent, "strong shadow" in scene.attributes))
    canvas = _with_product(canvas, scene, placements[0], body, accent, rng)
    cast = rng.normal(1, 0.03, size=(3, 1, 1)).astype(np.float32)
    canvas = canvas * cast + rng.standard_normal((size, size), dtype=np.float32) * 0.015
    pixels = (np.clip(canvas, 0, 1) * 255).astype(np.uint8)
    image = Image.fromarray(np.ascontiguousarray(pixels.transpose(1, 2, 0)))
    draw_overlays(image, scene.attributes, placements[0].x, placements[0].y, placements[0].side)
    return image


def _enlarged(image: Image.Image, size: int, rng: np.random.Generator) -> Image.Image:
    pixels = np.asarray(image.resize((size, size), Image.Resampling.BICUBIC), dtype=np.int16)
    grain = rng.integers(-GRAIN_LEVELS, GRAIN_LEVELS + 1, size=(size, size, 1), dtype=np.int8)
    return Image.fromarray(np.clip(pixels + grain, 0, 255).astype(np.uint8))


@lru_cache(maxsize=8)
def _grid(size: int) -> tuple[Plane, Plane]:
    """The places of the pixels, u rightwards and v downwards."""
    steps = (np.arange(size, dtype=np.float32) + 0.5) / size
    u, v = np.meshgrid(steps, steps)
    return u, v


def _placements(scene: Scene, rng: np.random.Generator) -> list[Placement]:
    x, y, size, angle = rng.random(4) * 2 - 1
    turn = radians(3 * angle)
    if "tilted" in scene.attributes:
        turn += radians(28) * (1 if angle > 0 else -1)
    side = (1.05 if "close-up" in scene.attributes else 0.68) * (1 + 0.08 * size)
    if "multipack" not in scene.attributes:
        return [Placement(0.5 + 0.06 * x, 0.5 + 0.06 * y, side, turn)]
    return [
        Placement(0.5 + 0.27 * column, 0.5 + 0.16 * row, 0.6 * side, turn)
        for column, row in ((-1, -1), (1, -1), (0, 1))
    ]


def _masks(scene: Scene, placements: list[Placement], size: int) -> tuple[Plane, Plane]:
    """How far every pixel is covered by body and accent, 0 to 1, with smooth edges."""
    image = Image.new("L", (size * OVERSAMPLING,) * 2)
    draw = ImageDraw.Draw(image)
    for placement in placements:
        scale = placement.side * image.width / 100
        a, b = scale * cos(placement.angle), scale * sin(placement.angle)
        x, y = placement.x * image.width, placement.y * image.width
        turned = np.array([[a, b], [-b, a]])
        for part in SHAPES[scene.category]:
            points = (np.array(part.points) - 50) @ turned + (x, y)
            draw.polygon(points.ravel().tolist(), fill=LAYER_VALUES[part.layer])
    return _coverage(image, "body"), _coverage(image, "accent")


def _coverage(layers: Image.Image, layer: Layer) -> Plane:
    table = [255 * (value == LAYER_VALUES[layer]) for value in range(256)]
    return np.asarray(layers.point(table).reduce(OVERSAMPLING), dtype=np.float32) / 255


def _shadow(mask: Plane, is_strong: bool) -> Plane:
    """How much light the product takes away, to its lower right."""
    size = len(mask)
    shift, blur, depth = (0.09, 0.012, 0.75) if is_strong else (0.03, 0.05, 0.35)
    image = Image.fromarray((mask * 255).astype(np.uint8))
    blurred = image.filter(ImageFilter.BoxBlur(max(1, round(blur * size))))
    moved = Image.new("L", image.size)
    moved.paste(blurred, (round(shift * size), round(shift * size)))
    return np.asarray(moved, dtype=np.float32) * (depth / 255)


def _with_product(
    canvas: Canvas,
    scene: Scene,
    placement: Placement,
    body: Plane,
    accent: Plane,
    rng: np.random.Generator,
) -> Canvas:
    size = len(body)
    u, v = _product_grid(size, placement)
    body_colour, accent_colour = paint(scene.pattern, scene.colours, u, v, cut_noise(size, 18, rng))
    cover = body + accent
    share = accent / np.maximum(cover, 1e-6)
    fine_noise = cut_noise(size, 56, rng)
    colour = body_colour + (accent_colour - body_colour) * share
    surface = finish(scene.material, colour, u, v, fine_noise)
    if scene.material == "glass":
        return canvas + (surface - canvas) * (cover * GLASS_OPACITY)
    if scene.material == "plush":
        cover = np.clip(cover * 1.6 - 1.1 * (1 - fine_noise) * (cover < 0.99), 0, 1)
    return canvas + (surface - canvas) * cover


def _product_grid(size: int, placement: Placement) -> tuple[Plane, Plane]:
    """The places of the pixels in the box of the product, 0 to 1 inside it."""
    u, v = _grid(size)
    a, b = cos(placement.angle) / placement.side, sin(placement.angle) / placement.side
    x, y = u - placement.x, v - placement.y
    return a * x + b * y + 0.5, a * y - b * x + 0.5
