"""Small previews of the unusual images that a check found."""

from __future__ import annotations

from dataclasses import dataclass

from ringside.data.check.report import DataReport
from ringside.data.images import read_file
from ringside.data.pixels import thumbnail
from ringside.errors import DataError


@dataclass(frozen=True)
class OddImage:
    """One example of a kind; `png` is how training sees it, cut to a square."""

    kind: str
    file: str
    png: bytes


def odd_images(report: DataReport, size: int = 96) -> tuple[OddImage, ...]:
    """Up to three examples of each kind, `size` pixels wide, read again from the folder.

    Examples that have gone since are left out; a built-in source has none.
    """
    if report.root is None:
        return ()
    found = []
    for unusual in report.unusual:
        for file in unusual.examples:
            try:
                data = read_file(f"{report.root}/{file}", file)
                found.append(OddImage(unusual.kind, file, thumbnail(data, file, size)))
            except DataError:
                continue
    return tuple(found)
