"""Locks between processes and threads, kept beside the runs so that a run folder stays clean."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path

from ringside.errors import LaunchError, RunDirError
from ringside.rundir import RunDir
from ringside.words import say

LOCK_TIMEOUT_S = 60.0


def run_lock(run: RunDir) -> AbstractContextManager[None]:
    """Held by whoever starts this run or closes its books."""
    return locked(run.path.parent, run.id)


def queue_lock(root: Path, timeout_s: float = LOCK_TIMEOUT_S) -> AbstractContextManager[None]:
    """Held by whoever makes a run, lets one out of the queue, or changes its order."""
    return locked(root, "queue", timeout_s)


def folder_beside(root: Path, name: str) -> Path:
    """A folder of ours in a runs folder, made for whoever may write there, whatever the umask.

    RunDirError where it cannot be made.
    """
    folder = root / name
    try:
        root.mkdir(parents=True, exist_ok=True)
        with suppress(FileExistsError):
            folder.mkdir()
            folder.chmod(root.stat().st_mode & 0o2777)
    except OSError as error:
        raise _unwritable(root, error) from None
    return folder


@contextmanager
def locked(root: Path, name: str, timeout_s: float = LOCK_TIMEOUT_S) -> Iterator[None]:
    """Hold the lock `name` of a runs folder.

    Raises RunDirError where it cannot be made, LaunchError when it is not free in time.
    """
    from filelock import FileLock, Timeout

    path = folder_beside(root, ".locks") / f"{name}.lock"
    try:
        lock = FileLock(path, timeout=timeout_s, mode=root.stat().st_mode & 0o666)
        lock.acquire()
    except Timeout:
        raise LaunchError(say("launching.held", path=path, timeout_s=timeout_s)) from None
    except OSError as error:
        raise _unwritable(root, error) from None
    try:
        yield
    finally:
        lock.release()


def _unwritable(root: Path, error: OSError) -> RunDirError:
    return RunDirError(say("launching.unwritable", root=root, why=error.strerror))
