"""Deals records to training and validation, and says what that means for the classes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace

from ringside.data.folder.records import Record
from ringside.data.images import Task
from ringside.data.notes import Note, WarningCode
from ringside.data.stratify import choose_val
from ringside.errors import DataError, TooFewClassesError
from ringside.words import say, say_count, say_few

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
            raise DataError(say("dataset.only_validation", name=name))
        return [replace(record, split=record.split or "train") for record in records], []
    val = choose_val([record.labels for record in records], SEED, twins_of(records))
    dealt = [replace(r, split="val" if i in val else "train") for i, r in enumerate(records)]
    message = say("data_note.drawn", val=len(val), n=len(records), seed=SEED)
    return dealt, [Note("drawn-split", message)]


def refuse_unusable(records: Sequence[Record], task: Task, name: str) -> None:
    """`DataError` where nothing can be learned from the records of the data `name`.

    `TooFewClassesError` where there are records, so that leaving some out would not help.
    """
    if not records:
        raise DataError(say("dataset.none_usable", name=name))
    labels = {label for record in records for label in record.labels}
    if not labels:
        raise TooFewClassesError(say("dataset.none_labelled", name=name))
    if task == "single_label" and len(labels) == 1:
        raise TooFewClassesError(say("dataset.one_class", name=name, label=min(labels)))
    if len(records) > 1 and all(set(record.labels) == labels for record in records):
        names = ", ".join(sorted(labels))
        raise TooFewClassesError(say("dataset.same_labels", name=name, labels=names))


def notes_on_lost(left_out: Iterable[Collection[str]], records: Sequence[Record]) -> list[Note]:
    """Classes that went with the last of their images; `left_out` are labels of such images."""
    kept = {label for record in records for label in record.labels}
    lost = sorted({label for labels in left_out for label in labels} - kept)
    if not lost:
        return []
    message = say("data_note.lost", names=say_few(lost))
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
            "only_in_val",
            val.keys() - train.keys(),
        ),
        (
            "no-positive-in-val",
            "no_positive_in_val",
            train.keys() - val.keys(),
        ),
        ("no-negative-in-val", "no_negative_in_val", everywhere),
    )
    notes = [
        Note(code, say(f"data_note.{key}", names=say_few(sorted(labels))))
        for code, key, labels in found
        if labels
    ]
    notes += _notes_on_one_kind([record for record in records if record.split == "train"])
    bare = [record.path for record in records if not record.labels]
    if bare:
        images = say_count("image", len(bare))
        message = say("data_note.unlabelled", images=images, names=say_few(bare))
        notes.append(Note("unlabelled", message))
    return notes


def _notes_on_one_kind(train: Sequence[Record]) -> list[Note]:
    """A few images may leave one class for training, and then any answer is as good."""
    kinds = {frozenset(record.labels) for record in train}
    if len(kinds) != 1:
        return []
    labels = say_few(sorted(*kinds)) or say("data_note.no_labels")
    images = say_count("image", len(train))
    return [Note("one-kind", say("data_note.one_kind", images=images, labels=labels))]
