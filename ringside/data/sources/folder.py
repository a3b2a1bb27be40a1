"""A person's own images: class folders, or a folder with `metadata.csv` / `metadata.jsonl`."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ringside.data.classes import class_list, multi_hot
from ringside.data.folder.class_folders import read_class_folders
from ringside.data.folder.listing import Listing, first_few, list_folder, notes_on
from ringside.data.folder.metadata import find_metadata, read_metadata
from ringside.data.folder.records import Record
from ringside.data.images import FileImages, ImageData, PackedBytes, fingerprint_of
from ringside.data.splits import choose_val
from ringside.errors import DataError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ringside.spec import DataSpec

NAME = "folder"
TITLE = "A folder of your own images"
SYNTHETIC = False
DEFAULT_IMAGE_SIZE = 224

# Up to here the fingerprint covers the content of the files, beyond it names and sizes: reading
# a large set twice before the first step is not cheap.
MAX_HASHED_BYTES = 64 * 2**20


def open_source(spec: DataSpec) -> ImageData:
    """Read the folder `spec.path`; images are not decoded here.

    Labels come from the metadata file if there is one, else from the class folders. Without a
    given split a fifth of the images validates, drawn with seed 0. Raises `DataError` naming the
    file or folder that cannot be used.
    """
    if spec.path is None:
        raise DataError("The source 'folder' needs the path of a folder.")
    listing = list_folder(Path(spec.path))
    metadata = find_metadata(listing)
    found = read_metadata(listing, metadata) if metadata else read_class_folders(listing)
    records, split_notes = _with_splits(found.records, listing)
    classes = class_list(record.labels for record in records)
    if not classes:
        raise DataError(f"No image in {listing.root} has a label: fill the column labels.")
    splits = {name: [r for r in records if r.split == name] for name in ("train", "val")}
    train, val = (_images(listing, splits[name], classes) for name in ("train", "val"))
    notes = [*notes_on(listing), *found.notes, *split_notes, *_notes_on_one_sided(splits)]
    return ImageData(
        spec=spec,
        title="/".join(listing.root.parts[-2:]),
        task=found.task,
        classes=classes,
        train=train,
        val=val,
        synthetic=SYNTHETIC,
        notes=tuple(notes),
        fingerprint=fingerprint_of(
            classes, {"train": _hashed(train, listing), "val": _hashed(val, listing)}
        ),
    )


def _with_splits(records: list[Record], listing: Listing) -> tuple[list[Record], list[str]]:
    """All records with a split: held-out ones validate, else a fifth of them is drawn."""
    given = {record.split for record in records}
    if "val" in given:
        if given == {"val"}:
            raise DataError(f"{listing.root} has images for validation only: add training images.")
        return [replace(record, split=record.split or "train") for record in records], []
    val = choose_val([record.labels for record in records])
    drawn = [replace(r, split="val" if i in val else "train") for i, r in enumerate(records)]
    return drawn, [f"Drew {len(val)} of {len(records)} images for validation (seed 0)."]


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


def _notes_on_one_sided(splits: dict[str, list[Record]]) -> list[str]:
    train, val = (
        {label for record in splits[name] for label in record.labels} for name in ("train", "val")
    )
    notes = []
    if val - train:
        names = first_few(sorted(val - train))
        notes.append(f"Never learned, because only validation has images of it: {names}.")
    if train - val:
        names = first_few(sorted(train - val))
        notes.append(f"Not scored, because validation has no image of it: {names}.")
    return notes
