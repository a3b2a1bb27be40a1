"""Which column of a table names the images."""

from __future__ import annotations

from pathlib import Path

from ringside.data.folder.listing import is_image_path
from ringside.errors import DataError
from ringside.words import say

# In this order, where a table has several.
IMAGE_COLUMNS = (
    "file_name", "filename", "image_path", "img_path", "file_path", "filepath", "path",
    "image_name", "image_file", "image", "img", "file",
)  # fmt: skip


def known_column(name: str) -> str:
    """The name as it is compared: small letters, underscores for blanks and hyphens."""
    return name.strip().lower().replace(" ", "_").replace("-", "_")


def find_image_column(path: Path, columns: dict[str, list[object]]) -> str:
    """The column with a known name, else the only one whose cells all end like image files.

    Raises `DataError` when there is none.
    """
    by_name = {known_column(column): column for column in reversed(columns)}
    named = [by_name[name] for name in IMAGE_COLUMNS if name in by_name]
    if named:
        return named[0]
    if any(is_image_path(column) for column in columns):
        raise DataError(say("dataset.no_header", path=path, columns=", ".join(columns)[:80]))
    looking = [column for column, cells in columns.items() if _all_images(cells)]
    if len(looking) == 1:
        return looking[0]
    raise DataError(say("dataset.no_file_name", path=path, columns=", ".join(columns)[:80]))


def _all_images(cells: list[object]) -> bool:
    return bool(cells) and all(isinstance(cell, str) and is_image_path(cell) for cell in cells)
