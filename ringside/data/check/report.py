"""What a check of a data set found."""

from __future__ import annotations

import msgspec

from ringside.data.folder.records import RowFault
from ringside.data.images import Task
from ringside.data.notes import Note
from ringside.data.pixels import Fault

RULES = {
    "16-bit": "picture.rule_16_bit",
    "float": "picture.rule_float",
    "CMYK": "picture.rule_cmyk",
    "palette": "picture.rule_palette",
    "alpha": "picture.rule_alpha",
    "EXIF-rotated": "picture.rule_exif_rotated",
}
"""What says how training treats what is not plain 8-bit RGB; see `decode_rgb`."""


class BadFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file, or a row of a table, that cannot be used.

    `file` is what `skip` takes. `is_used` tells whether a run would have used it: a damaged file
    that no row names does no harm.
    """

    file: str
    code: Fault | RowFault
    reason: str
    is_used: bool = True


class ClassCount(msgspec.Struct, frozen=True, kw_only=True):
    """How many images of a class a run would train on and validate with."""

    name: str
    train: int
    val: int


class UnusualImages(msgspec.Struct, frozen=True, kw_only=True):
    """Images of one kind (a key of `RULES`) among those that decode, and the first of them."""

    kind: str
    num_images: int
    examples: tuple[str, ...]


class DataReport(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that a check found; the counts hold for a run without the bad files.

    `num_files` counts image files, or pictures of a built-in source. `root` is the folder that
    the files are relative to, None for a built-in source.
    """

    data: str
    root: str | None
    task: Task
    layout: str
    num_files: int
    num_usable: int
    num_train: int
    num_val: int
    bad: tuple[BadFile, ...]
    classes: tuple[ClassCount, ...]
    unusual: tuple[UnusualImages, ...]
    warnings: tuple[Note, ...]
    notes: tuple[Note, ...]

    @property
    def is_fine(self) -> bool:
        """Whether a run can use every file and row that it would look at."""
        return self.num_usable > 0 and not any(bad.is_used for bad in self.bad)

    @property
    def skip(self) -> frozenset[str]:
        """What `open_data` has to leave out, so that a run works on the usable rest."""
        return frozenset(bad.file for bad in self.bad if bad.is_used)
