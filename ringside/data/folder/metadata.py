"""Reads labels, splits and files from `metadata.csv` and its kin, or from a table of any name."""

from __future__ import annotations

import posixpath
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from ringside.data.folder.labels import Labels, read_labels
from ringside.data.folder.listing import Listing, list_folders
from ringside.data.folder.naming import NamedFiles, folders_of
from ringside.data.folder.records import Problem, Record, Records
from ringside.data.folder.table import DELIMITERS, Table, read_table
from ringside.data.notes import Note, joined
from ringside.data.splits import SPLIT_NAMES, is_split_name, roles
from ringside.errors import DataError
from ringside.spec import Separator
from ringside.words import say, say_count, say_few

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
            raise DataError(say("dataset.two_metadata", root=listing.root, names=joined(here)))
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
    """A row with its file found; `split_name` is empty where the table gives none.

    `where` says its place, which few rows are asked for.
    """

    path: str
    labels: tuple[str, ...]
    split_name: str
    where: Callable[[], str]


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
    places = [partial(table.where, number, path) for number in range(1, table.num_rows + 1)]
    found = [files.find(*row) for row in zip(names, places, labels.rows, strict=True)]
    split_names = _split_names(table, found, posixpath.dirname(path))
    rows, problems = [], files.problems
    for file, row_labels, split_name, where in zip(
        found, labels.rows, split_names, places, strict=True
    ):
        row = _Row(file, row_labels, split_name, where)
        if file and labels.task == "single_label" and not row.labels:
            problems.append(Problem("no-label", file, say("picture.no_label", where=where())))
        elif file:
            rows.append(row)
    return _Part(path, table, labels, rows, problems, [*labels.notes, *files.notes()])


def _combined(listing: Listing, parts: list[_Part]) -> Records:
    """Raises `DataError` for unknown split names and for tables that differ in their labels."""
    names = [part.name for part in parts]
    if len({part.labels.task for part in parts}) > 1:
        raise DataError(say("dataset.tables_differ", names=joined(names)))
    rows, conflicts, notes = _without_repeated([row for part in parts for row in part.rows])
    role_of = roles({row.split_name for row in rows if row.split_name})
    kept = [row for row in rows if not row.split_name or role_of[row.split_name]]
    notes += dict.fromkeys(note for part in parts for note in part.notes)
    if len(kept) < len(rows):
        left_out = say_count("test_row", len(rows) - len(kept))
        notes.append(Note("left-out", say("data_note.test_rows", rows=left_out)))
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
    words = {
        "names": joined(names), "column": table.image_column, "layout": part.labels.layout,
    }  # fmt: skip
    if not table.delimiter:
        return say("data_layout.table", **words)
    delimiter = say(f"data_layout.{DELIMITERS[table.delimiter]}")
    return say("data_layout.table_columns", **words, delimiter=delimiter)


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
                say(
                    "dataset.bad_split",
                    column=column,
                    names=say_few([repr(name) for name in unknown]),
                    rows=say_count("row", sum(cell in unknown for cell in cells)),
                    where=table.where(first),
                    known=", ".join(SPLIT_NAMES),
                )
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
        said = "; ".join(_said(row) for row in same)
        reason = say("picture.contradicting", said=said)
        labels = tuple(dict.fromkeys(label for row in same for label in row.labels))
        problems.append(Problem("conflicting-rows", path, reason, labels))
    num_repeated = sum(len(rows_of[row.path]) - 1 for row in kept)
    if not num_repeated:
        return kept, problems, []
    twice = [row.path for row in kept if len(rows_of[row.path]) > 1]
    count = say_count("row", num_repeated)
    message = say("data_note.repeated", rows=count, names=say_few(twice))
    return kept, problems, [Note("duplicate-rows", message)]


def _said(row: _Row) -> str:
    labels = ", ".join(row.labels) or say("picture.without_label")
    if not row.split_name:
        return say("picture.row_says", where=row.where(), labels=labels)
    return say("picture.row_says_in", where=row.where(), labels=labels, split=row.split_name)


def _notes_on_unnamed(listing: Listing, rows: list[_Row], problems: list[Problem]) -> list[Note]:
    named = {row.path for row in rows} | {problem.file for problem in problems}
    unnamed = [path for path in listing.images() if path not in named]
    if not unnamed:
        return []
    images = say_count("image", len(unnamed))
    return [Note("orphans", say("data_note.unnamed", images=images, names=say_few(unnamed)))]
