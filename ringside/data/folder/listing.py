"""Lists the files of a data folder, never leaving it."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from ringside.errors import DataError

IMAGE_SUFFIXES = frozenset(
    {".jpg", ".jpeg", ".png", ".webp", ".bmp", ".gif", ".tif", ".tiff", ".ppm", ".pgm"}
)
IGNORED_NAMES = frozenset({"__macosx", "thumbs.db", "desktop.ini"})


@dataclass(frozen=True)
class Listing:
    """The files below `root`.

    `sizes_bytes` maps the path of every file, relative to the root and with forward slashes, to
    its size; `folders` holds the relative paths of all sub-folders. `ignored` counts hidden and
    system files and folders by name; `outside` holds links that lead out of the root and links
    to folders, which are not followed.
    """

    root: Path
    sizes_bytes: dict[str, int] = field(default_factory=dict)
    folders: list[str] = field(default_factory=list)
    ignored: Counter[str] = field(default_factory=Counter)
    outside: list[str] = field(default_factory=list)

    def images(self) -> list[str]:
        """Paths with the ending of an image, in code point order."""
        return sorted(path for path in self.sizes_bytes if is_image_path(path))


def is_image_path(path: str) -> bool:
    """Whether the name ends like an image file, in any case."""
    return PurePosixPath(path).suffix.lower() in IMAGE_SUFFIXES


def list_folder(root: Path) -> Listing:
    """List all files below `root`. Raises `DataError` when there is no such folder."""
    if not root.is_dir():
        raise DataError(f"The data folder {root} does not exist: check the path.")
    listing = Listing(root.resolve())
    waiting = [""]
    while waiting:
        prefix = waiting.pop()
        for entry in _entries(listing.root / prefix):
            path = f"{prefix}{entry.name}"
            if _is_ignored(entry.name):
                listing.ignored[entry.name] += 1
            elif entry.is_symlink() and not _is_file_inside(entry, listing.root):
                listing.outside.append(path)
            elif entry.is_dir():
                listing.folders.append(path)
                waiting.append(f"{path}/")
            else:
                listing.sizes_bytes[path] = entry.stat().st_size
    return listing


def _entries(folder: Path) -> Iterator[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            yield from entries
    except OSError as error:
        raise DataError(f"The folder {folder} cannot be read: {error.strerror}.") from error


def _is_ignored(name: str) -> bool:
    return name.startswith(".") or name.lower() in IGNORED_NAMES


def _is_file_inside(entry: os.DirEntry[str], root: Path) -> bool:
    target = Path(os.path.realpath(entry.path))
    return target.is_file() and target.is_relative_to(root)


def notes_on(listing: Listing) -> list[str]:
    """Sentences about what was left out."""
    notes = []
    if listing.ignored:
        names = ", ".join(sorted(listing.ignored))
        notes.append(f"Ignored hidden and system files or folders: {names}.")
    if listing.outside:
        notes.append(
            f"Left out {counted(len(listing.outside), 'link')} to folders or out of the data "
            f"folder: {first_few(listing.outside)}."
        )
    return notes


def counted(count: int, noun: str) -> str:
    """A count with its noun, in the plural where needed."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def first_few(names: list[str], limit: int = 5) -> str:
    """The first names, comma separated, with an ellipsis when there are more."""
    more = ", ..." if len(names) > limit else ""
    return ", ".join(names[:limit]) + more
