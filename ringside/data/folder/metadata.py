"""Reads labels, splits and files from `metadata.csv` and its kin, or from a table of any name."""

from __future__ import annotations

import posixpath
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

from ringside.data.folder.labels import Labels, read_labels
from ringside.data.folder.listing import Listing, list_folders
from ringside.data.folder.naming import NamedFiles, folders_of
from ringside.data.folder.records import Problem, Record, Records
from ringside.data.folder.table import DELIMITERS, Table, read_table
from ringside.data.notes import Note, counted, first_few
from ringside.data.splits import SPLIT_NAMES, is_split_name, roles
from ringside.errors import DataError
from ringside.spec import Separator

METADATA_NAMES = ("metadata.csv", "metadata.jsonl", "metadata.parquet")


def find_metadata(listing: Listing) -> list[str]:
    """The metadata file at the top, else those in the split folders; relative paths.

    Raises `DataError` when a folder has several kinds.
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


def read_metadata(listing: Listing, paths: list[str], separator: Separator | None) -> Records:
    """All rows of the metadata files in a listed folder as records."""
    tables = [read_table(listing.root / path) for path in paths]
    parts = [_read_one(listing, p, t, separator) for p, t in zip(paths, tables, strict=True)]
    return _combined(listing, parts)


def read_single_table(path: Path, separator: Separator | None) -> tuple[Listing, Records]:
    """The rows of a table that a person named, and the folders that these lead to."""
    table = read_table(path)
    listing = list_folders(path.parent, folders_of(table.texts(table.image_column), path.parent))
    return listing, _combined(listing, [_read_one(listing, path.name, table, separator)])


@dataclass(frozen=True)
class _Row:
    """A row with its file found; `split_name` is empty where the table gives none."""

    path: str
    labels: tuple[str, ...]
    split_name: str
    where: str


@dataclass(frozen=True)
class _Part:
    """What one table says; `name` is its path below the data folder."""

    name: str
    table: Table
    labels: Labels
    rows: list[_Row]
    problems: list[Problem]
    notes: list[Note]


def _read_one(listing: Listing, path: str, table: Table, separator: Separator | None) -> _Part:
    labels = read_labels(table, separator)
    files = NamedFiles(listing, posixpath.dirname(path))
    names = table.texts(table.image_column)
    places = [table.where(number, path) for number in range(1, table.num_rows + 1)]
    found = [files.find(*row) for row in zip(names, places, labels.rows, strict=True)]
    split_names = _split_names(table, found, posixpath.dirname(path))
    rows, problems = [], files.problems
    for file, row_labels, split_name, where in zip(
        found, labels.rows, split_names, places, strict=True
    ):
        row = _Row(file, row_labels, split_name, where)
        if file and labels.task == "single_label" and not row.labels:
            problems.append(Problem("no-label", file, f"{row.where}: the label is empty"))
        elif file:
            rows.append(row)
    return _Part(path, table, labels, rows, problems, [*labels.notes, *files.notes()])


def _combined(listing: Listing, parts: list[_Part]) -> Records:
    """Raises `DataError` for unknown split names and for tables that differ in their labels."""
    names = [part.name for part in parts]
    if len({part.labels.task for part in parts}) > 1:
        raise DataError(
            f"{' and '.join(names)} differ: one has one class per image, the other any number. "
            "Name the column of the labels alike in both."
        )
    rows, conflicts, notes = _without_repeated([row for part in parts for row in part.rows])
    role_of = roles({row.split_name for row in rows if row.split_name})
    kept = [row for row in rows if not row.split_name or role_of[row.split_name]]
    notes += dict.fromkeys(note for part in parts for note in part.notes)
    if len(kept) < len(rows):
        left_out = counted(len(rows) - len(kept), "test row")
        notes.append(Note("left-out", f"Left out {left_out}: others are for validation."))
    problems = [problem for part in parts for problem in part.problems] + conflicts
    return Records(
        parts[0].labels.task,
        [Record(row.path, row.labels, role_of.get(row.split_name)) for row in kept],
        _layout(names, parts[0]),
        problems,
        notes + _notes_on_unnamed(listing, rows, problems),
    )


def _layout(names: list[str], part: _Part) -> str:
    table = part.table
    delimiter = f", columns separated by a {DELIMITERS[table.delimiter]}" if table.delimiter else ""
    return (
        f"{' and '.join(names)}: files in column {table.image_column}, "
        f"{part.labels.layout}{delimiter}."
    )


def _split_names(table: Table, paths: list[str], folder: str) -> list[str]:
    """From the folder of the table, the column `split`, or the folders of the images."""
    if folder:
        return [folder] * len(paths)
    column = next(iter(table.known("split")), None)
    cells = table.texts(column) if column else []
    if any(cells):
        unknown = sorted({cell for cell in cells if not is_split_name(cell)})
        if unknown:
            first = next(n for n, cell in enumerate(cells, 1) if cell in unknown)
            raise DataError(
                f"{column} is {first_few([repr(name) for name in unknown])} in "
                f"{counted(sum(cell in unknown for cell in cells), 'row')}, first in "
                f"{table.where(first)}, expected one of {', '.join(SPLIT_NAMES)}."
            )
        return cells
    tops = [path.partition("/")[0] for path in paths if path]
    by_folder = tops and all(is_split_name(top) for top in tops)
    return [path.partition("/")[0] if by_folder else "" for path in paths]


def _without_repeated(rows: list[_Row]) -> tuple[list[_Row], list[Problem], list[Note]]:
    """One row per file; rows that contradict each other are all taken out."""
    rows_of: dict[str, list[_Row]] = defaultdict(list)
    for row in rows:
        rows_of[row.path].append(row)
    kept, problems = [], []
    for path, same in rows_of.items():
        contents = {(frozenset(row.labels), row.split_name.lower()) for row in same}
        if len(contents) == 1:
            kept.append(same[0])
            continue
        said = "; ".join(
            f"{row.where} {', '.join(row.labels) or 'no label'}"
            + (f" ({row.split_name})" if row.split_name else "")
            for row in same
        )
        reason = f"its rows contradict each other, {said}: keep one row with all its labels"
        labels = tuple(dict.fromkeys(label for row in same for label in row.labels))
        problems.append(Problem("conflicting-rows", path, reason, labels))
    num_repeated = sum(len(rows_of[row.path]) - 1 for row in kept)
    if not num_repeated:
        return kept, problems, []
    twice = [row.path for row in kept if len(rows_of[row.path]) > 1]
    message = f"Repeating another row, so counted once: {counted(num_repeated, 'row')}"
    return kept, problems, [Note("duplicate-rows", f"{message}, {first_few(twice)}.")]


def _notes_on_unnamed(listing: Listing, rows: list[_Row], problems: list[Problem]) -> list[Note]:
    named = {row.path for row in rows} | {problem.file for problem in problems}
    unnamed = [path for path in listing.images() if path not in named]
    if not unnamed:
        return []
    message = f"Not named in the metadata: {counted(len(unnamed), 'image')}, {first_few(unnamed)}."
    return [Note("orphans", message)]
