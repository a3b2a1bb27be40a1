"""Outlines of the 40 product categories, as polygons in a box of 100 x 100, y downwards."""

from __future__ import annotations

from math import cos, pi, sin
from typing import Literal, NamedTuple

Points = tuple[tuple[float, float], ...]
Layer = Literal["body", "accent", "hole"]


class Part(NamedTuple):
    """One polygon. Parts are painted in order; a hole shows the background."""

    layer: Layer
    points: Points


def _body(points: Points) -> Part:
    return Part("body", points)


def _accent(points: Points) -> Part:
    return Part("accent", points)


def _hole(points: Points) -> Part:
    return Part("hole", points)


def _oval(left: float, top: float, right: float, bottom: float) -> Points:
    return _bow((left + right) / 2, (top + bottom) / 2, (right - left) / 2, (bottom - top) / 2)


def _bow(
    x: float, y: float, width: float, height: float, start: float = 0, end: float = 360
) -> Points:
    """Points of an ellipse round (x, y) from one angle to another, clockwise, in degrees."""
    steps = max(6, round((end - start) / 15))
    angles = [pi / 180 * (start + (end - start) * i / steps) for i in range(steps + 1)]
    return tuple((x + width * cos(a), y + height * sin(a)) for a in angles)


def _band(x: float, y: float, radius: float, width: float, start: float, end: float) -> Points:
    """A curved band, as of a handle."""
    inner = _bow(x, y, radius - width, radius - width, start, end)
    return _bow(x, y, radius, radius, start, end) + inner[::-1]


def _box(left: float, top: float, right: float, bottom: float, cut: float = 0) -> Points:
    """A rectangle with its corners cut off by `cut`, which looks round at these sizes."""
    c = cut
    return (
        *((left + c, top), (right - c, top), (right, top + c), (right, bottom - c)),
        *((right - c, bottom), (left + c, bottom), (left, bottom - c), (left, top + c)),
    )


def _poly(*xy: float) -> Points:
    return tuple(zip(xy[::2], xy[1::2], strict=True))


