"""The files of a prepared set.

DIR/prepared.json        what it was made of; written last
DIR/index.json           names and labels, training first
DIR/images/cat/1.jpg     `jpeg`: the pictures under their names
DIR/pixels.npy           `raw`: uint8 [n, side, side, 3], in the order of the index
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from ringside.data.images import Task
from ringside.rundir import write_atomic
from ringside.words import say

FORMAT = 1
MIN_SIDE = 16  # pixels
MAKER = "ringside data prepare"
MARKER, INDEX, IMAGES, PIXELS = "prepared.json", "index.json", "images", "pixels.npy"

Count = Annotated[int, Meta(ge=0)]


class Recipe(msgspec.Struct, frozen=True, kw_only=True):
    """How pictures are made smaller.

    `jpeg` resizes the short side to `short_side` pixels, never up, and encodes with `quality`.
    `raw` keeps the centre square, `short_side` pixels wide, without a codec; all are of one size,
    so smaller pictures become larger. `quality` says nothing there.
    """

    format: Literal["jpeg", "raw"] = "jpeg"
    short_side: Annotated[int, Meta(ge=MIN_SIDE, le=4096)] = 256
    quality: Annotated[int, Meta(ge=1, le=95)] = 90

    @property
    def label(self) -> str:
        """In words."""
        if self.format == "raw":
            return say("data_layout.raw", side=self.short_side)
        return say("data_layout.jpeg", side=self.short_side, quality=self.quality)


class Marker(msgspec.Struct, frozen=True, kw_only=True):
    """What a prepared set is made of; `key` is equal for equal pictures made in the same way."""

    format: int = FORMAT
    maker: str = MAKER
    key: str
    recipe: Recipe
    data: str
    title: str
    source_fingerprint: str
    task: Task
    classes: tuple[str, ...]
    synthetic: bool
    num_train: Count
    num_val: Count
    skipped: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    pillow: str

    @property
    def num_images(self) -> int:
        """Pictures in both splits."""
        return self.num_train + self.num_val


class Index(msgspec.Struct, frozen=True, kw_only=True):
    """Per picture its file name and the numbers of its classes; training pictures come first."""

    files: list[str]
    labels: list[list[int]]


def key_of(source_fingerprint: str, recipe: Recipe) -> str:
    """16 hexadecimal digits that stand for a source and a recipe."""
    plain = msgspec.structs.replace(recipe, quality=90) if recipe.format == "raw" else recipe
    made_of = msgspec.json.encode((FORMAT, source_fingerprint, plain))
    return hashlib.blake2b(made_of, digest_size=8).hexdigest()


def read_marker(folder: Path) -> Marker | None:
    """The marker of a finished prepared set; None when the folder is none."""
    try:
        return msgspec.json.decode((folder / MARKER).read_bytes(), type=Marker)
    except (OSError, msgspec.DecodeError):
        return None


def write_json(path: Path, content: msgspec.Struct) -> None:
    """Write a whole file; a reader never sees half of it."""
    write_atomic(path, msgspec.json.format(msgspec.json.encode(content), indent=1) + b"\n")
