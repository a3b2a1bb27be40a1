"""Makes a prepared set: in parallel, going on where it was stopped, whole or not there at all."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from ringside.cores import num_cores
from ringside.data.notes import counted
from ringside.data.pool import spread
from ringside.data.prepare.files import (
    INDEX,
    MARKER,
    PIXELS,
    Marker,
    read_marker,
    write_json,
)
from ringside.data.prepare.made import (
    BEFORE,
    BEGUN,
    DONE,
    LOCK,
    begin,
    kept_before,
    read_made,
)
from ringside.data.prepare.planning import Plan, is_there
from ringside.data.prepare.shards import Shard, record_of, write_shard
from ringside.errors import DataError, RingsideError

SHARD_IMAGES = 128


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
            if not is_there(plan.folder, plan.marker.key):  # it may have come since the plan
                begin(plan.partial, plan.marker)
                num_enlarged = _write(plan, workers or num_cores(), progress)
                _finish(plan, num_enlarged)
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
    """The unfinished folder, for this process alone.

    The lock lies in it and stays until the set is there: whoever held a removed one would hold
    nothing. Then holding it means nothing any more, for every holder finds the set.
    """
    import filelock

    plan.partial.mkdir(parents=True, exist_ok=True)
    lock = filelock.FileLock(plan.partial / LOCK)
    try:
        lock.acquire(timeout=0)
    except (filelock.Timeout, FileNotFoundError):  # the second where it was finished just now
        raise DataError(
            f"{plan.folder} is being prepared by another process: wait for it."
        ) from None
    try:
        yield
    finally:
        if read_marker(plan.folder) and not (plan.partial / BEGUN).exists():
            shutil.rmtree(plan.partial, ignore_errors=True)
        lock.release()


def _write(plan: Plan, workers: int, progress: Callable[[int, int], None] | None) -> int:
    """Make all pictures that are not made yet; returns how many became larger in all."""
    if plan.marker.recipe.format == "raw":
        _reserve(plan)
    shards = list(_shards(plan))
    missing = [shard for shard in shards if len(shard.made.pictures) < len(shard.files)]
    total = plan.marker.num_images
    done = sum(len(shard.made.pictures) for shard in shards)
    if progress:
        progress(done, total)
    with contextlib.closing(spread(write_shard, missing, min(workers, len(missing)))) as numbers:
        for number in numbers:
            done += number
            if progress:
                progress(done, total)
    made = (picture for shard in shards for picture in read_made(shard.record).pictures)
    return sum(picture.is_enlarged for picture in made)


def _shards(plan: Plan) -> Iterator[Shard]:
    first, kept = 0, kept_before(plan.partial)
    for split in (plan.data.train, plan.data.val):
        for start in range(0, len(split), SHARD_IMAGES):
            pictures = split.part(start, start + SHARD_IMAGES)
            files = plan.index.files[first : first + len(pictures)]
            yield Shard(
                folder=str(plan.partial),
                first=first,
                pictures=pictures,
                files=files,
                recipe=plan.marker.recipe,
                made=read_made(record_of(plan.partial, first)),
                kept={name: kept[name] for name in files if name in kept},
            )
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


def _finish(plan: Plan, num_enlarged: int) -> None:
    """One rename makes the set; what only the work needed goes afterwards."""
    write_json(plan.partial / INDEX, plan.index)
    write_json(plan.partial / MARKER, _with_note(plan.marker, num_enlarged))
    if plan.folder.exists():
        plan.folder.rmdir()  # it was empty when the plan was made
    plan.partial.rename(plan.folder)
    for name in (DONE, BEFORE):
        shutil.rmtree(plan.folder / name, ignore_errors=True)
    for name in (BEGUN, LOCK):
        (plan.folder / name).unlink(missing_ok=True)


def _with_note(marker: Marker, num_enlarged: int) -> Marker:
    if not num_enlarged:
        return marker
    note = (
        f"{counted(num_enlarged, 'picture')} smaller than {marker.recipe.short_side} pixels made "
        "larger, because raw squares have one size."
    )
    return msgspec.structs.replace(marker, notes=(*marker.notes, note))
