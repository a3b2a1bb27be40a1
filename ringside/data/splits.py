"""Names of splits, and which of them validates."""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal

Split = Literal["train", "val"]

# A held-out test part validates only where there is no validation part.
TRAIN_NAMES = ("train", "training")
VAL_NAMES = ("val", "valid", "validation", "dev")
TEST_NAMES = ("test",)
SPLIT_NAMES = (*TRAIN_NAMES, *VAL_NAMES, *TEST_NAMES)


def is_split_name(text: str) -> bool:
    """Whether a folder or a cell of this name means a split, in any case."""
    return text.lower() in SPLIT_NAMES


def roles(names: Collection[str]) -> dict[str, Split | None]:
    """What each split name that occurs is used for; None when it is left aside.

    Validation is the validation part, or the test part where that is the only one held out.
    """
    has_val = any(name.lower() in VAL_NAMES for name in names)
    return {name: _role(name.lower(), has_val) for name in names}


def _role(name: str, has_val: bool) -> Split | None:
    if name in TRAIN_NAMES:
        return "train"
    if name in VAL_NAMES:
        return "val"
    return None if has_val else "val"