SHAPES: dict[str, tuple[Part, ...]] = {
    "mug": (
        _accent(_band(68, 52, 20, 8, -90, 90)),
        _body(_box(22, 22, 70, 84, 6)),
        _accent(_box(22, 22, 70, 30, 2)),
    ),
    "bottle": (
        _body(_poly(42, 24, 58, 24, 60, 38, 70, 50, 70, 94, 30, 94, 30, 50, 40, 38)),
        _accent(_box(40, 6, 60, 24, 3)),
        _accent(_box(30, 62, 70, 78)),
    ),
    "pan": (
        _accent(_box(60, 44, 98, 54, 3)),
        _body(_oval(6, 22, 66, 80)),
        _accent(_oval(16, 32, 56, 70)),
    ),
    "bowl": (
        _body(_bow(50, 42, 44, 42, 0, 180)),
        _accent(_oval(6, 34, 94, 50)),
        _body(_box(36, 80, 64, 88, 2)),
    ),
    "teapot": (
        _accent(_band(22, 54, 20, 7, 60, 300)),
        _accent(_poly(70, 62, 96, 30, 99, 36, 80, 76)),
        _body(_oval(20, 28, 80, 86)),
        _accent(_oval(42, 16, 58, 30)),
    ),
    "t-shirt": (
        _body(_poly(34, 14, 66, 14, 96, 32, 86, 50, 74, 44, 74, 90, 26, 90, 26, 44, 14, 50, 4, 32)),
        _accent(_bow(50, 14, 14, 12, 0, 180)),
    ),
    "dress": (
        _body(_poly(38, 8, 62, 8, 60, 42, 86, 94, 14, 94, 40, 42)),
        _accent(_poly(39, 38, 61, 38, 63, 48, 37, 48)),
        _hole(_bow(50, 8, 8, 8, 0, 180)),
    ),
    "trousers": (
        _body(_poly(28, 8, 72, 8, 80, 94, 58, 94, 50, 38, 42, 94, 20, 94)),
        _accent(_box(27, 8, 73, 18)),
    ),
    "shoe": (
        _body(_poly(8, 36, 36, 36, 52, 54, 88, 62, 96, 74, 8, 74)),
        _accent(_box(6, 74, 97, 84, 3)),
        _accent(_poly(36, 40, 42, 36, 58, 52, 52, 56)),
    ),
    "hat": (
        _body(_bow(50, 66, 30, 50, 180, 360)),
        _accent(_box(20, 56, 80, 68)),
        _body(_oval(2, 62, 98, 82)),
    ),
    "handbag": (
        _accent(_band(50, 42, 26, 6, 180, 360)),
        _body(_poly(18, 40, 82, 40, 92, 90, 8, 90)),
        _accent(_box(42, 50, 58, 64, 3)),
    ),
    "backpack": (
        _accent(_band(50, 18, 14, 5, 180, 360)),
        _body(_box(22, 14, 78, 92, 14)),
        _accent(_box(30, 56, 70, 84, 5)),
        _accent(_box(12, 44, 22, 84, 4)),
        _accent(_box(78, 44, 88, 84, 4)),
    ),
    "umbrella": (
        _accent(_box(47, 44, 53, 88)),
        _accent(_band(43, 86, 10, 6, 0, 180)),
        _body(_bow(50, 50, 46, 42, 180, 360)),
        _hole(_bow(19, 52, 14, 7, 180, 360)),
        _hole(_bow(81, 52, 14, 7, 180, 360)),
    ),
    "watch": (
        _accent(_box(36, 2, 64, 98, 5)),
        _body(_oval(18, 20, 82, 80)),
        _accent(_oval(28, 30, 72, 70)),
        _body(_poly(48, 34, 52, 34, 52, 50, 64, 58, 60, 62, 48, 52)),
    ),
    "glasses": (
        _body(_oval(2, 30, 48, 72)),
        _body(_oval(52, 30, 98, 72)),
        _body(_box(44, 44, 56, 52)),
        _accent(_oval(9, 37, 41, 65)),
        _accent(_oval(59, 37, 91, 65)),
    ),
    "chair": (
        _body(_box(24, 6, 34, 96)),
        _body(_box(24, 10, 72, 50, 4)),
        _accent(_box(24, 52, 80, 64, 3)),
        _body(_box(70, 62, 80, 96)),
    ),
    "table": (
        _accent(_box(12, 42, 22, 92)),
        _accent(_box(78, 42, 88, 92)),
        _body(_box(2, 30, 98, 44, 3)),
    ),
    "sofa": (
        _body(_box(14, 24, 86, 62, 6)),
        _accent(_box(16, 50, 84, 68, 3)),
        _body(_box(2, 42, 20, 82, 5)),
        _body(_box(80, 42, 98, 82, 5)),
        _body(_box(10, 66, 90, 82)),
    ),
    "lamp": (
        _accent(_box(46, 46, 54, 88)),
        _body(_poly(34, 8, 66, 8, 88, 50, 12, 50)),
        _accent(_oval(26, 84, 74, 96)),
    ),
    "shelf": (
        _body(_box(12, 4, 88, 96)),
        _hole(_box(20, 12, 80, 34)),
        _hole(_box(20, 42, 80, 62)),
        _hole(_box(20, 70, 80, 90)),
        _accent(_box(26, 18, 44, 34)),
        _accent(_box(52, 48, 74, 62)),
    ),
    "phone": (
        _body(_box(28, 4, 72, 96, 7)),
        _accent(_box(33, 14, 67, 82)),
        _accent(_oval(46, 85, 54, 93)),
    ),
    "laptop": (
        _body(_box(16, 16, 84, 66, 3)),
        _accent(_box(22, 22, 78, 60)),
        _body(_poly(16, 68, 84, 68, 98, 86, 2, 86)),
    ),
    "headphones": (
        _accent(_band(50, 52, 42, 8, 180, 360)),
        _body(_box(4, 48, 26, 90, 8)),
        _body(_box(74, 48, 96, 90, 8)),
    ),
    "camera": (
        _body(_box(4, 28, 96, 86, 6)),
        _body(_box(34, 16, 66, 30, 3)),
        _accent(_oval(30, 34, 76, 80)),
        _body(_oval(40, 44, 66, 70)),
        _accent(_box(12, 36, 24, 44)),
    ),
    "speaker": (
        _body(_box(24, 4, 76, 96, 5)),
        _accent(_oval(36, 12, 64, 40)),
        _accent(_oval(30, 48, 70, 88)),
        _body(_oval(42, 60, 58, 76)),
    ),
    "ball": (
        _body(_oval(8, 8, 92, 92)),
        _accent(_poly(50, 34, 65, 45, 59, 63, 41, 63, 35, 45)),
    ),
    "racket": (
        _accent(_poly(44, 58, 56, 58, 55, 98, 45, 98)),
        _body(_oval(20, 2, 80, 66)),
        _hole(_oval(28, 10, 72, 58)),
        _accent(_box(28, 32, 72, 36)),
        _accent(_box(48, 10, 52, 58)),
    ),
    "skateboard": (
        _body(_poly(2, 40, 14, 48, 86, 48, 98, 40, 98, 48, 88, 58, 12, 58, 2, 48)),
        _accent(_oval(18, 56, 36, 74)),
        _accent(_oval(64, 56, 82, 74)),
    ),
    "kite": (
        _body(_poly(50, 2, 82, 36, 50, 74, 18, 36)),
        _accent(_poly(50, 2, 82, 36, 50, 36)),
        _accent(_poly(50, 74, 60, 82, 48, 88, 58, 98, 52, 98, 42, 88, 52, 82)),
    ),
    "dumbbell": (
        _accent(_box(20, 44, 80, 56)),
        _body(_box(4, 24, 16, 76, 4)),
        _body(_box(16, 16, 30, 84, 4)),
        _body(_box(70, 16, 84, 84, 4)),
        _body(_box(84, 24, 96, 76, 4)),
    ),
    "potted plant": (
        _accent(_oval(10, 18, 48, 44)),
        _accent(_oval(52, 12, 92, 42)),
        _accent(_oval(36, 2, 62, 58)),
        _body(_poly(24, 56, 76, 56, 66, 96, 34, 96)),
    ),
    "watering can": (
        _accent(_poly(60, 62, 88, 22, 94, 26, 72, 80)),
        _accent(_poly(80, 14, 99, 26, 94, 32, 77, 22)),
        _accent(_band(34, 40, 26, 6, 150, 380)),
        _body(_box(14, 40, 68, 90, 5)),
    ),
    "shovel": (
        _accent(_box(46, 10, 54, 62)),
        _accent(_box(34, 2, 66, 12, 3)),
        _body(_poly(32, 56, 68, 56, 68, 80, 50, 99, 32, 80)),
    ),
    "birdhouse": (
        _body(_box(22, 38, 78, 90)),
        _accent(_poly(50, 6, 94, 44, 6, 44)),
        _hole(_oval(40, 52, 60, 72)),
        _accent(_box(46, 76, 54, 82)),
    ),
    "lantern": (
        _accent(_band(50, 18, 14, 5, 180, 360)),
        _accent(_poly(34, 16, 66, 16, 78, 32, 22, 32)),
        _body(_box(26, 32, 74, 84, 3)),
        _hole(_box(34, 40, 66, 76)),
        _accent(_oval(43, 48, 57, 76)),
        _accent(_box(20, 84, 80, 94, 2)),
    ),
    "book": (
        _body(_box(16, 8, 84, 92, 2)),
        _accent(_box(16, 8, 28, 92, 2)),
        _accent(_box(38, 24, 74, 38)),
    ),
    "carton": (
        _body(_poly(6, 34, 50, 46, 50, 96, 6, 80)),
        _body(_poly(94, 34, 50, 46, 50, 96, 94, 80)),
        _accent(_poly(50, 18, 94, 34, 50, 48, 6, 34)),
    ),
    "pencil": (
        _body(_poly(14, 70, 70, 14, 86, 30, 30, 86)),
        _accent(_poly(14, 70, 30, 86, 4, 96)),
        _accent(_poly(70, 14, 78, 6, 94, 22, 86, 30)),
    ),
    "envelope": (
        _body(_box(4, 22, 96, 82, 2)),
        _accent(_poly(4, 22, 96, 22, 50, 58)),
    ),
    "scissors": (
        _accent(_poly(26, 4, 34, 2, 62, 60, 54, 66)),
        _accent(_poly(74, 4, 66, 2, 38, 60, 46, 66)),
        _body(_oval(18, 58, 48, 96)),
        _hole(_oval(25, 66, 41, 88)),
        _body(_oval(52, 58, 82, 96)),
        _hole(_oval(59, 66, 75, 88)),
    ),
}
