"""Delete a run for good: only a directory of ours, never one that is in use, never half of one.

The directory is first moved into `.ringside-trash/` of the runs folder, in one step, and then
removed: what is interrupted half-way was gone from every list before, and the next deletion removes
the rest. Whatever else lies in that folder is left alone.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
import stat
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import msgspec

from ringside.errors import RunDirError
from ringside.identity import run_processes
from ringside.launch.locks import run_lock
from ringside.launch.reconcile import is_abandoned, is_silent, reconcile
from ringside.records import owner_is_alive
from ringside.run import FINAL_STATES, RunRecord, fold_run, require_spec
from ringside.rundir import ID_PATTERN, RunDir, list_run_dirs
from ringside.spec import RunSpec
from ringside.words import say

TRASH = ".ringside-trash"
_MOVED_ASIDE = re.compile(rf"(?:{ID_PATTERN.pattern})\.[0-9a-f]{{8}}")


class Size(msgspec.Struct, frozen=True, kw_only=True):
    """What a run holds: files (links are counted, not followed) and the bytes in them."""

    num_files: int = 0
    num_bytes: int = 0


def size_of(run: RunDir) -> Size:
    """How much would be gone."""
    num_files = num_bytes = 0
    for folder, _, names in os.walk(run.path, followlinks=False):
        for name in names:
            with suppress(OSError):
                num_bytes += os.lstat(os.path.join(folder, name)).st_size
                num_files += 1
    return Size(num_files=num_files, num_bytes=num_bytes)


def check_deletable(root: Path, run: RunDir) -> None:
    """Raise RunDirError, which says what to do, unless the run could be deleted; only looks."""
    _require_ours(root, run)
    if is_abandoned(run):
        _require_unused(root, run)
    else:
        _require_over(root, run)


def require_deletable(root: Path, run: RunDir) -> int:
    """Raise RunDirError, which says what to do, unless the run can be deleted.

    The books of one whose owner is gone are closed first, which ends what is left of it; returns
    how many processes that were.
    """
    _require_ours(root, run)
    num_ended = 0
    if not run.exit.exists():
        num_left = len(run_processes(run.id))
        num_ended = num_left if reconcile(run) else 0
    _require_over(root, run)
    return num_ended


def _require_ours(root: Path, run: RunDir) -> None:
    if not _is_run_of(root, run.path):
        raise RunDirError(say("shelf.not_ours", path=run.path, root=root))
    if not _is_mine(run.path):
        raise RunDirError(say("shelf.not_yours", path=run.path))
    require_spec(fold_run(run))


def _require_over(root: Path, run: RunDir) -> None:
    record = fold_run(run)
    if not _is_closed(run, record):
        if record.final or run.exit.exists():
            raise RunDirError(say("shelf.unclosed", run=run.name))
        raise RunDirError(say("shelf.live", run=run.name, state=say(f"state.{record.state}")))
    if left := run_processes(run.id):
        raise RunDirError(say("shelf.has_processes", run=run.name, n=len(left)))
    _require_unused(root, run)


def _is_closed(run: RunDir, record: RunRecord) -> bool:
    """Whether it is on record that the run ended; where that is damaged, silence has to do."""
    if record.exit is not None:
        return True
    is_owned = record.owner is not None and owner_is_alive(record.owner)
    return run.exit.exists() and is_silent(run) and not is_owned


def _require_unused(root: Path, run: RunDir) -> None:
    if names := _began_with(root, run):
        raise RunDirError(say("shelf.in_use", run=run.name, names=", ".join(names)))


def move_aside(root: Path, run: RunDir) -> None:
    """The first half, which takes the run out of every list at once; `empty_trash` is the rest.

    RunDirError when the run must not be deleted, or cannot.
    """
    require_deletable(root, run)
    with run_lock(run):
        # Asked again under the lock: meanwhile it may have been started, or replaced.
        _require_ours(root, run)
        _require_over(root, run)
        trash = root / TRASH
        try:
            trash.mkdir(exist_ok=True)
            if not stat.S_ISDIR(trash.lstat().st_mode):
                raise RunDirError(say("shelf.not_ours", path=trash, root=root))
            # A rename follows no link, whatever stands at the path by now.
            run.path.rename(trash / f"{run.id}.{secrets.token_hex(4)}")
        except OSError as error:
            raise RunDirError(say("shelf.stuck", path=run.path, why=error.strerror)) from None
    for name in (f"{run.id}.lock", f"{run.id}.notes.lock"):
        with suppress(OSError):
            (root / ".locks" / name).unlink()


def empty_trash(root: Path) -> None:
    """Remove what this user moved aside; RunDirError names what could not be removed.

    Several may do so at once: what is gone already is no fault.
    """
    trash = root / TRASH
    try:
        if not stat.S_ISDIR(trash.lstat().st_mode):
            return
        paths = [path for path in trash.iterdir() if _was_moved_aside(path)]
    except OSError:
        return
    for path in paths:
        # Refuses links, and follows none below (shutil.rmtree.avoids_symlink_attacks).
        shutil.rmtree(path, ignore_errors=True)
    if left := [path.name for path in paths if os.path.lexists(path)]:
        raise RunDirError(say("shelf.rest", names=", ".join(left), trash=trash))
    with suppress(OSError):
        trash.rmdir()


def _is_run_of(root: Path, path: Path) -> bool:
    """Whether `path` is a run directory of ours, right below `root` and no link."""
    if path.parent != root or not ID_PATTERN.fullmatch(path.name):
        return False
    return _is_kind(path, stat.S_ISDIR) and _is_kind(path / "spec.json", stat.S_ISREG)


def _was_moved_aside(path: Path) -> bool:
    named = _MOVED_ASIDE.fullmatch(path.name) is not None
    return named and _is_kind(path, stat.S_ISDIR) and _is_mine(path)


def _is_mine(path: Path) -> bool:
    """Whether it belongs to this user, or this user is the administrator."""
    try:
        return os.getuid() in (0, path.lstat().st_uid)
    except OSError:
        return False


def _is_kind(path: Path, kind: Callable[[int], bool]) -> bool:
    try:
        return kind(path.lstat().st_mode)
    except OSError:
        return False


def _began_with(root: Path, run: RunDir) -> list[str]:
    """Names of the runs under way that go on from a checkpoint of this one, or from its weights."""
    return [other.name for other in list_run_dirs(root) if _reads(other, run)]


def _reads(other: RunDir, run: RunDir) -> bool:
    if other.id == run.id or other.exit.exists():
        return False
    spec = other.read(other.spec, RunSpec)
    paths = [p for p in (spec.resume_from, spec.weights) if p] if spec else []
    if not any(_lies_in(path, run.path) for path in paths):
        return False
    with suppress(RunDirError):
        return fold_run(other).state not in FINAL_STATES
    return True


def _lies_in(path: str, folder: Path) -> bool:
    """By its words, or where its links lead: either would lose the file with the folder."""
    if Path(path).is_relative_to(folder):
        return True
    try:
        return Path(os.path.realpath(path)).is_relative_to(os.path.realpath(folder))
    except ValueError:
        return False  # no path at all: it holds a zero byte
