"""Which process is meant: a pid alone is not enough, numbers are used again.

A process is told by its pid, its create time and the boot it lives in. All three must match before
anything is signalled.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

import msgspec

RUN_TOKEN = "RINGSIDE_RUN"
"""The variable that marks every process of a run; its value is the run's id."""

POLL_S = 0.05


class ProcessIdentity(msgspec.Struct, frozen=True, kw_only=True):
    """One process of one boot; `create_time` counts seconds since boot on Linux.

    Not since 1970: that value is derived from the wall clock and moves when the clock is set.
    """

    pid: int
    create_time: float
    boot_id: str


def of(pid: int) -> ProcessIdentity:
    """The identity of a process; ProcessLookupError when there is none of this number."""
    found = _look(pid)
    if found is None:
        raise ProcessLookupError(f"There is no process {pid}.")
    return ProcessIdentity(pid=pid, create_time=found[0], boot_id=boot_id())


def is_alive(identity: ProcessIdentity) -> bool:
    """Whether this very process still runs; a zombie has ended and only waits to be reaped."""
    if identity.boot_id != boot_id():
        return False
    found = _look(identity.pid)
    return found is not None and found == (identity.create_time, False)


def alive(identities: Iterable[ProcessIdentity]) -> set[ProcessIdentity]:
    """Those that still run."""
    return {identity for identity in identities if is_alive(identity)}


def wait_gone(identities: Iterable[ProcessIdentity], timeout_s: float) -> set[ProcessIdentity]:
    """Wait until all have ended, at most `timeout_s` seconds; returns those that still run."""
    left = alive(identities)
    wait_until(lambda: not alive(left), timeout_s)
    return alive(left)


def wait_until(condition: Callable[[], bool], timeout_s: float) -> bool:
    """Poll until `condition` holds, at most `timeout_s` seconds; returns whether it does."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() >= deadline:
            return False
        time.sleep(POLL_S)
    return True


def signal_process(identity: ProcessIdentity, number: int) -> None:
    """Send a signal if this very process still runs and belongs to this user; else do nothing."""
    if is_alive(identity):
        with suppress(ProcessLookupError, PermissionError):
            os.kill(identity.pid, number)


def descendants(pid: int) -> set[ProcessIdentity]:
    """Children, their children and so on at this moment; empty when the process is gone."""
    import psutil

    try:
        children = psutil.Process(pid).children(recursive=True)
    except psutil.NoSuchProcess:
        return set()
    return alive(_identities(child.pid for child in children))


def run_processes(run_id: str) -> set[ProcessIdentity]:
    """Processes of this user whose environment carries the token of the run, without the caller."""
    import psutil

    others = (pid for pid in psutil.pids() if pid != os.getpid())
    # The identity is taken before the environment is read: were the number used again between the
    # two, the identity would be a dead one and nobody would be signalled.
    return {i for i in _identities(others) if _carries_token(i.pid, run_id) and is_alive(i)}


def marked_processes() -> dict[str, set[ProcessIdentity]]:
    """All processes of this user that carry the token of any run, by run, without the caller."""
    import psutil

    found: dict[str, set[ProcessIdentity]] = {}
    for process in _identities(pid for pid in psutil.pids() if pid != os.getpid()):
        run_id = _token_of(process.pid)
        if run_id and is_alive(process):
            found.setdefault(run_id, set()).add(process)
    return found


def boot_id() -> str:
    """Changes with every start of the machine."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        import psutil

        return str(round(psutil.boot_time()))


def _carries_token(pid: int, run_id: str) -> bool:
    return _token_of(pid) == run_id


def _token_of(pid: int) -> str | None:
    """The run whose token a process of this user carries; None for every other process."""
    import psutil

    try:
        process = psutil.Process(pid)
        mine = process.uids().real == os.getuid()
        return process.environ().get(RUN_TOKEN) if mine else None
    except (psutil.Error, OSError):
        return None


def _identities(pids: Iterable[int]) -> set[ProcessIdentity]:
    found = set()
    for pid in pids:
        with suppress(ProcessLookupError):
            found.add(of(pid))
    return found


def _look(pid: int) -> tuple[float, bool] | None:
    """Create time in seconds, and whether it is a zombie; None when there is no such process."""
    if sys.platform != "linux":
        return _look_with_psutil(pid)
    try:
        text = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return None
    # The name stands in parentheses and may hold any byte; state and start time follow it.
    fields = text.rpartition(b")")[2].split()
    return int(fields[19]) / os.sysconf("SC_CLK_TCK"), fields[0] in (b"Z", b"X")


def _look_with_psutil(pid: int) -> tuple[float, bool] | None:
    import psutil

    try:
        process = psutil.Process(pid)
        return process.create_time(), process.status() == psutil.STATUS_ZOMBIE
    except (psutil.NoSuchProcess, ValueError):
        return None
