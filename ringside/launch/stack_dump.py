"""Asks the ranks of a live run for their stacks, and reads what they write."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from ringside.errors import RunDirError
from ringside.identity import ProcessIdentity, descendants, is_alive, run_processes, signal_process
from ringside.marks import read_marks
from ringside.records import is_local, read_owner
from ringside.run import fold_run
from ringside.rundir import RunDir
from ringside.stacks import INSISTENT_SIGNAL, SIGNAL, RankStacks, parse_stacks, stacks_path
from ringside.words import say

WAIT_S = 6.0
# A rank whose threads run Python answers within the time of a switch between them.
PATIENCE_S = 2.0
POLL_S = 0.05
# faulthandler writes a dump in many small pieces, within milliseconds.
SETTLED_S = 0.2
PROC = Path("/proc")


def dump_stacks(run: RunDir, wait_s: float = WAIT_S) -> tuple[RankStacks, ...]:
    """The stacks of every rank of a live run, as of now; takes a moment, at most `wait_s` seconds.

    A rank that does not answer is asked once more, in a way that needs no lock of Python's; one
    that does not answer then has a `problem` instead. Raises RunDirError for a run that is over,
    that runs on another machine, or that has no rank yet.
    """
    require_live(run)
    asked = ask_for_stacks(run, processes_of(run))
    if not asked:
        raise RunDirError(say("stacks.no_rank", run=run.name))
    deadline = time.monotonic() + wait_s
    _wait(run, asked, min(deadline, time.monotonic() + PATIENCE_S))
    if insist(run, asked):
        _wait(run, asked, deadline)
    return tuple(_read(run, one) for one in asked)


def require_live(run: RunDir) -> None:
    """RunDirError for a run whose ranks cannot be asked from here."""
    record = fold_run(run)
    if record.final:
        state = say(f"state.{record.state}").lower()
        raise RunDirError(say("stacks.over", run=run.name, state=state))
    if record.owner is not None and not is_local(record.owner):
        raise RunDirError(say("stacks.elsewhere", run=run.name, host=record.owner.host))


def processes_of(run: RunDir) -> set[ProcessIdentity]:
    """Every process that belongs to a live run on this machine."""
    found = run_processes(run.id)
    owner = read_owner(run)
    for process in (owner.process, owner.launcher) if owner and is_local(owner) else ():
        if process is not None and is_alive(process):
            found |= {process} | descendants(process.pid)
    return found


def rank_processes(
    run: RunDir, processes: Iterable[ProcessIdentity]
) -> dict[int, ProcessIdentity | None]:
    """By rank its process, as its mark names it; None where that is none of `processes`."""
    by_pid = {process.pid: process for process in processes}
    return {mark.rank: by_pid.get(mark.pid) for mark in read_marks(run)}


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """A rank that was asked for its stacks; `problem` says why it could not be."""

    rank: int
    process: ProcessIdentity | None
    size_before: int
    problem: str | None


def ask_for_stacks(run: RunDir, processes: Iterable[ProcessIdentity]) -> list[Asked]:
    """Signal the ranks among `processes`, and do not wait for them."""
    found = []
    for rank, process in rank_processes(run, processes).items():
        size, problem = _size(stacks_path(run, rank)), _problem(process)
        if process is not None and problem is None:
            signal_process(process, SIGNAL)
        found.append(Asked(rank=rank, process=process, size_before=size, problem=problem))
    return found


def insist(run: RunDir, asked: Iterable[Asked]) -> bool:
    """Signal those that did not answer, the other way; whether there was one.

    Not a stopped process: it is silent for that, and its threads may run Python when it goes on.
    """
    silent = [
        one.process
        for one in asked
        if one.process is not None
        and one.problem is None
        and not _has_answered(run, one)
        and not _is_stopped(one.process.pid)
    ]
    for process in silent:
        if _catches(process.pid, INSISTENT_SIGNAL):
            signal_process(process, INSISTENT_SIGNAL)
    return bool(silent)


def _problem(process: ProcessIdentity | None) -> str | None:
    if process is None:
        return say("stacks.gone")
    return None if _catches(process.pid, SIGNAL) else say("stacks.unprepared")


def _has_answered(run: RunDir, one: Asked) -> bool:
    return _size(stacks_path(run, one.rank)) != one.size_before


def _catches(pid: int, number: signal.Signals) -> bool:
    """Whether a process handles a signal, which would end it otherwise.

    Linux tells (`SigCgt` of /proc/PID/status, proc(5)). Elsewhere the mark has to do: a rank
    prepares itself before it leaves one.
    """
    if not PROC.is_dir():
        return True
    return bool(int(_status(pid, "SigCgt") or "0", 16) >> (number - 1) & 1)


def _is_stopped(pid: int) -> bool:
    """By a signal or by a debugger (T and t in proc(5))."""
    return (_status(pid, "State") or "").lower().startswith("t")


def _status(pid: int, name: str) -> str | None:
    try:
        lines = (PROC / str(pid) / "status").read_text().splitlines()
    except OSError:
        return None
    return next((line.split()[1] for line in lines if line.startswith(f"{name}:")), None)


def _wait(run: RunDir, asked: Sequence[Asked], deadline: float) -> None:
    """Until every file has grown and grows no more, or the time is over."""
    asked = [one for one in asked if one.problem is None]
    sizes, since = [one.size_before for one in asked], time.monotonic()
    while time.monotonic() < deadline:
        now = [_size(stacks_path(run, one.rank)) for one in asked]
        if now != sizes:
            sizes, since = now, time.monotonic()
        has_grown = all(_has_answered(run, one) for one in asked)
        if has_grown and time.monotonic() - since >= SETTLED_S:
            return
        time.sleep(POLL_S)


def _read(run: RunDir, asked: Asked) -> RankStacks:
    rank, before = asked.rank, asked.size_before
    if asked.problem is not None:
        return RankStacks(rank=rank, problem=asked.problem)
    with suppress(OSError):
        data = stacks_path(run, rank).read_bytes()
        text = data[before if len(data) > before else 0 :].decode(errors="replace")
        if len(data) != before and (threads := parse_stacks(text)):
            return RankStacks(rank=rank, threads=threads)
    is_stopped = asked.process is not None and _is_stopped(asked.process.pid)
    return RankStacks(rank=rank, problem=say("stacks.stopped" if is_stopped else "stacks.silent"))


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
