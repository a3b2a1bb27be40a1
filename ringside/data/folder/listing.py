"""Lists the files of a data folder, never leaving it."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path, PurePosixPath

from ringside.data.notes import Note
from ringside.errors import DataError
from ringside.words import say, say_count, say_few

IMAGE_SUFFIXES = frozenset(
    {".jpg", ".jpeg", ".png", ".webp", ".bmp", ".gif", ".tif", ".tiff", ".ppm", ".pgm"}
)
SMALL_ENTRIES, SMALL_TABLE_BYTES = 20_000, 4 * 2**20
IGNORED_NAMES = frozenset({"__macosx", "thumbs.db", "desktop.ini"})


@dataclass(frozen=True)
class Listing:
    """The files below `root`.

    `sizes_bytes` maps the path of every file, relative to the root and with forward slashes, to
    its size; `folders` holds the relative paths of all sub-folders. `ignored` counts hidden and
    system files and folders by name; `outside` holds links that lead out of the root and links
    to folders, which are not followed; `misnamed` holds names that are no UTF-8, made readable.
    """

    root: Path
    sizes_bytes: dict[str, int] = field(default_factory=dict)
    folders: list[str] = field(default_factory=list)
    ignored: Counter[str] = field(default_factory=Counter)
    outside: list[str] = field(default_factory=list)
    misnamed: list[str] = field(default_factory=list)

    def images(self) -> list[str]:
        """Paths with the ending of an image, in code point order."""
        return sorted(path for path in self.sizes_bytes if is_image_path(path))


def is_image_path(path: str) -> bool:
    """Whether the name ends like an image file, in any case."""
    return PurePosixPath(path).suffix.lower() in IMAGE_SUFFIXES


def list_folder(root: Path) -> Listing:
    """List all files below `root`. Raises `DataError` when there is no such folder."""
    if not root.is_dir():
        raise DataError(say("dataset.no_folder", root=root))
    listing = Listing(root.resolve())
    waiting = [""]
    while waiting:
        prefix = waiting.pop()
        for folder in _add_entries(listing, prefix):
            listing.folders.append(folder)
            waiting.append(f"{folder}/")
    return listing


def is_small(path: Path) -> bool:
    """Whether a folder or table can be read in a moment: few entries, a short table."""
    if path.is_file():
        return path.stat().st_size <= SMALL_TABLE_BYTES
    entries = (name for _, folders, files in os.walk(path) for name in (*folders, *files))
    return sum(1 for _ in islice(entries, SMALL_ENTRIES + 1)) <= SMALL_ENTRIES


def list_folders(root: Path, folders: Iterable[str]) -> Listing:
    """List the files in `folders` (relative to `root`) and nothing below or beside them.

    A table may lie in a home folder: what it does not name is not looked at.
    """
    listing = Listing(root.resolve())
    for folder in sorted(set(folders)):
        path = listing.root / folder
        if path.is_dir() and Path(os.path.realpath(path)) == path:
            _add_entries(listing, f"{folder}/" if folder else "")
        elif path.is_dir():
            listing.outside.append(folder)
    return listing


def _add_entries(listing: Listing, prefix: str) -> list[str]:
    """Note the files of one folder and return its sub-folders."""
    folders = []
    for entry in _entries(listing.root / prefix):
        path = f"{prefix}{entry.name}"
        readable = os.fsencode(path).decode(errors="backslashreplace")
        if readable != path:  # no JSON file and no class list could hold it
            listing.misnamed.append(readable)
        elif _is_ignored(entry.name):
            listing.ignored[entry.name] += 1
        elif entry.is_symlink() and not _is_file_inside(entry, listing.root):
            listing.outside.append(path)
        elif entry.is_dir():
            folders.append(path)
        elif entry.is_file():
            listing.sizes_bytes[path] = entry.stat().st_size
        else:  # a pipe or device: reading it could last for ever
            listing.ignored[entry.name] += 1
    return folders


def _entries(folder: Path) -> Iterator[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            yield from entries
    except OSError as error:
        raise DataError(
            say("dataset.folder_unreadable", folder=folder, why=error.strerror)
        ) from error


def _is_ignored(name: str) -> bool:
    return name.startswith(".") or name.lower() in IGNORED_NAMES


def _is_file_inside(entry: os.DirEntry[str], root: Path) -> bool:
    try:
        target = Path(os.path.realpath(entry.path))
        return target.is_file() and target.is_relative_to(root)
    except OSError:
        return False  # It vanished, or its link may not be read; then it is no image of ours.


def notes_on(listing: Listing, tables: Iterable[str] = ()) -> list[Note]:
    """Sentences about what was left out; `tables` are the files that the labels come from."""
    notes = []
    if listing.ignored:
        names = ", ".join(sorted(listing.ignored))
        notes.append(Note("ignored", say("data_note.hidden", names=names)))
    known = set(tables)
    others = [p for p in listing.sizes_bytes if not is_image_path(p) and p not in known]
    if others:
        endings = Counter(
            PurePosixPath(path).suffix or say("data_note.no_ending") for path in others
        )
        counts = ", ".join(f"{count:,} {ending}" for ending, count in endings.most_common())
        notes.append(Note("ignored", say("data_note.not_images", counts=counts)))
    if listing.outside:
        links = say_count("link", len(listing.outside))
        notes.append(
            Note("links", say("data_note.links", links=links, names=say_few(listing.outside)))
        )
    if listing.misnamed:
        n, names = len(listing.misnamed), say_few(listing.misnamed)
        notes.append(Note("left-out", say("data_note.misnamed", n=n, names=names)))
    return notes
