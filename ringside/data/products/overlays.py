"""Attributes that are drawn over a finished picture: badges, tags, ribbons, frames."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING

from PIL import ImageDraw

if TYPE_CHECKING:
    from PIL.Image import Image

RED, GOLD, CREAM, INK = (214, 24, 40), (246, 190, 20), (250, 240, 214), (24, 24, 32)


class _Pen:
    """Draws in shares of the picture."""

    def __init__(self, image: Image) -> None:
        self.draw = ImageDraw.Draw(image)
        self.size = image.width

    def polygon(self, colour: tuple[int, int, int], *xy: float) -> None:
        self.draw.polygon([value * self.size for value in xy], fill=colour)

    def oval(self, colour: tuple[int, int, int], x: float, y: float, radius: float) -> None:
        box = (x - radius, y - radius, x + radius, y + radius)
        self.draw.ellipse([value * self.size for value in box], fill=colour)

    def box(self, colour: tuple[int, int, int], *corners: float) -> None:
        self.draw.rectangle([value * self.size for value in corners], fill=colour)


def draw_overlays(
    image: Image, attributes: Collection[str], x: float, y: float, side: float
) -> None:
    """Draw the overlays among `attributes`; the product is centred at (x, y), `side` wide."""
    pen = _Pen(image)
    for name, overlay in OVERLAYS.items():
        if name in attributes:
            overlay(pen, x, y, side)


def _gift_ribbon(pen: _Pen, x: float, y: float, side: float) -> None:
    half, width = side * 0.46, 0.035
    pen.box(GOLD, x - width, y - half, x + width, y + half)
    pen.box(GOLD, x - half, y - width, x + half, y + width)
    pen.polygon(RED, x, y, x - 0.13, y - 0.1, x - 0.13, y + 0.06)
    pen.polygon(RED, x, y, x + 0.13, y - 0.1, x + 0.13, y + 0.06)


def _brand_logo(pen: _Pen, x: float, y: float, side: float) -> None:
    pen.oval((250, 250, 250), x, y + 0.12 * side, 0.105)
    pen.polygon(INK, x, y + 0.12 * side - 0.08, x + 0.07, y + 0.12 * side + 0.05,
                x - 0.07, y + 0.12 * side + 0.05)  # fmt: skip


def _hang_tag(pen: _Pen, x: float, y: float, side: float) -> None:
    left, top = x - 0.44 * side, y - 0.05 * side
    pen.polygon(
        INK, x, y - 0.2 * side, x + 0.02, y - 0.2 * side, left + 0.07, top, left + 0.05, top
    )
    pen.polygon(CREAM, left, top + 0.05, left + 0.06, top, left + 0.12, top + 0.05,
                left + 0.12, top + 0.24, left, top + 0.24)  # fmt: skip
    pen.box(RED, left + 0.02, top + 0.12, left + 0.10, top + 0.16)


def _sale_badge(pen: _Pen, _x: float, _y: float, _side: float) -> None:
    pen.oval(RED, 0.86, 0.14, 0.13)
    pen.polygon((255, 255, 255), 0.80, 0.20, 0.90, 0.06, 0.93, 0.08, 0.83, 0.22)


def _price_banner(pen: _Pen, _x: float, _y: float, _side: float) -> None:
    pen.box(GOLD, 0, 0.87, 1, 1)
    for left in (0.60, 0.70, 0.80, 0.90):
        pen.box(INK, left, 0.90, left + 0.06, 0.97)


def _frame(pen: _Pen, _x: float, _y: float, _side: float) -> None:
    pen.draw.rectangle(
        [0, 0, pen.size - 1, pen.size - 1], outline=(30, 90, 60), width=max(2, pen.size // 16)
    )


OVERLAYS: dict[str, Callable[[_Pen, float, float, float], None]] = {
    "gift ribbon": _gift_ribbon,
    "brand logo": _brand_logo,
    "hang tag": _hang_tag,
    "price banner": _price_banner,
    "sale badge": _sale_badge,
    "framed": _frame,
}
