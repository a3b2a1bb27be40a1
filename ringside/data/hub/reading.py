"""Reads what a commit of a repository holds, without decoding a picture."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ringside.data.classes import multi_hot
from ringside.data.folder.labels import Labels
from ringside.data.folder.records import Record
from ringside.data.hub import loading
from ringside.data.hub.caches import cache_folders
from ringside.data.hub.columns import find_image_column, read_hub_labels
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
class HubFound:
    """The labelled records of a repository; a record's path is `split/row`, splits are not drawn.

    `builders` are the fingerprints that `datasets` gives the splits.
    """

    task: Task
    layout: str
    records: list[Record]
    notes: list[Note]
    root: str
    parts: tuple[Part, ...]
    builders: dict[str, str]

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
            cache_folders(),
        )


def read_hub(spec: DataSpec) -> HubFound:
    """The rows of `spec.repository` at `spec.revision`. Raises `DataError` in a sentence."""
    if spec.repository is None or spec.revision is None:
        raise DataError(say("hub.incomplete"))
    loaded = loading.load_splits(spec.repository, spec.profile, spec.revision)
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
    return HubFound(
        labels.task,
        say("data_layout.hub", commit=spec.revision[:8], image=image, layout=labels.layout),
        records,
        [*notes, *labels.notes, *more],
        spec.repository,
        tuple(_part(name, split, image) for name, split in splits.items()),
        {name: split._fingerprint for name, split in splits.items()},
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
