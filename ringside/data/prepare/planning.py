"""What preparing a data set would cost and where it would go, before anything is written."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ringside.data.discovery import open_data
from ringside.data.images import ImageData, ImageSplit
from ringside.data.pixels import PictureError
from ringside.data.prepare.files import Index, Marker, Recipe, key_of, read_marker
from ringside.data.prepare.pictures import make_picture
from ringside.errors import DataError

if TYPE_CHECKING:
    from ringside.spec import DataSpec

NUM_SAMPLED = 32
BLOCK_BYTES = 4096  # a file takes whole blocks


@dataclass(frozen=True)
class Plan:
    """A prepared set to make in `folder`; `is_done` means that it is there already.

    `estimated_bytes` is what it takes in the end, by a sample of the pictures; `written_bytes` is
    what an attempt that was stopped has left of it.
    """

    folder: Path
    data: ImageData
    marker: Marker
    index: Index
    is_done: bool
    estimated_bytes: int
    written_bytes: int
    free_bytes: int

    @property
    def partial(self) -> Path:
        """Where it grows until it is whole."""
        return partial_of(self.folder)


def plan_preparation(spec: DataSpec, recipe: Recipe, out: Path | None = None) -> Plan:
    """Open the data and say what preparing it takes; `out` None means the user's cache folder.

    Raises `DataError` when the data cannot be opened, when `out` lies in the data or holds
    something else, and when its volume lacks the room.
    """
    if spec.source == "prepared":
        raise DataError(f"{spec.label} is a prepared set: prepare the data that it was made from.")
    data = open_data(spec, skip=spec.skip)
    key = key_of(data.fingerprint, recipe)
    folder = out.expanduser().absolute() if out else cache_folder(data.title, key)
    _require_outside(folder, spec.path)
    plan = Plan(
        folder=folder,
        data=data,
        marker=_marker(data, recipe, key),
        index=_index(data, recipe),
        is_done=_is_there(folder, key),
        estimated_bytes=_estimated_bytes(data, recipe),
        written_bytes=_taken_bytes(partial_of(folder)),
        free_bytes=_free_bytes(folder),
    )
    missing_bytes = plan.estimated_bytes - plan.written_bytes
    if not plan.is_done and missing_bytes > plan.free_bytes:
        raise DataError(
            f"The prepared set takes about {megabytes(missing_bytes)} and the volume of {folder} "
            f"has {megabytes(plan.free_bytes)} free: make room, choose another volume with --out, "
            "or a smaller --short-side."
        )
    return plan


def megabytes(count: int) -> str:
    """A size for people, in powers of ten as disks are sold."""
    return f"{count / 1e9:,.1f} GB" if count >= 1e9 else f"{max(1, round(count / 1e6)):,} MB"


def cache_folder(title: str, key: str) -> Path:
    """The place below the user's cache folder for a set with this title and key."""
    import platformdirs

    name = re.sub(r"[^\w.-]+", "-", title).strip("-.")[:60]
    return platformdirs.user_cache_path("ringside") / "prepared" / f"{name}-{key[:10]}"


def partial_of(folder: Path) -> Path:
    """Beside the folder, so that renaming it there is one step."""
    return folder.with_name(f".{folder.name}.partial")


def _require_outside(folder: Path, data: str | None) -> None:
    """A table may lie in a home folder; what is beside it is not data."""
    if data and Path(data).is_dir() and folder.resolve().is_relative_to(Path(data).resolve()):
        raise DataError(
            f"{folder} lies in the data folder {data}, which stays as it is: choose another --out."
        )


def _is_there(folder: Path, key: str) -> bool:
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
    chosen = sorted({k * num_images // NUM_SAMPLED for k in range(NUM_SAMPLED)})
    sizes = []
    for i in chosen:
        split, at = (data.train, i) if i < len(data.train) else (data.val, i - len(data.train))
        try:
            content = len(make_picture(split, at, recipe))
        except PictureError:
            continue  # whoever prepares will meet it and say which it is
        sizes.append(-(-content // BLOCK_BYTES) * BLOCK_BYTES)
    mean = sum(sizes) / len(sizes) if sizes else BLOCK_BYTES
    return round(num_images * mean) + index_bytes


def _taken_bytes(folder: Path) -> int:
    """What a folder takes on its volume; a file that is not filled yet counts as far as it is."""
    found = (path.stat() for path in folder.rglob("*") if path.is_file())
    return sum(getattr(stat, "st_blocks", -(-stat.st_size // 512)) * 512 for stat in found)


def _free_bytes(folder: Path) -> int:
    """Free on the volume that the folder is, or would be, on."""
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    try:
        return shutil.disk_usage(folder).free
    except OSError as error:
        raise DataError(f"{folder} cannot be written: {os.strerror(error.errno or 0)}.") from error
