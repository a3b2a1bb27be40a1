"""Makes a prepared set: in parallel, going on where it was stopped, whole or not there at all."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import msgspec

from ringside.data.images import ImageSplit
from ringside.data.pool import num_cpus, spread
from ringside.data.prepare.files import (
    IMAGES,
    INDEX,
    MARKER,
    PIXELS,
    Marker,
    Recipe,
    write_json,
)
from ringside.data.prepare.pictures import make_picture
from ringside.data.prepare.planning import Plan
from ringside.errors import DataError, RingsideError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

SHARD_IMAGES = 128
BEGUN, DONE = "begun.json", "done"


@dataclass(frozen=True)
class Shard:
    """Some pictures that are made together; `first` is the row of the first of them."""

    folder: str
    first: int
    pictures: ImageSplit
    files: list[str]
    recipe: Recipe

    @property
    def flag(self) -> Path:
        """The file that says that the shard is made."""
        return Path(self.folder) / DONE / str(self.first)


def prepare(
    plan: Plan,
    *,
    workers: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Path:
    """Make what was planned and return its folder; at once when it is there already.

    `workers` is the number of processes, by default one for every CPU this process may use.
    `progress(done, total)` counts pictures. An attempt that was stopped is gone on with. Raises
    `DataError` for the first picture that cannot be read, when another process is at it, and when
    writing fails.
    """
    if plan.is_done:
        return plan.folder
    try:
        with _claimed(plan):
            _write(plan, workers or num_cpus(), progress)
            _finish(plan)
    except (OSError, RingsideError) as error:
        if isinstance(error, DataError):
            raise
        reason = getattr(error, "strerror", None) or str(error)
        raise DataError(
            f"Writing to {plan.partial} failed ({reason}): make room or choose another folder, "
            "then run the same command to go on."
        ) from error
    return plan.folder


@contextlib.contextmanager
def _claimed(plan: Plan) -> Iterator[None]:
    """The unfinished folder, for this process alone; one begun in another way is begun anew."""
    import filelock

    plan.partial.mkdir(parents=True, exist_ok=True)
    lock = filelock.FileLock(plan.partial.with_name(f"{plan.partial.name}.lock"))
    try:
        lock.acquire(timeout=0)
    except filelock.Timeout:
        raise DataError(
            f"{plan.folder} is being prepared by another process: wait for it."
        ) from None
    try:
        if _begun(plan.partial) != plan.marker:
            shutil.rmtree(plan.partial)
            (plan.partial / DONE).mkdir(parents=True)
            write_json(plan.partial / BEGUN, plan.marker)
        yield
    finally:
        lock.release()
        Path(lock.lock_file).unlink(missing_ok=True)


def _begun(partial: Path) -> Marker | None:
    try:
        return msgspec.json.decode((partial / BEGUN).read_bytes(), type=Marker)
    except (OSError, msgspec.DecodeError):
        return None


def _write(plan: Plan, workers: int, progress: Callable[[int, int], None] | None) -> None:
    if plan.marker.recipe.format == "raw":
        _reserve(plan)
    shards = list(_shards(plan))
    missing = [shard for shard in shards if not shard.flag.exists()]
    total = plan.marker.num_images
    done = total - sum(len(shard.files) for shard in missing)
    if progress:
        progress(done, total)
    for number in spread(write_shard, missing, min(workers, len(missing))):
        done += number
        if progress:
            progress(done, total)


def _shards(plan: Plan) -> Iterator[Shard]:
    first = 0
    for split in (plan.data.train, plan.data.val):
        for start in range(0, len(split), SHARD_IMAGES):
            pictures = split.part(start, start + SHARD_IMAGES)
            files = plan.index.files[first : first + len(pictures)]
            yield Shard(str(plan.partial), first, pictures, files, plan.marker.recipe)
            first += len(pictures)


def _reserve(plan: Plan) -> None:
    """The whole file at its size, still empty, so that shards can be written in any order."""
    from numpy.lib.format import open_memmap

    if not (plan.partial / PIXELS).exists():
        side = plan.marker.recipe.short_side
        shape = (plan.marker.num_images, side, side, 3)
        new = plan.partial / f"{PIXELS}.new"
        open_memmap(new, mode="w+", dtype="uint8", shape=shape)
        new.rename(plan.partial / PIXELS)


def write_shard(shard: Shard) -> int:
    """Make the pictures of a shard, then its flag; returns how many they are."""
    made = (make_picture(shard.pictures, i, shard.recipe) for i in range(len(shard.files)))
    if shard.recipe.format == "raw":
        _write_rows(Path(shard.folder) / PIXELS, shard.first, list(made))
    else:
        for name, content in zip(shard.files, made, strict=True):
            path = Path(shard.folder) / IMAGES / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(cast(bytes, content))
    shard.flag.touch()
    return len(shard.files)


def _write_rows(path: Path, first: int, rows: list[bytes | NDArray[np.uint8]]) -> None:
    from numpy.lib.format import open_memmap

    pixels: Any = open_memmap(path, mode="r+")
    pixels[first : first + len(rows)] = rows
    pixels.flush()


def _finish(plan: Plan) -> None:
    """One rename makes the set; what only the work needed goes afterwards."""
    write_json(plan.partial / INDEX, plan.index)
    write_json(plan.partial / MARKER, plan.marker)
    if plan.folder.exists():
        plan.folder.rmdir()  # it was empty when the plan was made
    plan.partial.rename(plan.folder)
    shutil.rmtree(plan.folder / DONE)
    (plan.folder / BEGUN).unlink()
