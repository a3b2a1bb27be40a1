"""Asks the ranks of a live run for their stacks, and reads what they write."""

from __future__ import annotations

import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from ringside.errors import RunDirError
from ringside.identity import ProcessIdentity, descendants, is_alive, run_processes, signal_process
from ringside.marks import read_marks
from ringside.records import is_local, read_owner
from ringside.run import fold_run
from ringside.rundir import RunDir
from ringside.stacks import SIGNAL, RankStacks, parse_stacks, stacks_path
from ringside.words import say

WAIT_S = 3.0
POLL_S = 0.05
# faulthandler writes a dump in many small pieces, within milliseconds.
SETTLED_S = 0.2
PROC = Path("/proc")


def dump_stacks(run: RunDir, wait_s: float = WAIT_S) -> tuple[RankStacks, ...]:
    """The stacks of every rank of a live run, as of now; takes a moment, at most `wait_s` seconds.

    A rank that does not answer has a `problem` instead. Raises RunDirError for a run that is over,
    that runs on another machine, or that has no rank yet.
    """
    require_live(run)
    before = {mark.rank: _size(stacks_path(run, mark.rank)) for mark in read_marks(run)}
    problems = ask_for_stacks(run, processes_of(run))
    if not problems:
        raise RunDirError(say("stacks.no_rank", run=run.name))
    asked = [rank for rank, problem in problems.items() if problem is None]
    _wait(run, {rank: before.get(rank, 0) for rank in asked}, wait_s)
    return tuple(
        _read(run, rank, before.get(rank, 0), problem) for rank, problem in problems.items()
    )


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


def ask_for_stacks(run: RunDir, processes: Iterable[ProcessIdentity]) -> dict[int, str | None]:
    """Signal the ranks among `processes`; by rank why it cannot be asked, else None."""
    problems: dict[int, str | None] = {}
    for rank, process in rank_processes(run, processes).items():
        problems[rank] = _problem(process)
        if process is not None and problems[rank] is None:
            signal_process(process, SIGNAL)
    return problems


def _problem(process: ProcessIdentity | None) -> str | None:
    if process is None:
        return say("stacks.gone")
    return None if _is_prepared(process.pid) else say("stacks.unprepared")


def _is_prepared(pid: int) -> bool:
    """Whether a process handles the signal, which would end it otherwise.

    Linux tells (`SigCgt` of /proc/PID/status, proc(5)). Elsewhere the mark has to do: a rank
    prepares itself before it leaves one.
    """
    try:
        lines = (PROC / str(pid) / "status").read_text().splitlines()
    except OSError:
        return not PROC.is_dir()
    caught = next((line.split()[1] for line in lines if line.startswith("SigCgt:")), "0")
    return bool(int(caught, 16) >> (SIGNAL - 1) & 1)


def _wait(run: RunDir, before: dict[int, int], wait_s: float) -> None:
    """Until every file has grown and grows no more, or the time is over."""
    deadline = time.monotonic() + wait_s
    sizes, since = before, time.monotonic()
    while time.monotonic() < deadline:
        now = {rank: _size(stacks_path(run, rank)) for rank in before}
        if now != sizes:
            sizes, since = now, time.monotonic()
        has_grown = all(now[rank] != size for rank, size in before.items())
        if has_grown and time.monotonic() - since >= SETTLED_S:
            return
        time.sleep(POLL_S)


def _read(run: RunDir, rank: int, before: int, problem: str | None) -> RankStacks:
    if problem is not None:
        return RankStacks(rank=rank, problem=problem)
    path = stacks_path(run, rank)
    with suppress(OSError):
        data = path.read_bytes()
        text = data[before if len(data) > before else 0 :].decode(errors="replace")
        if len(data) != before and (threads := parse_stacks(text)):
            return RankStacks(rank=rank, threads=threads)
    return RankStacks(rank=rank, problem=say("stacks.silent"))


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
