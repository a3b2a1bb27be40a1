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
from ringside.data.notes import Note, joined
from ringside.data.splits import TRAIN_NAMES, is_split_name, roles
from ringside.errors import NoImagesError, TooFewClassesError
from ringside.words import say, say_count

ARCHIVE_SUFFIXES = (".zip", ".tar", ".tgz", ".tar.gz", ".tar.xz", ".tar.bz2", ".7z", ".rar")


def read_class_folders(listing: Listing) -> Records:
    """All images in class folders, as a single-label task.

    Raises `TooFewClassesError` when there are fewer than two.
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
            left_out[top, "in_no_class"] += 1
        elif top in role_of and role_of[top] is None:
            left_out[top, "other_validates"] += 1
        elif has_train and top not in role_of:
            left_out[top, "beside_train"] += 1
        else:
            records.append(Record("/".join(parts), (classes[0],), role_of.get(top)))
    found = {record.labels[0] for record in records}
    _require_two_classes(found, listing)
    notes = [
        Note(
            "left-out",
            say(
                "data_note.left_out",
                images=say_count("image", count),
                folder=top or say("data_note.folder_itself"),
                reason=say(f"data_note.{reason}"),
            ),
        )
        for (top, reason), count in sorted(left_out.items())
    ]
    used = sorted({record.path.partition("/")[0] for record in records if record.split})
    layout = say("data_layout.class_folders")
    if used:
        layout = say("data_layout.class_folders_below", names=joined(used))
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
        or_else = _hint_without_images(listing)
        raise NoImagesError(say("dataset.no_images", root=listing.root, or_else=or_else))
    if len(found) < 2:
        where = (
            say("dataset.one_class_folder", name=min(found))
            if found
            else say("dataset.no_class_folders")
        )
        raise TooFewClassesError(
            say(
                "dataset.too_few_classes", root=listing.root, where=where, hint=_table_hint(listing)
            )
        )


def _hint_without_images(listing: Listing) -> str:
    """The images may lie where a table says, or be packed."""
    if tables := _tables(listing):
        return say("dataset.or_that_table", path=listing.root / min(tables))
    packed = [path for path in listing.sizes_bytes if path.lower().endswith(ARCHIVE_SUFFIXES)]
    return say("dataset.unpack", name=min(packed)) if packed else ""


def _tables(listing: Listing) -> list[str]:
    at_top = (path for path in listing.sizes_bytes if "/" not in path)
    return [path for path in at_top if path.lower().endswith(TABLE_SUFFIXES)]


def _table_hint(listing: Listing) -> str:
    if tables := _tables(listing):
        return say("dataset.or_table", path=listing.root / min(tables))
    return say("dataset.or_metadata")


def _notes_on_empty(listing: Listing, splits: Collection[str], found: set[str]) -> list[Note]:
    folders = [path.split("/") for path in listing.folders]
    names = {parts[-1] for parts in folders if len(parts) == 1 + (parts[0] in splits)}
    empty = sorted(names - found - set(splits))
    return [Note("empty-class", say("data_note.empty_class", name=name)) for name in empty]
