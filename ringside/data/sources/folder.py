"""A person's own images: class folders, a folder with a metadata file, or a table."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ringside.data.classes import class_list, multi_hot
from ringside.data.folder.dealing import (
    notes_on_classes,
    notes_on_lost,
    refuse_unusable,
    with_splits,
)
from ringside.data.folder.listing import Listing, is_small
from ringside.data.folder.reading import read_images
from ringside.data.folder.records import Record
from ringside.data.folder.twins import equal_files
from ringside.data.images import FileImages, ImageData, PackedBytes, Task, fingerprint_of
from ringside.errors import DataError, NoImagesError, TooFewClassesError
from ringside.words import say

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ringside.spec import DataSpec

NAME = "folder"
TITLE = "A folder of your own images"
SYNTHETIC = False
DEFAULT_IMAGE_SIZE = 224
READS_TABLES = True

# Up to here the fingerprint covers the content of the files, beyond it names and sizes: reading
# a large set twice before the first step is not cheap.
MAX_HASHED_BYTES = 64 * 2**20


def open_source(spec: DataSpec, skip: frozenset[str] = frozenset()) -> ImageData:
    """Read the folder or table `spec.path`; images are not decoded here.

    Labels come from the table if there is one, else from the class folders. Without a given
    split a fifth of the images validates, drawn with seed 0. Files in `skip` (as `check_data`
    names them in `bad`) and their rows are left out. Raises `DataError` naming the file or folder
    that cannot be used.
    """
    if spec.path is None:
        raise DataError(say("dataset.no_path"))
    path = Path(spec.path)
    found = read_images(path, spec.separator)
    listing = found.listing
    usable = found.usable(skip)
    refuse_unusable(usable, found.records.task, spec.path)
    records, split_notes = with_splits(usable, spec.path, lambda records: _twins(listing, records))
    classes = class_list(record.labels for record in records)
    train, val = (
        _images(listing, [r for r in records if r.split == split], classes)
        for split in ("train", "val")
    )
    lost = notes_on_lost(found.left_out(skip), records)
    notes = [*found.notes, *split_notes, *notes_on_classes(records), *lost]
    return ImageData(
        spec=spec,
        title="/".join(path.resolve().parts[-2:]),
        task=found.records.task,
        classes=classes,
        train=train,
        val=val,
        synthetic=SYNTHETIC,
        notes=tuple(note.message for note in notes),
        fingerprint=fingerprint_of(
            classes, {"train": _hashed(train, listing), "val": _hashed(val, listing)}
        ),
    )


def num_training(spec: DataSpec, enough: int) -> int | None:
    """The images to train on; None for large folders, and for those that a run refuses itself.

    Where files are left out somebody has read all of them: then counting is no matter of time, and
    `DataError` says at once what else cannot be used. `NoImagesError` for a folder without any,
    `TooFewClassesError` where all are labelled alike: leaving files out mends neither.
    """
    if spec.skip:
        return len(open_source(spec, frozenset(spec.skip)).train)
    path = Path(spec.path or "")
    if not is_small(path):
        return None
    try:
        found = read_images(path, spec.separator)
        records = found.records.records
        if records:
            refuse_unusable(records, found.records.task, spec.path or "")
        if not any(record.split == "val" for record in records) and len(records) > 4 * enough:
            return None  # a fifth validates; drawing it would take longer than listing
        dealt, _ = with_splits(records, spec.label, lambda them: _twins(found.listing, them))
    except (NoImagesError, TooFewClassesError):
        raise
    except DataError:
        return None
    return sum(record.split == "train" for record in dealt)


def task_of(spec: DataSpec) -> Task | None:
    """What the class folders or the table say; None for large ones and those that cannot be read.

    A run refuses the latter itself.
    """
    path = Path(spec.path or "")
    if not is_small(path):
        return None
    try:
        return read_images(path, spec.separator).records.task
    except DataError:
        return None


def _twins(listing: Listing, records: list[Record]) -> list[list[int]]:
    paths = [f"{listing.root}/{record.path}" for record in records]
    return equal_files(paths, [listing.sizes_bytes[record.path] for record in records])


def _images(listing: Listing, records: Sequence[Record], classes: Sequence[str]) -> FileImages:
    paths = (record.path.encode(errors="surrogateescape") for record in records)
    targets = multi_hot([record.labels for record in records], classes)
    return FileImages(str(listing.root), PackedBytes.pack(paths), targets)


def _hashed(images: FileImages, listing: Listing) -> tuple[NDArray[np.uint8], Iterator[bytes]]:
    paths = [images.paths[i] for i in range(len(images))]
    sizes = [listing.sizes_bytes[path.decode(errors="surrogateescape")] for path in paths]
    is_small = sum(sizes) <= MAX_HASHED_BYTES

    def identity(i: int) -> bytes:
        content = hashlib.blake2b(images.read(i)).digest() if is_small else b""
        return paths[i] + sizes[i].to_bytes(8, "little") + content

    return images.targets, map(identity, range(len(images)))
