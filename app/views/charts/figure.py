"""A chart before and after it is drawn."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Figure:
    """A chart as a definition: `draw(width)` makes an Altair chart of so many pixels.

    `headline` is the one sentence that it shows, `description` says the same to those who cannot
    see it, and `columns` and `rows` hold its numbers as texts.
    """

    name: str
    title: str
    headline: str
    description: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    draw: Callable[[int], Any]


@dataclass(frozen=True)
class Picture:
    """A drawn chart: SVG for the page, wide and narrow; SVG and PNG in light colours as files."""

    name: str
    title: str
    headline: str
    description: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    wide: str
    narrow: str
    svg: str
    png: bytes
