"""Processes that still run though their run has ended: found by the run's token, ended on request.

Those of a lost run are among them: they may still train, but nobody answers for them any more.
Only processes of this user that carry the token (`RINGSIDE_RUN`) of a run in this folder.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

import msgspec

from ringside.errors import RingsideError
from ringside.identity import RUN_TOKEN, ProcessIdentity, marked_processes
from ringside.launch.ladder import stop_ladder
from ringside.launch.locks import run_lock
from ringside.launch.reconcile import reconcile
from ringside.run import FINAL_STATES, fold_run
from ringside.rundir import ID_PATTERN, RunDir

SETTLED_S = 5.0
"""A process may outlive the record of its run by a moment without being left over."""


class Leftover(msgspec.Struct, frozen=True, kw_only=True):
    """A process of a run that has ended; `started` in seconds since 1970."""

    run: str
    state: str
    pid: int
    command: str
    started: float | None = None
    memory_bytes: int | None = None


def find_leftovers(root: Path) -> list[Leftover]:
    """All of them below `root`, by run and process id."""
    found = [
        _described(process, run_id, state)
        for run_id, processes in marked_processes().items()
        if (state := _ended_state(root, run_id)) is not None
        for process in processes
    ]
    return sorted(found, key=lambda leftover: (leftover.run, leftover.pid))


def end_leftovers(root: Path) -> list[Leftover]:
    """End them by the ladder that ends a run; returns those that are still there.

    A run that fails stops no other one: the first error is raised when all have been tried.
    """
    errors = []
    for run_id in sorted({leftover.run for leftover in find_leftovers(root)}):
        try:
            _end(RunDir(root / run_id))
        except (RingsideError, OSError) as error:
            errors.append(error)
    if errors:
        raise errors[0]
    return find_leftovers(root)


def _end(run: RunDir) -> None:
    if not run.exit.exists():
        reconcile(run)  # ends them and closes the books of the run
        return
    with run_lock(run):
        stop_ladder((), run.id)


def _ended_state(root: Path, run_id: str) -> str | None:
    """The final state of a run here; None for a run under way, of elsewhere, or of this process."""
    if not ID_PATTERN.fullmatch(run_id) or os.environ.get(RUN_TOKEN) == run_id:
        return None
    run = RunDir(root / run_id)
    if not run.spec.exists():
        return None
    try:
        record = fold_run(run)
    except RingsideError:
        return None  # written by a newer Ringside
    if record.state not in FINAL_STATES:
        return None
    if record.exit is None:
        # Its owner is gone. Its ranks may still write events, so their time says nothing.
        return record.state
    ended = record.finished_t or record.last_event_t or 0.0
    return record.state if time.time() - ended > SETTLED_S else None


def _described(process: ProcessIdentity, run_id: str, state: str) -> Leftover:
    import psutil

    try:
        found = psutil.Process(process.pid)
        command, started = " ".join(found.cmdline()) or found.name(), found.create_time()
        memory = found.memory_info().rss
    except (psutil.Error, OSError):
        return Leftover(run=run_id, state=state, pid=process.pid, command="")
    return Leftover(
        run=run_id, state=state, pid=process.pid, command=command, started=started,
        memory_bytes=memory,
    )  # fmt: skip
