"""What a check says while it works: lines of JSON, from its process to the page."""

from __future__ import annotations

import msgspec

from ringside.data import DataReport


class Progress(msgspec.Struct, frozen=True, tag="progress"):
    """So many of so many pictures are decoded."""

    done: int
    total: int


class OddPicture(msgspec.Struct, frozen=True):
    """One unusual picture as training sees it; `png` is a small PNG."""

    kind: str
    file: str
    png: bytes


class Found(msgspec.Struct, frozen=True, tag="found"):
    """The end of a check."""

    report: DataReport
    odd: tuple[OddPicture, ...]


class Refused(msgspec.Struct, frozen=True, tag="refused"):
    """Nothing could be checked; the sentence says why."""

    sentence: str


CheckMessage = Progress | Found | Refused
