"""Data sets of the Hugging Face Hub, through the `datasets` library, at one commit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from ringside.data.classes import class_list
from ringside.data.folder.dealing import (
    notes_on_classes,
    notes_on_lost,
    refuse_unusable,
    with_splits,
)
from ringside.data.folder.records import Record
from ringside.data.hub.naming import PREFIX, commit_of, parse_name
from ringside.data.hub.pictures import ArrowImages, equal_pictures
from ringside.data.hub.reading import read_hub, without
from ringside.data.images import ImageData, fingerprint_of
from ringside.errors import DataError
from ringside.spec import DataSpec
from ringside.words import say

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

NAME = "hub"
TITLE = "A data set of the Hugging Face Hub"
SYNTHETIC = False
DEFAULT_IMAGE_SIZE = 224
BY_NAME = False
READS_TABLES = True


def spec_of(text: str) -> DataSpec | None:
    """The pinned spec of `hf:owner/name[:configuration][@revision]`; None for another text."""
    if not text.startswith(PREFIX):
        return None
    name = parse_name(text)
    return DataSpec(
        source=NAME,
        profile=name.configuration,
        image_size=DEFAULT_IMAGE_SIZE,
        repository=name.repository,
        revision=commit_of(name.repository, name.revision),
    )


def open_source(spec: DataSpec, skip: frozenset[str] = frozenset()) -> ImageData:
    """The pictures of `spec.repository` at the commit `spec.revision`; nothing is decoded here.

    Without a validation or test split with labels a fifth validates, drawn as for folders. `skip`
    names rows as `check_data` does, such as `train/17`.
    """
    found = read_hub(spec)
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
    identity = f"{spec.repository} {spec.profile} {spec.revision}"
    lost = notes_on_lost([r.labels for r in found.records if r.path in skip], records)
    notes = [*found.notes, *split_notes, *notes_on_classes(records), *lost]
    return ImageData(
        spec=spec,
        title=f"{spec.repository} at {str(spec.revision)[:8]}",
        task=found.task,
        classes=classes,
        train=images["train"],
        val=images["val"],
        synthetic=SYNTHETIC,
        notes=tuple(note.message for note in notes),
        fingerprint=fingerprint_of(
            classes,
            {
                split: _hashed(images[split], parts[split], identity, found.builders)
                for split in ("train", "val")
            },
        ),
    )


def num_training(spec: DataSpec, enough: int) -> int | None:  # noqa: ARG001
    """None, because all rows would have to be loaded; after a check they lie on this machine."""
    return len(open_source(spec, frozenset(spec.skip)).train) if spec.skip else None


def _hashed(
    images: ArrowImages, records: Sequence[Record], identity: str, builders: dict[str, str]
) -> tuple[NDArray[np.uint8], Iterator[bytes]]:
    """The content follows from the commit and the row; reading it all would not be cheap."""
    rows = (
        f"{identity} {builders[record.path.rpartition('/')[0]]} {record.path}".encode()
        for record in records
    )
    return images.targets, rows
