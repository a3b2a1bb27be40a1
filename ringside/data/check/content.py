"""What a check looks at: the pictures of a source, and what its folders or tables say of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ringside.data.classes import class_list
from ringside.data.discovery import open_data
from ringside.data.folder.reading import read_images
from ringside.data.folder.records import Problem, Record
from ringside.data.hub.reading import RowsFound, read_hub, read_parquet_files
from ringside.data.images import FileImages, ImageSplit, PackedBytes, Task
from ringside.data.notes import Note
from ringside.data.splits import Split
from ringside.words import say

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
    if spec.repository:
        return _of_rows(read_hub(spec))
    if spec.source == "parquet":
        return _of_rows(read_parquet_files(spec))
    is_folder = spec.path is not None and spec.source != "prepared"
    return _of_files(spec, Path(spec.path or "")) if is_folder else _of_opened(spec)


def _of_files(spec: DataSpec, path: Path) -> Content:
    import numpy as np

    found = read_images(path, spec.separator)
    root = str(found.listing.root)
    records = found.records.records
    names = sorted({*found.listing.images(), *(record.path for record in records)})
    packed = PackedBytes.pack(name.encode(errors="surrogateescape") for name in names)
    images = FileImages(root, packed, np.zeros((len(names), 0), dtype=np.uint8))
    return Content(
        root, found.records.task, found.records.layout, [images], names, records,
        found.records.problems, found.notes,
    )  # fmt: skip


def _of_rows(found: RowsFound) -> Content:
    images = found.images(found.records, class_list(r.labels for r in found.records))
    names = [record.path for record in found.records]
    return Content(
        None, found.task, found.layout, [images], names, found.records, [], found.notes
    )  # fmt: skip


def _of_opened(spec: DataSpec) -> Content:
    data = open_data(spec)
    parts: tuple[tuple[Split, ImageSplit], ...] = (("train", data.train), ("val", data.val))
    records = [
        Record(part.name(i), tuple(data.classes[k] for k in row.nonzero()[0]), split)
        for split, part in parts
        for i, row in enumerate(part.targets)
    ]
    layout = "data_layout.source" if spec.path else "data_layout.built_in"
    return Content(
        None, data.task, say(layout, title=data.title), [part for _, part in parts],
        [record.path for record in records], records, [],
        [Note("synthetic", note) for note in data.notes] if data.synthetic else [],
    )  # fmt: skip
