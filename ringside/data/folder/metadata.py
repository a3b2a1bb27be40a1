"""Reads labels, splits and files from `metadata.csv` or `metadata.jsonl`."""

from __future__ import annotations

import os
import posixpath
import re
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from functools import cached_property

from ringside.data.folder.labels import read_labels
from ringside.data.folder.listing import Listing, counted, first_few
from ringside.data.folder.records import Record, Records
from ringside.data.folder.table import Table, read_table
from ringside.data.images import Task
from ringside.data.splits import SPLIT_NAMES, is_split_name, roles
from ringside.errors import DataError

METADATA_NAMES = ("metadata.csv", "metadata.jsonl")


def find_metadata(listing: Listing) -> list[str]:
    """The metadata file at the top, else those in the split folders; relative paths.

    Raises `DataError` when a folder has both kinds.
    """
    splits = [folder for folder in listing.folders if is_split_name(folder)]
    at_top = _in_folders(listing, [""])
    return at_top or _in_folders(listing, [f"{folder}/" for folder in sorted(splits)])


def _in_folders(listing: Listing, prefixes: list[str]) -> list[str]:
    found = []
    for prefix in prefixes:
        here = [prefix + name for name in METADATA_NAMES if prefix + name in listing.sizes_bytes]
        if len(here) > 1:
            raise DataError(f"{listing.root} has both {' and '.join(here)}: keep one.")
        found += here
    return found


def read_metadata(listing: Listing, paths: list[str]) -> Records:
    """All rows of the metadata files as records.

    Raises `DataError` for rows without a usable file, files named twice, unknown split names,
    and metadata files that differ in the kind of labels.
    """
    parts = [_read_one(listing, path) for path in paths]
    tasks = {task for task, _, _ in parts}
    if len(tasks) > 1:
        raise DataError(f"{' and '.join(paths)} differ: one has label, the other has labels.")
    rows = [row for _, part, _ in parts for row in part]
    _refuse_repeated(rows, paths)
    role_of = roles({row.split_name for row in rows if row.split_name})
    kept = [row for row in rows if not row.split_name or role_of[row.split_name]]
    records = [Record(row.path, row.labels, role_of.get(row.split_name)) for row in kept]
    notes = list(dict.fromkeys(note for _, _, part in parts for note in part))
    if len(kept) < len(rows):
        notes.append(
            f"Left out {counted(len(rows) - len(kept), 'test row')}: others are for validation."
        )
    return Records(tasks.pop(), records, notes + _notes_on_unnamed(listing, rows))


@dataclass(frozen=True)
class _Row:
    """A row with its file found; `split_name` is empty where the metadata gives none."""

    path: str
    labels: tuple[str, ...]
    split_name: str


def _read_one(listing: Listing, path: str) -> tuple[Task, list[_Row], list[str]]:
    table = read_table(listing.root / path)
    task, labels, notes = read_labels(table)
    files = _Files(listing, posixpath.dirname(path))
    found = [files.find(name) for name in table.texts("file_name")]
    files.refuse_problems(len(found), table)
    split_names = _split_names(table, found, posixpath.dirname(path))
    rows = [_Row(*parts) for parts in zip(found, labels, split_names, strict=True)]
    return task, rows, notes + files.notes()


def _split_names(table: Table, paths: list[str], folder: str) -> list[str]:
    """From the folder of the metadata file, the column `split`, or the folders of the images."""
    if folder:
        return [folder] * len(paths)
    cells = table.texts("split")
    if any(cells):
        unknown = sorted({cell for cell in cells if not is_split_name(cell)})
        if unknown:
            raise DataError(
                f"{table.path}: split is {first_few([repr(name) for name in unknown])} in "
                f"{counted(sum(cell in unknown for cell in cells), 'row')}, expected one of "
                f"{', '.join(SPLIT_NAMES)}."
            )
        return cells
    tops = [path.partition("/")[0] for path in paths]
    return tops if all(is_split_name(top) for top in tops) else [""] * len(paths)


def _refuse_repeated(rows: list[_Row], paths: list[str]) -> None:
    counts = Counter(row.path for row in rows)
    repeated = sorted(path for path, count in counts.items() if count > 1)
    if repeated:
        raise DataError(
            f"{' and '.join(paths)} name {counted(len(repeated), 'file')} more than once: "
            f"{first_few(repeated)}. Keep one row per image."
        )


def _notes_on_unnamed(listing: Listing, rows: list[_Row]) -> list[str]:
    named = {row.path for row in rows}
    unnamed = [path for path in listing.images() if path not in named]
    if not unnamed:
        return []
    return [f"Not named in the metadata: {counted(len(unnamed), 'image')}, {first_few(unnamed)}."]


@dataclass
class _Files:
    """Finds the files that a metadata file in `folder` names, and collects what is wrong."""

    listing: Listing
    folder: str
    problems: list[str] = field(default_factory=list)
    num_without_ending: int = 0

    def find(self, name: str) -> str:
        """The relative path of the file `name`; an empty text and a problem when there is none."""
        for spelling in dict.fromkeys((name, name.replace("\\", "/"))):
            path = self._relative(spelling)
            if path in self.listing.sizes_bytes:
                return path
            endings = self._by_stem.get(path, [])
            if len(endings) == 1:
                self.num_without_ending += 1
                return endings[0]
        is_outside = not path or path in self.listing.outside
        reason = "outside the data folder" if is_outside else "no such file"
        self.problems.append(f"{name} ({reason})")
        return ""

    def _relative(self, name: str) -> str:
        """Relative to the data folder and normalised; empty when it would leave that folder."""
        if re.match(r"[A-Za-z]:[/\\]", name):  # a Windows path
            return ""
        if posixpath.isabs(name):
            path = os.path.relpath(os.path.realpath(name), self.listing.root)
        else:
            path = posixpath.normpath(posixpath.join(self.folder, name))
        return "" if path.split("/")[0] == ".." else path

    @cached_property
    def _by_stem(self) -> dict[str, list[str]]:
        stems: dict[str, list[str]] = defaultdict(list)
        for path in self.listing.images():
            stems[posixpath.splitext(path)[0]].append(path)
        return stems

    def refuse_problems(self, num_rows: int, table: Table) -> None:
        """Raise `DataError` with the first names when any row has no usable file."""
        if self.problems:
            raise DataError(
                f"{len(self.problems)} of {num_rows} rows in {table.path} have no usable file: "
                f"{first_few(self.problems)}. Add the files or remove the rows."
            )

    def notes(self) -> list[str]:
        """A sentence about names that had to be completed."""
        count = self.num_without_ending
        return (
            [f"Added the file ending to {counted(count, 'name')} of the metadata."] if count else []
        )
