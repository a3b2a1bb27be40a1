"""Reads what splits with the pictures in them hold, without decoding one."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ringside.data.classes import multi_hot
from ringside.data.folder.labels import Labels
from ringside.data.folder.records import Record
from ringside.data.hub import loading
from ringside.data.hub.caches import cache_folders
from ringside.data.hub.columns import find_image_column, read_hub_labels
from ringside.data.hub.files import features_of, files_by_split, identity_of
from ringside.data.hub.pictures import ArrowImages, Part
from ringside.data.images import Task
from ringside.data.notes import Note
from ringside.data.splits import is_split_name, roles
from ringside.errors import DataError
from ringside.spec import DataSpec
from ringside.words import say, say_count

if TYPE_CHECKING:
    from datasets import Dataset


@dataclass(frozen=True)
class RowsFound:
    """The labelled records of the rows; a record's path is `split/row`, splits are not drawn.

    `root` names the whole. Rows may name files in `folders` (without links) and nowhere else.
    `identity` stands for the content of each split.
    """

    task: Task
    layout: str
    records: list[Record]
    notes: list[Note]
    root: str
    parts: tuple[Part, ...]
    identity: dict[str, str]
    folders: tuple[str, ...]

    def images(self, records: Sequence[Record], classes: Sequence[str]) -> ArrowImages:
        """These records as a split."""
        import numpy as np

        number_of = {part.name: number for number, part in enumerate(self.parts)}
        places = [
            (number_of[part], int(row))
            for part, row in (record.path.rsplit("/", 1) for record in records)
        ]
        targets = multi_hot([record.labels for record in records], classes)
        return ArrowImages(
            self.root,
            self.parts,
            np.array(places, dtype=np.int64).reshape(-1, 2),
            targets,
            self.folders,
        )


def read_hub(spec: DataSpec) -> RowsFound:
    """The rows of `spec.repository` at `spec.revision`. Raises `DataError` in a sentence."""
    if spec.repository is None or spec.revision is None:
        raise DataError(say("hub.incomplete"))
    loaded = loading.load_splits(spec.repository, spec.profile, spec.revision)
    where = say("data_layout.commit", commit=spec.revision[:8])
    # The content follows from the commit; reading it all would not be cheap.
    commit = f"{spec.repository} {spec.profile} {spec.revision}"
    identity = {name: f"{commit} {split._fingerprint}" for name, split in loaded.items()}
    return _found(spec, loaded, spec.repository, where, identity, cache_folders())


def read_parquet_files(spec: DataSpec) -> RowsFound:
    """The rows of the parquet files at `spec.path`. Raises `DataError` in a sentence."""
    path = Path(spec.path or "")
    by_split = files_by_split(path)
    files = [file for several in by_split.values() for file in several]
    loaded = loading.load_files(path, by_split, features_of(files))
    where = say("data_layout.parquet", files=say_count("file", len(files)))
    folder = os.path.realpath(path if path.is_dir() else path.parent)
    identity = {name: identity_of(several) for name, several in by_split.items()}
    return _found(spec, loaded, str(path), where, identity, (folder,))


def _found(
    spec: DataSpec, loaded: Mapping[str, Dataset], root: str, where: str,
    identity: dict[str, str], folders: tuple[str, ...],
) -> RowsFound:  # fmt: skip
    splits, notes = _wanted(loaded, spec.label)
    features = next(iter(splits.values())).features
    for name, split in splits.items():
        if split.features != features:
            raise DataError(
                say("hub.other_columns", label=spec.label, name=name, first=next(iter(splits)))
            )
    image = find_image_column(features, spec.label)
    tables = [split.data for split in splits.values()]
    labels = read_hub_labels(features, tables, spec.label, spec.separator)
    records, more = _records(splits, labels)
    return RowsFound(
        task=labels.task,
        layout=say("data_layout.rows", where=where, image=image, layout=labels.layout),
        records=records,
        notes=[*notes, *labels.notes, *more],
        root=root,
        parts=tuple(_part(name, split, image) for name, split in splits.items()),
        identity=identity,
        folders=folders,
    )


def _part(name: str, split: Dataset, column: str) -> Part:
    return Part(name, tuple(file["filename"] for file in split.cache_files), column)


def _wanted(splits: Mapping[str, Dataset], label: str) -> tuple[dict[str, Dataset], list[Note]]:
    """The splits with known names, or the only one there is."""
    filled = {name: split for name, split in splits.items() if len(split)}
    if not filled:
        raise DataError(say("hub.no_rows", label=label))
    known = {name: split for name, split in filled.items() if is_split_name(name)}
    wanted = known or (filled if len(filled) == 1 else {})
    if not wanted:
        raise DataError(say("hub.no_known_split", label=label, names=", ".join(filled)))
    others = sorted(filled.keys() - wanted.keys())
    message = say("data_note.splits", names=", ".join(others))
    return wanted, [Note("left-out", message)] if others else []


def _records(splits: Mapping[str, Dataset], labels: Labels) -> tuple[list[Record], list[Note]]:
    """Rows with a label where each needs one; a split without any, such as a secret test, none."""
    rows = list(_rows(splits))
    needs_one = labels.task == "single_label"
    usable = [
        (part, row, names)
        for (part, row), names in zip(rows, labels.rows, strict=True)
        if names or not needs_one
    ]
    role_of = roles({part for part, _, _ in usable if is_split_name(part)})
    records = [
        Record(f"{part}/{row}", names, role_of.get(part))
        for part, row, names in usable
        if role_of.get(part, "train")
    ]
    counts = {
        "hub_unlabelled": len(rows) - len(usable),
        "hub_tests": len(usable) - len(records),
    }
    return records, [
        Note("left-out", say(f"data_note.{key}", rows=say_count("row", count)))
        for key, count in counts.items()
        if count
    ]


def _rows(splits: Mapping[str, Dataset]) -> Iterator[tuple[str, int]]:
    for name, split in splits.items():
        for row in range(len(split)):
            yield name, row


def without(records: Sequence[Record], skip: Collection[str]) -> list[Record]:
    """The records that nobody chose to leave out."""
    return [record for record in records if record.path not in skip]
