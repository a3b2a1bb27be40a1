"""Pictures that are the same byte for byte."""

from __future__ import annotations

from collections.abc import Sequence

from ringside.data.check.decoding import DIGEST_BYTES
from ringside.data.folder.records import Record
from ringside.data.notes import Note, WarningCode
from ringside.words import say, say_count, say_few


def equal_groups(digests: bytes, positions: Sequence[int]) -> list[list[int]]:
    """Groups of indices into `positions` whose pictures have equal digests, two or more each."""
    import numpy as np

    halves = np.frombuffer(digests, dtype="<u8").reshape(-1, DIGEST_BYTES // 8)[list(positions)]
    order = np.lexsort(halves.T)
    same = (halves[order][1:] == halves[order][:-1]).all(axis=1)
    groups: list[list[int]] = []
    for place in same.nonzero()[0]:
        first, second = int(order[place]), int(order[place + 1])
        if groups and groups[-1][-1] == first:
            groups[-1].append(second)
        else:
            groups.append([first, second])
    return [sorted(group) for group in groups]


def notes_on_equal(records: Sequence[Record], groups: Sequence[Sequence[int]]) -> list[Note]:
    """Copies within a split, copies in both splits, and copies with different labels."""
    sets = [[records[i] for i in group] for group in groups]
    both = [same for same in sets if len({record.split for record in same}) > 1]
    differing = [same for same in sets if len({frozenset(record.labels) for record in same}) > 1]
    num_copies = sum(len(same) - 1 for same in sets)
    found: tuple[tuple[WarningCode, str, list[list[Record]], str], ...] = (
        ("equal-files", "equal_files", sets, say_count("image", num_copies)),
        ("equal-in-both", "equal_in_both", both, say_count("picture", len(both))),
        ("conflicting-labels", "conflicting_labels", differing,
         say_count("picture", len(differing))),
    )  # fmt: skip
    return [
        Note(code, say(f"data_note.{key}", images=images, names=_first(records)))
        for code, key, records, images in found
        if records
    ]


def _first(sets: list[list[Record]]) -> str:
    """The first set in words, each with its labels where these differ."""
    same = sorted(sets, key=lambda records: records[0].path)[0]
    if len({frozenset(record.labels) for record in same}) == 1:
        return " = ".join(record.path for record in same[:3])
    without = say("picture.without_label")
    return " = ".join(f"{r.path} ({say_few(r.labels) or without})" for r in same[:3])
