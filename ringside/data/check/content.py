"""What a check looks at: the pictures of a source, and what its folders or tables say of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ringside.data.discovery import open_data
from ringside.data.folder.reading import read_images
from ringside.data.folder.records import Problem, Record
from ringside.data.images import FileImages, ImageSplit, PackedBytes, Task
from ringside.data.notes import Note
from ringside.data.splits import Split

if TYPE_CHECKING:
    from ringside.spec import DataSpec


@dataclass(frozen=True)
class Content:
    """`names` are those of all pictures in `splits`; a record's path is one of them."""

    root: str | None
    task: Task
    layout: str
    splits: Sequence[ImageSplit]
    names: list[str]
    records: list[Record]
    problems: list[Problem]
    notes: list[Note]


def content_of(spec: DataSpec) -> Content:
    """Everything but pixels. Raises `DataError` where nothing can be checked."""
    return _of_files(Path(spec.path)) if spec.path else _of_built_in(spec)


def _of_files(path: Path) -> Content:
    import numpy as np

    found = read_images(path)
    root = str(found.listing.root)
    records = found.records.records
    names = sorted({*found.listing.images(), *(record.path for record in records)})
    packed = PackedBytes.pack(name.encode(errors="surrogateescape") for name in names)
    images = FileImages(root, packed, np.zeros((len(names), 0), dtype=np.uint8))
    return Content(
        root, found.records.task, found.records.layout, [images], names, records,
        found.records.problems, found.notes,
    )  # fmt: skip


def _of_built_in(spec: DataSpec) -> Content:
    data = open_data(spec)
    parts: tuple[tuple[Split, ImageSplit], ...] = (("train", data.train), ("val", data.val))
    records = [
        Record(part.name(i), tuple(data.classes[k] for k in row.nonzero()[0]), split)
        for split, part in parts
        for i, row in enumerate(part.targets)
    ]
    return Content(
        None, data.task, f"{data.title}, built in.", [part for _, part in parts],
        [record.path for record in records], records, [],
        [Note("synthetic", note) for note in data.notes] if data.synthetic else [],
    )  # fmt: skip
