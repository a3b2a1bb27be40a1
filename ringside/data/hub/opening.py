"""Rows that hold their pictures as image data: classes, splits, fingerprint."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING

from ringside.data.classes import class_list
from ringside.data.folder.dealing import (
    notes_on_classes,
    notes_on_lost,
    refuse_unusable,
    with_splits,
)
from ringside.data.folder.records import Record
from ringside.data.hub.pictures import ArrowImages, equal_pictures
from ringside.data.hub.reading import RowsFound, without
from ringside.data.images import ImageData, fingerprint_of
from ringside.errors import DataError
from ringside.spec import DataSpec
from ringside.words import say

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


def open_rows(spec: DataSpec, found: RowsFound, title: str, skip: Collection[str]) -> ImageData:
    """The rows that are not in `skip`, which names them as `check_data` does, such as `train/17`.

    Without a validation or test split with labels a fifth validates, drawn as for folders. Raises
    `DataError` where nothing can be learned from them.
    """
    if not any(record.labels for record in found.records):
        raise DataError(say("hub.none_labelled", label=spec.label))
    usable = without(found.records, skip)
    refuse_unusable(usable, found.task, spec.label)
    records, split_notes = with_splits(
        usable,
        spec.label,
        lambda records: equal_pictures(
            found.images(records, class_list(r.labels for r in records))
        ),
    )
    classes = class_list(record.labels for record in records)
    parts = {
        split: [record for record in records if record.split == split] for split in ("train", "val")
    }
    images = {split: found.images(rows, classes) for split, rows in parts.items()}
    lost = notes_on_lost([r.labels for r in found.records if r.path in skip], records)
    notes = [*found.notes, *split_notes, *notes_on_classes(records), *lost]
    return ImageData(
        spec=spec,
        title=title,
        task=found.task,
        classes=classes,
        train=images["train"],
        val=images["val"],
        synthetic=False,
        notes=tuple(note.message for note in notes),
        fingerprint=fingerprint_of(
            classes,
            {
                split: _hashed(images[split], parts[split], found.identity)
                for split in ("train", "val")
            },
        ),
    )


def _hashed(
    images: ArrowImages, records: Sequence[Record], identity: dict[str, str]
) -> tuple[NDArray[np.uint8], Iterator[bytes]]:
    rows = (
        f"{identity[record.path.rpartition('/')[0]]} {record.path}".encode() for record in records
    )
    return images.targets, rows
