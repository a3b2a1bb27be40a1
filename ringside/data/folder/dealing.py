"""Deals records to training and validation, and says what that means for the classes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace

from ringside.data.folder.records import Record
from ringside.data.images import Task
from ringside.data.notes import Note, WarningCode, counted, first_few
from ringside.data.stratify import choose_val
from ringside.errors import DataError

SEED = 0


def with_splits(
    records: list[Record], name: str, twins_of: Callable[[list[Record]], Iterable[Collection[int]]]
) -> tuple[list[Record], list[Note]]:
    """All records with a split: held-out ones validate, else a fifth of them is drawn.

    `twins_of` finds groups of records with equal content; it is asked only before drawing, and
    no group is divided. Raises `DataError`, with the `name` of the data, where no split is
    possible.
    """
    given = {record.split for record in records}
    if "val" in given:
        if given == {"val"}:
            raise DataError(f"{name} has images for validation only: add training images.")
        return [replace(record, split=record.split or "train") for record in records], []
    val = choose_val([record.labels for record in records], SEED, twins_of(records))
    dealt = [replace(r, split="val" if i in val else "train") for i, r in enumerate(records)]
    message = f"Drew {len(val)} of {len(records)} images for validation (seed {SEED})."
    return dealt, [Note("drawn-split", message)]


def refuse_unusable(records: Sequence[Record], task: Task, name: str) -> None:
    """`DataError` where nothing can be learned from the records of the data `name`."""
    if not records:
        raise DataError(
            f"No image of {name} can be used: mend its bad files and rows, or choose other data."
        )
    labels = {label for record in records for label in record.labels}
    if not labels:
        raise DataError(f"No usable image of {name} has a label: fill the column of the labels.")
    if task == "single_label" and len(labels) == 1:
        raise DataError(
            f"All usable images of {name} are of one class, {min(labels)!r}: a run tells at least "
            "two apart, so add images of another."
        )
    if len(records) > 1 and all(set(record.labels) == labels for record in records):
        raise DataError(
            f"All usable images of {name} have the same labels ({', '.join(sorted(labels))}): a "
            "run tells images with a label from those without it, so add some without."
        )


def notes_on_lost(left_out: Iterable[Collection[str]], records: Sequence[Record]) -> list[Note]:
    """Classes that went with the last of their images; `left_out` are labels of such images."""
    kept = {label for record in records for label in record.labels}
    lost = sorted({label for labels in left_out for label in labels} - kept)
    if not lost:
        return []
    message = f"No class of a run, because all images of it are left out: {first_few(lost)}."
    return [Note("lost-class", message)]


def notes_on_classes(records: Sequence[Record]) -> list[Note]:
    """Classes that are never learned or cannot be scored, and images without a class."""
    num_val = sum(record.split == "val" for record in records)
    train, val = (
        Counter(label for r in records if r.split == split for label in r.labels)
        for split in ("train", "val")
    )
    everywhere = {label for label, count in val.items() if count == num_val}
    found: tuple[tuple[WarningCode, str, Collection[str]], ...] = (
        (
            "only-in-val",
            "Never learned and left out of the scores, because only validation has images of it",
            val.keys() - train.keys(),
        ),
        (
            "no-positive-in-val",
            "Not scored, because validation has no image of it",
            train.keys() - val.keys(),
        ),
        ("no-negative-in-val", "Not scored, because every validation image has it", everywhere),
    )
    notes = [
        Note(code, f"{sentence}: {first_few(sorted(labels))}.")
        for code, sentence, labels in found
        if labels
    ]
    notes += _notes_on_one_kind([record for record in records if record.split == "train"])
    bare = [record.path for record in records if not record.labels]
    if bare:
        message = f"Without a label, so negative for every class: {counted(len(bare), 'image')}"
        notes.append(Note("unlabelled", f"{message}, {first_few(bare)}."))
    return notes


def _notes_on_one_kind(train: Sequence[Record]) -> list[Note]:
    """A few images may leave one class for training, and then any answer is as good."""
    kinds = {frozenset(record.labels) for record in train}
    if len(kinds) != 1:
        return []
    labels = first_few(sorted(*kinds)) or "none"
    message = f"Nothing to tell apart: {counted(len(train), 'image')} to train on, labelled alike"
    return [Note("one-kind", f"{message} ({labels}). Add images.")]
