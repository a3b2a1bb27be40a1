"""Which colours a drawing has, by hue, saturation and brightness."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from PIL.Image import Image

# Upper limit of the hue in degrees; red takes what is left, round the circle.
HUES = (
    ("red", 14),
    ("orange", 40),
    ("yellow", 68),
    ("green", 165),
    ("cyan", 196),
    ("blue", 255),
    ("purple", 288),
    ("pink", 344),
    ("red", 360),
)
COLOURS = (*dict.fromkeys(name for name, _ in HUES), "brown", "black", "white", "grey")
MIN_SHARE_RATIO = 0.18  # of the opaque pixels
OPAQUE_ALPHA = 128


def colours_of(drawing: Image) -> list[str]:
    """The colours that cover more than 18 % of the opaque pixels of an RGBA drawing.

    A pixel is black, white or grey when it is dark or hardly saturated, brown when it is a dark
    red to yellow, and otherwise named by its hue.
    """
    import numpy as np

    rgba = np.asarray(drawing)
    opaque = rgba[..., 3] >= OPAQUE_ALPHA
    hsv = np.asarray(drawing.convert("RGB").convert("HSV"))[opaque].astype(np.float32)
    hue, saturation, value = hsv[:, 0] * (360 / 256), hsv[:, 1] / 255, hsv[:, 2] / 255
    limits = np.array([limit for _, limit in HUES])
    names = np.array([name for name, _ in HUES])[np.searchsorted(limits, hue, side="right")]
    pixels = np.select(
        [
            (value < 0.28) | ((value < 0.40) & (saturation < 0.35)),
            (saturation < 0.15) & (value > 0.86),
            saturation < 0.18,
            (hue >= 6) & (hue < 50) & (value < 0.70),
        ],
        ["black", "white", "grey", "brown"],
        default=names,
    )
    return [name for name in COLOURS if np.mean(pixels == name) > MIN_SHARE_RATIO]
