"""What preparing a data set would cost and where it would go, before anything is written."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from ringside.data.discovery import open_data
from ringside.data.images import ImageData, ImageSplit
from ringside.data.pixels import PictureError
from ringside.data.prepare.files import MIN_SIDE, Index, Marker, Recipe, key_of, read_marker
from ringside.data.prepare.made import read_begun
from ringside.data.prepare.pictures import Source, make_jpeg, short_side_of, source_of
from ringside.errors import DataError
from ringside.words import remembering

if TYPE_CHECKING:
    from ringside.spec import DataSpec

NUM_SAMPLED = 32
BLOCK_BYTES = 4096  # a file takes whole blocks


@dataclass(frozen=True)
class Plan:
    """A prepared set to make in `folder`; `is_done` means that it is there already.

    It grows in `partial`, which depends on the data and the recipe and not on what the pictures
    are: who mends or leaves out a bad file finds there what was made before. `estimated_bytes` is
    what it takes in the end, by a sample of the pictures; `written_bytes` is what an attempt that
    was stopped has left of it.
    """

    folder: Path
    partial: Path
    data: ImageData
    marker: Marker
    index: Index
    is_done: bool
    estimated_bytes: int
    written_bytes: int
    free_bytes: int


def plan_preparation(spec: DataSpec, recipe: Recipe, out: Path | None = None) -> Plan:
    """Open the data and say what preparing it takes; `out` None means the user's cache folder.

    Raises `DataError` when the data cannot be opened, when `out` lies in the data or holds
    something else, when its volume lacks the room, and when `raw` would only enlarge pictures.
    """
    if spec.source == "prepared":
        raise DataError(f"{spec.label} is a prepared set: prepare the data that it was made from.")
    with remembering() as english:
        data = open_data(spec, skip=spec.skip)
    key = key_of(data.fingerprint, recipe)
    folder = out.expanduser().absolute() if out else cache_folder(data.title, key)
    partial = partial_of(folder if out else cache_folder(data.title, _work_key(spec, recipe)))
    _require_outside(folder, spec.path)
    notes = tuple(map(english, data.notes))  # the marker is a file
    marker = _marker(replace(data, notes=notes), recipe, key)
    plan = Plan(
        folder=folder,
        partial=partial,
        data=data,
        marker=marker,
        index=_index(data, recipe),
        is_done=is_there(folder, key),
        estimated_bytes=_estimated_bytes(data, recipe),
        written_bytes=_written_bytes(partial, marker),
        free_bytes=_free_bytes(folder),
    )
    missing_bytes = plan.estimated_bytes - plan.written_bytes
    if not plan.is_done and missing_bytes > plan.free_bytes:
        raise DataError(
            f"The prepared set takes about {megabytes(missing_bytes)} and the volume of {folder} "
            f"has {megabytes(plan.free_bytes)} free: make room, choose another volume with --out, "
            "or a smaller --short-side."
        )
    if not plan.is_done and recipe.format == "raw":
        _refuse_enlarging(data, recipe.short_side)
    return plan


def megabytes(count: int) -> str:
    """A size for people, in powers of ten as disks are sold."""
    return f"{count / 1e9:,.1f} GB" if count >= 1e9 else f"{max(1, round(count / 1e6)):,} MB"


def cache_folder(title: str, key: str) -> Path:
    """The place below the user's cache folder for a set with this title and key."""
    import platformdirs

    name = re.sub(r"[^\w.-]+", "-", title).strip("-.")[:60]
    return platformdirs.user_cache_path("ringside") / "prepared" / f"{name}-{key[:10]}"


def _work_key(spec: DataSpec, recipe: Recipe) -> str:
    """Stands for what a person asked for, whatever is left out of it."""
    asked = msgspec.json.encode(msgspec.structs.replace(spec, skip=()))
    return key_of(asked.decode(), recipe)


def partial_of(folder: Path) -> Path:
    """Beside the folder, so that renaming it there is one step."""
    return folder.with_name(f".{folder.name}.partial")


def _require_outside(folder: Path, data: str | None) -> None:
    """A table may lie in a home folder; what is beside it is not data."""
    if data and Path(data).is_dir() and folder.resolve().is_relative_to(Path(data).resolve()):
        raise DataError(
            f"{folder} lies in the data folder {data}, which stays as it is: choose another --out."
        )


