"""Which images validate: names of splits, and a seeded split where none is given."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Sequence
from random import Random
from typing import Literal

from ringside.errors import DataError

Split = Literal["train", "val"]

# A held-out test part validates only where there is no validation part.
TRAIN_NAMES = ("train", "training")
VAL_NAMES = ("val", "valid", "validation", "dev")
TEST_NAMES = ("test",)
SPLIT_NAMES = (*TRAIN_NAMES, *VAL_NAMES, *TEST_NAMES)

VAL_RATIO = 0.2


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


def choose_val(labels: Sequence[Collection[str]], seed: int = 0) -> set[int]:
    """The indices of a fifth of the images, at least one, spread over the classes.

    Every image belongs to the group of its rarest label; a fifth of each group is drawn, and
    what rounding leaves over carries to the next group. Never more than half of a group, so a
    class with a single image is trained on. The same labels and seed give the same split.
    """
    if len(labels) < 2:
        raise DataError(f"A split needs at least 2 images, found {len(labels)}: add images.")
    random = Random(seed)
    chosen: set[int] = set()
    num_seen = 0
    groups = _groups_by_rarest_label(labels)
    for members in groups:
        num_seen += len(members)
        wanted = round(VAL_RATIO * num_seen) - len(chosen)
        # Of `random`, only the sequence of .random() is promised to stay the same.
        shuffled = [i for _, i in sorted((random.random(), i) for i in members)]
        chosen.update(shuffled[: max(0, min(wanted, len(members) // 2))])
    return chosen or {max(groups, key=len)[0]}


def _groups_by_rarest_label(labels: Sequence[Collection[str]]) -> list[list[int]]:
    counts = Counter(label for row in labels for label in row)
    groups: dict[str, list[int]] = defaultdict(list)
    for i, row in enumerate(labels):
        groups[min(row, key=lambda label: (counts[label], label), default="")].append(i)
    return [members for _, members in sorted(groups.items())]
