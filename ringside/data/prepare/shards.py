"""Some pictures of a prepared set, made in one go by one process."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ringside.data.images import ImageSplit
from ringside.data.pool import stop_point
from ringside.data.prepare.files import IMAGES, PIXELS, Recipe
from ringside.data.prepare.made import DONE, Kept, Made, Picture, digest_of, write_made
from ringside.data.prepare.pictures import Source, make_jpeg, make_square, source_of


@dataclass(frozen=True)
class Shard:
    """Some pictures that are made together; `first` is the row of the first of them.

    `made` are the first of them, where an attempt was stopped; `kept` has those of earlier
    attempts at other pictures, by file name.
    """

    folder: str
    first: int
    pictures: ImageSplit
    files: list[str]
    recipe: Recipe
    made: Made
    kept: dict[str, Kept]

    @property
    def record(self) -> Path:
        """The file that says what is made of it."""
        return record_of(Path(self.folder), self.first)


def record_of(partial: Path, first: int) -> Path:
    """The file that says what is made of the shard from row `first` on."""
    return partial / DONE / str(first)


def write_shard(shard: Shard) -> int:
    """Make what is missing of a shard; returns how many pictures these are.

    However it ends, the record says what is made.
    """
    made = list(shard.made.pictures)
    begun = len(made)
    put, flush = _writer(shard)
    try:
        for i, name in enumerate(shard.files[begun:], begun):
            stop_point()
            source = source_of(shard.pictures, i)
            digest = digest_of(source)
            kept = shard.kept.get(name)
            is_same = kept is not None and kept.picture.digest == digest
            made.append(Picture(name, digest, put(i, source, kept if is_same else None)))
    finally:
        flush()
        write_made(shard.record, Made(made))
    return len(made) - begun


Put = Callable[[int, Source, Kept | None], bool]


def _writer(shard: Shard) -> tuple[Put, Callable[[], None]]:
    """Writes picture `i` from its source, or as it was kept; says whether it became larger."""
    return _square_writer(shard) if shard.recipe.format == "raw" else _file_writer(shard)


def _file_writer(shard: Shard) -> tuple[Put, Callable[[], None]]:
    def put(i: int, source: Source, kept: Kept | None) -> bool:
        name = shard.files[i]
        path = Path(shard.folder) / IMAGES / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(FileNotFoundError):  # an attempt that was killed has taken it
            if kept:
                (Path(kept.folder) / IMAGES / name).rename(path)
                return False
        path.write_bytes(make_jpeg(source, shard.pictures.name(i), shard.recipe))
        return False

    return put, lambda: None


def _square_writer(shard: Shard) -> tuple[Put, Callable[[], None]]:
    import numpy as np
    from numpy.lib.format import open_memmap

    rows: Any = open_memmap(Path(shard.folder) / PIXELS, mode="r+")

    def put(i: int, source: Source, kept: Kept | None) -> bool:
        if kept:
            rows[shard.first + i] = np.load(f"{kept.folder}/{PIXELS}", mmap_mode="r")[kept.row]
            return kept.picture.is_enlarged
        name = shard.pictures.name(i)
        square, is_enlarged = make_square(source, name, shard.recipe.short_side)
        rows[shard.first + i] = square
        return is_enlarged

    return put, rows.flush