def is_there(folder: Path, key: str) -> bool:
    """Whether the set is finished; `DataError` when the folder holds something else."""
    found = read_marker(folder)
    if found is not None and found.key == key:
        return True
    if found is not None:
        raise DataError(
            f"{folder} holds a set prepared from {found.data} ({found.recipe.label}), from other "
            "pictures or in another way: choose another --out, or remove it."
        )
    if folder.exists() and not (folder.is_dir() and not any(folder.iterdir())):
        raise DataError(f"{folder} exists and is no prepared set: choose another --out.")
    return False


def _marker(data: ImageData, recipe: Recipe, key: str) -> Marker:
    import PIL

    return Marker(
        key=key,
        recipe=recipe,
        data=data.spec.label,
        title=data.title,
        source_fingerprint=data.fingerprint,
        task=data.task,
        classes=data.classes,
        synthetic=data.synthetic,
        num_train=len(data.train),
        num_val=len(data.val),
        skipped=data.spec.skip,
        notes=data.notes,
        pillow=PIL.__version__,
    )


def _index(data: ImageData, recipe: Recipe) -> Index:
    splits = (data.train, data.val)
    return Index(
        files=list(_files(splits, recipe)),
        labels=[row.nonzero()[0].tolist() for split in splits for row in split.targets],
    )


def _files(splits: tuple[ImageSplit, ...], recipe: Recipe) -> Iterator[str]:
    """The names below the data folder, for JPEG with its ending, each once in any case."""
    taken: set[str] = set()
    for split in splits:
        root = getattr(split, "root", None)
        for i in range(len(split)):
            name = split.name(i)
            name = name.removeprefix(f"{root}/") if root else name.replace("/", " ")
            if recipe.format == "jpeg" and not name.lower().endswith((".jpg", ".jpeg")):
                name += ".jpg"
            while name.casefold() in taken:
                stem, dot, ending = name.rpartition(".")
                name = f"{stem or ending}~{dot}{ending if stem else ''}"
            taken.add(name.casefold())
            yield name


def _estimated_bytes(data: ImageData, recipe: Recipe) -> int:
    """From a sample for JPEG, exactly for raw; the index is counted as a block per 32 pictures."""
    num_images = len(data.train) + len(data.val)
    index_bytes = num_images * BLOCK_BYTES // 32
    if recipe.format == "raw":
        return int(num_images * 3 * recipe.short_side**2) + index_bytes
    contents = _of_sample(data, lambda source, name: len(make_jpeg(source, name, recipe)))
    sizes = [-(-content // BLOCK_BYTES) * BLOCK_BYTES for content in contents]
    mean = sum(sizes) / len(sizes) if sizes else BLOCK_BYTES
    return round(num_images * mean) + index_bytes


def _of_sample(data: ImageData, measure: Callable[[Source, str], int]) -> list[int]:
    """What `measure` says of pictures from all over the data."""
    num_images = len(data.train) + len(data.val)
    found = []
    for i in sorted({k * num_images // NUM_SAMPLED for k in range(NUM_SAMPLED)}):
        split, at = (data.train, i) if i < len(data.train) else (data.val, i - len(data.train))
        # Whoever prepares will meet a bad one and say which it is.
        with contextlib.suppress(PictureError):
            found.append(measure(source_of(split, at), split.name(at)))
    return found


def _refuse_enlarging(data: ImageData, side: int) -> None:
    """Larger pictures of the same content would cost room and time for nothing."""
    largest = max(_of_sample(data, short_side_of), default=side)
    if largest < side and side > MIN_SIDE:
        raise DataError(
            f"The pictures of {data.spec.label} have short sides of up to {largest} pixels, so "
            f"squares of {side} would only be larger: choose --short-side "
            f"{max(largest, MIN_SIDE)}."
        )


def _written_bytes(partial: Path, marker: Marker) -> int:
    """What is there of it; rows of another array take their room a second time."""
    is_other = marker.recipe.format == "raw" and read_begun(partial) != marker
    return 0 if is_other else _taken_bytes(partial)


def _taken_bytes(folder: Path) -> int:
    """What a folder takes on its volume; a file that is not filled yet counts as far as it is."""
    stats = file_stats(folder)
    return sum(getattr(stat, "st_blocks", -(-stat.st_size // 512)) * 512 for stat in stats)


def file_stats(folder: Path) -> Iterator[os.stat_result]:
    """Of all files below the folder; those that another process removes meanwhile are left out."""
    for root, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(FileNotFoundError):
                yield os.stat(os.path.join(root, name))


def _free_bytes(folder: Path) -> int:
    """Free on the volume that the folder is, or would be, on."""
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    try:
        return shutil.disk_usage(folder).free
    except OSError as error:
        raise DataError(f"{folder} cannot be written: {os.strerror(error.errno or 0)}.") from error
