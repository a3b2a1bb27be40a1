"""The class list: made once over all splits, kept in a file, used everywhere.

The order is the plain code point order of the names, which is what `sorted()` gives: the folders
9, 10 and 100 become "10", "100", "9". It does not depend on locale, library or file system, and
it is the order of torchvision's `ImageFolder` and of `datasets`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from ringside.errors import DataError
from ringside.rundir import write_atomic
from ringside.words import say

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

FORMAT = 1


class ClassFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The content of a class list file; position in `classes` is the index of the class."""

    format: int
    classes: tuple[str, ...]


def class_list(labels: Iterable[Iterable[str]]) -> tuple[str, ...]:
    """Every label that occurs, once, in code point order."""
    return tuple(sorted({label for row in labels for label in row}))


def multi_hot(labels: Sequence[Collection[str]], classes: Sequence[str]) -> NDArray[np.uint8]:
    """The labels of n pictures as zeros and ones, shape `[n, len(classes)]`."""
    import numpy as np

    index = {name: i for i, name in enumerate(classes)}
    rows = np.repeat(np.arange(len(labels)), [len(row) for row in labels])
    targets = np.zeros((len(labels), len(classes)), dtype=np.uint8)
    targets[rows, [index[label] for row in labels for label in row]] = 1
    return targets


def write_classes(path: Path, classes: Sequence[str]) -> None:
    """Write the class list as JSON; a reader never sees half of it."""
    content = msgspec.json.encode(ClassFile(format=FORMAT, classes=tuple(classes)))
    write_atomic(path, msgspec.json.format(content, indent=1) + b"\n")


def read_classes(path: Path) -> tuple[str, ...]:
    """The class list that `write_classes` wrote.

    Raises `DataError` when the file is missing, damaged, or from a newer version.
    """
    try:
        content = msgspec.json.decode(path.read_bytes(), type=ClassFile)
    except OSError as error:
        raise DataError(
            say("dataset.class_list_unreadable", path=path, why=error.strerror)
        ) from error
    except msgspec.DecodeError as error:
        raise DataError(say("dataset.no_class_list", path=path, error=error)) from error
    if content.format > FORMAT:
        raise DataError(say("dataset.newer", path=path, format=content.format, known=FORMAT))
    return content.classes
