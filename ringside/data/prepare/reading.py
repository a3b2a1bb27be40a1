"""Reads a prepared set and believes nothing in it: it may be damaged, or made by a stranger."""

from __future__ import annotations

from itertools import chain
from pathlib import Path
from typing import TypeVar

import msgspec

from ringside.data.folder.listing import list_folder
from ringside.data.prepare.files import (
    FORMAT,
    IMAGES,
    INDEX,
    MARKER,
    PIXELS,
    Index,
    Marker,
)
from ringside.errors import DataError
from ringside.rundir import AnyFormat
from ringside.words import say, say_count

T = TypeVar("T")


def read_prepared(folder: Path) -> tuple[Marker, Index]:
    """Marker and index of the set in `folder`, whose pictures are all there.

    Raises `DataError` with what is wrong when it is no set, from a newer version, or damaged:
    files that are missing or short, names that lead out of it, numbers that no class has.
    """
    found = _read(folder, MARKER, AnyFormat).format
    if found > FORMAT:
        raise DataError(say("dataset.newer", path=folder, format=found, known=FORMAT))
    marker, index = _read(folder, MARKER, Marker), _read(folder, INDEX, Index)
    _check_index(folder, marker, index)
    if marker.recipe.format == "raw":
        _check_pixels(folder, marker)
    else:
        _check_images(folder, index.files)
    return marker, index


def damaged(folder: Path, file: str, reason: str) -> DataError:
    """The sentence about a set that cannot be used; `file` is the part of it that is wrong."""
    return DataError(say("dataset.damaged_set", folder=folder, file=file, reason=reason))


def _read(folder: Path, file: str, kind: type[T]) -> T:
    try:
        return msgspec.json.decode((folder / file).read_bytes(), type=kind)
    except OSError as error:
        raise damaged(folder, file, str(error.strerror)) from error
    except msgspec.DecodeError as error:
        raise damaged(folder, file, str(error)) from error


def _check_index(folder: Path, marker: Marker, index: Index) -> None:
    if not len(index.files) == len(index.labels) == marker.num_images:
        reason = say(
            "dataset.set_names",
            n=len(index.files),
            pictures=say_count("picture", marker.num_images),
        )
        raise damaged(folder, INDEX, reason)
    leaving = next((name for name in index.files if not _is_contained(name)), None)
    if leaving is not None:
        raise damaged(folder, INDEX, say("dataset.set_leaving", name=leaving[:200]))
    numbers = set(chain.from_iterable(index.labels))
    unknown = [number for number in numbers if not 0 <= number < len(marker.classes)]
    if unknown:
        raise damaged(folder, INDEX, say("dataset.set_no_class", number=min(unknown)))
    if marker.task == "single_label" and any(len(row) != 1 for row in index.labels):
        raise damaged(folder, INDEX, say("dataset.set_not_one"))


def _is_contained(name: str) -> bool:
    """A relative path without steps back; an absolute one begins with an empty part."""
    return not {"", ".", ".."} & set(name.split("/")) and "\0" not in name


def _check_pixels(folder: Path, marker: Marker) -> None:
    """Only its header is read; a file that is shorter than this says would kill whoever reads."""
    import numpy as np

    path = folder / PIXELS
    try:
        if not path.is_file() or not path.resolve().is_relative_to(folder.resolve()):
            raise damaged(folder, PIXELS, say("dataset.set_no_file"))
        pixels = np.load(path, mmap_mode="r")
    except (OSError, ValueError, EOFError) as error:
        raise damaged(folder, PIXELS, str(error).splitlines()[0][:200]) from error
    side = marker.recipe.short_side
    expected = (marker.num_images, side, side, 3)
    if pixels.shape != expected or pixels.dtype != np.uint8:
        reason = say(
            "dataset.set_shape",
            dtype=pixels.dtype,
            shape=list(pixels.shape),
            expected=list(expected),
        )
        raise damaged(folder, PIXELS, reason)


def _check_images(folder: Path, names: list[str]) -> None:
    """A listing knows which files are there and follows no link out of the folder."""
    root = folder / IMAGES
    there = list_folder(root).sizes_bytes if root.is_dir() and not root.is_symlink() else {}
    missing = [name for name in names if name not in there]
    if missing:
        pictures = say_count("picture", len(names))
        of_all = say("dataset.missing_of", n=len(missing), pictures=pictures)
        raise damaged(folder, IMAGES, say("dataset.set_missing", of_all=of_all, name=missing[0]))
