"""What attempts at a prepared set have made so far, so that another goes on with it.

DIR/begun.json          the marker of the attempt
DIR/done/128            which pictures of the shard from row 128 on are made, and of what
DIR/before/0/           the same for an earlier attempt at other pictures, such as before a bad
                        file was mended or left out
"""

from __future__ import annotations

import hashlib
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from ringside.data.prepare.files import IMAGES, PIXELS, Marker, write_json
from ringside.rundir import write_atomic

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

BEGUN, DONE, BEFORE, LOCK = "begun.json", "done", "before", "lock"


class Picture(msgspec.Struct, frozen=True, array_like=True):
    """One that is made; `digest` tells of what (see `digest_of`)."""

    file: str
    digest: str
    is_enlarged: bool


class Made(msgspec.Struct, frozen=True):
    """The pictures of a shard that are made, in its order: from its first on, perhaps not all."""

    pictures: list[Picture] = []


@dataclass(frozen=True)
class Kept:
    """A picture of an earlier attempt in `folder`; of an array `row` is its row."""

    folder: str
    row: int
    picture: Picture


def digest_of(source: bytes | NDArray[np.uint8]) -> str:
    """32 hexadecimal digits that stand for a picture as it comes from its source."""
    content = source if isinstance(source, bytes) else source.tobytes()
    return hashlib.blake2b(content, digest_size=16).hexdigest()


def read_begun(partial: Path) -> Marker | None:
    """The marker of the last attempt; None when there was none."""
    try:
        return msgspec.json.decode((partial / BEGUN).read_bytes(), type=Marker)
    except (OSError, msgspec.DecodeError):
        return None


def read_made(path: Path) -> Made:
    """What is made of a shard."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=Made)
    except (OSError, msgspec.DecodeError):
        return Made()


def write_made(path: Path, made: Made) -> None:
    """Whole or not at all; after the pictures, so that what it names is there."""
    write_atomic(path, msgspec.json.encode(made))


def begin(partial: Path, marker: Marker) -> None:
    """Go on with what was begun: as it is, with its pictures where others changed, or anew."""
    begun = read_begun(partial)
    if begun is not None and (begun.recipe, begun.pillow) == (marker.recipe, marker.pillow):
        if begun != marker:
            _set_aside(partial)
    else:
        for path in partial.iterdir():
            if path.is_dir():
                shutil.rmtree(path)
            elif path.name != LOCK:
                path.unlink()
    (partial / DONE).mkdir(exist_ok=True)
    if begun != marker:
        write_json(partial / BEGUN, marker)


def _set_aside(partial: Path) -> None:
    """The record goes last: without its pictures it would promise too much."""
    before = partial / BEFORE
    before.mkdir(exist_ok=True)
    aside = before / str(len(list(before.iterdir())))
    aside.mkdir()
    for name in (IMAGES, PIXELS, DONE):
        if (partial / name).exists():
            (partial / name).rename(aside / name)


def kept_before(partial: Path) -> dict[str, Kept]:
    """What earlier attempts made, by the name of the file; of several the last."""
    before = partial / BEFORE
    found: dict[str, Kept] = {}
    folders = before.iterdir() if before.exists() else ()
    for folder in sorted(folders, key=lambda path: int(path.name)):
        for record in (folder / DONE).glob("[0-9]*"):
            for row, picture in enumerate(read_made(record).pictures, int(record.name)):
                found[picture.file] = Kept(str(folder), row, picture)
    return found
