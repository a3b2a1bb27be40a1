"""Reads labels from folder names: `cat/1.jpg`, or `train/cat/1.jpg` and `val/cat/2.jpg`.

The class is the first folder (below the split folder, if there is one); deeper folders only sort
the files of a class. A top folder named like a split is one. Two cases of real folders shape the
rest: held-out images without class folders have no label and are left out, and a `train` with
images directly in it, beside class folders, is a class (of vehicles, say).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection

from ringside.data.folder.listing import Listing
from ringside.data.folder.records import Record, Records
from ringside.data.folder.table import TABLE_SUFFIXES
from ringside.data.notes import Note, counted
from ringside.data.splits import TRAIN_NAMES, is_split_name, roles
from ringside.errors import DataError


def read_class_folders(listing: Listing) -> Records:
    """All images in class folders, as a single-label task.

    Raises `DataError` when there are fewer than two classes.
    """
    paths = [path.split("/") for path in listing.images()]
    role_of = roles(_split_folders(paths))
    has_train = "train" in role_of.values()
    records: list[Record] = []
    left_out: Counter[tuple[str, str]] = Counter()
    for parts in paths:
        top = parts[0] if len(parts) > 1 else ""
        classes = parts[1:-1] if top in role_of else parts[:-1]
        if not classes:
            left_out[top, "in no class folder"] += 1
        elif top in role_of and role_of[top] is None:
            left_out[top, "another folder is for validation"] += 1
        elif has_train and top not in role_of:
            left_out[top, "beside the train folder"] += 1
        else:
            records.append(Record("/".join(parts), (classes[0],), role_of.get(top)))
    found = {record.labels[0] for record in records}
    _require_two_classes(found, listing)
    notes = [
        Note(
            "left-out",
            f"Left out {counted(count, 'image')} in {top or 'the data folder itself'}: {reason}.",
        )
        for (top, reason), count in sorted(left_out.items())
    ]
    used = sorted({record.path.partition("/")[0] for record in records if record.split})
    layout = f"Class folders{' below ' + ' and '.join(used) if used else ''}."
    empty = _notes_on_empty(listing, role_of, found)
    return Records("single_label", records, layout, notes=notes + empty)


def _split_folders(paths: list[list[str]]) -> set[str]:
    tops = {parts[0] for parts in paths if len(parts) > 1}
    with_folders = {parts[0] for parts in paths if len(parts) > 2}
    beside_classes = any(not is_split_name(top) for top in tops)
    vehicles = {top for top in tops - with_folders if top.lower() in TRAIN_NAMES}
    return {top for top in tops if is_split_name(top)} - (vehicles if beside_classes else set())


def _require_two_classes(found: set[str], listing: Listing) -> None:
    if not listing.images():
        raise DataError(f"{listing.root} holds no images: pass a folder with one folder per class.")
    if len(found) < 2:
        where = f"only the class folder {min(found)!r}" if found else "images, but no class folders"
        raise DataError(
            f"{listing.root} has {where}: put the images into one folder per class, "
            f"or {_table_hint(listing)}."
        )


def _table_hint(listing: Listing) -> str:
    tables = [p for p in listing.sizes_bytes if "/" not in p and p.endswith(TABLE_SUFFIXES)]
    if tables:
        return f"pass the table instead (--data {listing.root / min(tables)})"
    return "add a metadata.csv with the columns file_name and labels"


def _notes_on_empty(listing: Listing, splits: Collection[str], found: set[str]) -> list[Note]:
    folders = [path.split("/") for path in listing.folders]
    names = {parts[-1] for parts in folders if len(parts) == 1 + (parts[0] in splits)}
    empty = sorted(names - found - set(splits))
    return [
        Note("empty-class", f"The class folder {name!r} holds no images and is not a class.")
        for name in empty
    ]
