"""Reads what a path holds, a folder or a table, without opening an image."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from ringside.data.folder.class_folders import read_class_folders
from ringside.data.folder.listing import Listing, list_folder, notes_on
from ringside.data.folder.metadata import find_metadata, read_metadata, read_single_table
from ringside.data.folder.records import Record, Records
from ringside.data.notes import Note
from ringside.errors import DataError
from ringside.spec import Separator
from ringside.words import say, say_count, say_few


@dataclass(frozen=True)
class Found:
    """The files and the labelled records of a folder or table; splits are not drawn yet."""

    listing: Listing
    records: Records
    notes: list[Note]

    def usable(self, skip: Collection[str]) -> list[Record]:
        """The records whose file is not in `skip`.

        Raises `DataError` with the first rows that cannot be used, unless `skip` has their files.
        """
        problems = [p for p in self.records.problems if p.file not in skip]
        if problems:
            num_rows = len(self.records.records) + len(self.records.problems)
            named = say_few([say("picture.named", file=p.file, reason=p.reason) for p in problems])
            raise DataError(
                say(
                    "dataset.bad_rows",
                    n=len(problems),
                    rows=say_count("row", num_rows),
                    root=self.listing.root,
                    named=named,
                )
            )
        return [record for record in self.records.records if record.path not in skip]

    def left_out(self, skip: Collection[str]) -> list[tuple[str, ...]]:
        """The labels of what `skip` names."""
        skipped = [record.labels for record in self.records.records if record.path in skip]
        return skipped + [p.labels for p in self.records.problems if p.file in skip]


def read_images(path: Path, separator: Separator | None = None) -> Found:
    """A table, a folder with a metadata file, or class folders.

    `separator` stands between the labels of a cell; None leaves it to what the cells look like.
    Raises `DataError` naming the file or folder that cannot be read.
    """
    if path.is_file():
        listing, records = read_single_table(path, separator)
        return Found(listing, records, notes_on(listing, [path.name]) + records.notes)
    listing = list_folder(path)
    tables = find_metadata(listing)
    if separator and not tables:
        raise DataError(say("dataset.labels_are_folders", path=path))
    records = read_metadata(listing, tables, separator) if tables else read_class_folders(listing)
    return Found(listing, records, notes_on(listing, tables) + records.notes)
