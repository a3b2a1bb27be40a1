"""What a person should know about a data set, as a code for programs and a sentence."""

from __future__ import annotations

import functools
from collections.abc import Collection
from typing import Literal, get_args

import msgspec

from ringside.words import say

# It may spoil a training or a score.
WarningCode = Literal[
    "only-in-val", "no-positive-in-val", "no-negative-in-val", "equal-files", "equal-in-both",
    "conflicting-labels", "duplicate-rows", "orphans", "unlabelled", "blanks", "empty-class",
    "left-out", "links", "lost-class", "no-run", "one-kind",
]  # fmt: skip
InformationCode = Literal["drawn-split", "ending-added", "ignored", "other-form", "synthetic"]


class Note(msgspec.Struct, frozen=True):
    """One remark; `code` stays the same over versions, `message` is for people."""

    code: WarningCode | InformationCode
    message: str

    @property
    def is_warning(self) -> bool:
        """Whether a person should look into it."""
        return self.code in get_args(WarningCode)


def counted(count: int, noun: str) -> str:
    """A count with its noun, in the plural where needed."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def joined(names: Collection[str]) -> str:
    """`a and b`, `a and b and c`."""
    return functools.reduce(lambda first, last: say("data_note.and", names=first, last=last), names)
