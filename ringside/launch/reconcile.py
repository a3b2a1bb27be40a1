"""Close the books of runs whose owner is gone: no run stays "running" for ever.

A run is only touched when its owner is certainly dead, and only processes that carry its token are
signalled.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

from ringside.errors import RingsideError
from ringside.identity import boot_id, run_processes
from ringside.launch.ladder import stop_ladder
from ringside.launch.locks import run_lock
from ringside.launch.verdict import has_trained_all, judge, name_processes
from ringside.records import is_local, owner_is_alive, rank_errors, read_owner, write_exit
from ringside.rundir import RunDir, list_run_dirs
from ringside.words import DEFAULT, say, speaking

NEVER_STARTED_S = 60.0
SILENT_S = 900.0


def reconcile(run: RunDir) -> bool:
    """Write `lost` (or what a rank said) for a run whose owner is gone, after ending leftovers.

    Returns whether it did. A live run, a finished one, and one of another user are left alone.
    Raises RunDirError or LaunchError when the record cannot be written.
    """
    if _why_abandoned(run) is None:
        return False
    with run_lock(run):
        # Asked again under the lock: meanwhile it may have been started, or reconciled elsewhere.
        why = _why_abandoned(run)
        if why is None:
            return False
        finished = _last_sign_of_life(run)
        reason, errors = _end_leftovers(run, why), rank_errors(run)
        if errors:
            # A rank could still say why: that is the cause, not the missing record.
            verdict = judge(run, None)
            write_exit(
                run, state="failed", reason=verdict.reason, failure=verdict.failure,
                finished=finished,
            )  # fmt: skip
        else:
            write_exit(run, state="lost", reason=reason, finished=finished)
    return True


def is_abandoned(run: RunDir) -> bool:
    """Whether `reconcile` would close the books of the run; only looks."""
    return _why_abandoned(run) is not None


def is_forsaken(run: RunDir) -> bool:
    """As `is_abandoned`, and for runs of other users too: whose books this user cannot close."""
    return _why_forsaken(run) is not None


def is_silent(run: RunDir) -> bool:
    """Whether none of the run's files was written to for a quarter of an hour."""
    return time.time() - _last_sign_of_life(run) > SILENT_S


def orphan_sentence(run: RunDir) -> str | None:
    """That a run trains on though its owner is gone, and what ends it; None for every other run."""
    left = set() if _why_abandoned(run) is None else run_processes(run.id)
    key = "ending.orphan" if len(left) == 1 else "ending.orphans"
    return say(key, n=len(left), run=run.name) if left else None


def reconcile_all(root: Path) -> list[RunDir]:
    """Reconcile every run below `root`; returns those that were lost. One bad run stops nothing."""
    lost = []
    for run in list_run_dirs(root):
        try:
            if reconcile(run):
                lost.append(run)
        except (RingsideError, OSError):
            continue
    return lost


def _why_abandoned(run: RunDir) -> str | None:
    """The first half of the sentence, or None for a run that must not be touched."""
    if run.exit.exists() or not run.spec.exists() or not _is_ours(run):
        return None
    return _why_forsaken(run)


def _why_forsaken(run: RunDir) -> str | None:
    """Why an unfinished run has nobody any more; None where it has, or may still get somebody."""
    silence_s = time.time() - _last_sign_of_life(run)
    owner = read_owner(run)
    if owner is None:
        if run.owner.exists():
            return say("ended.damaged", DEFAULT) if silence_s > SILENT_S else None
        never = say("ended.never_started", DEFAULT, seconds=NEVER_STARTED_S)
        return never if silence_s > NEVER_STARTED_S else None
    if not is_local(owner):
        # Its processes cannot be seen from here; its supervisor touches owner.json while it lives.
        heard = say("ended.not_heard", DEFAULT, host=owner.host, minutes=SILENT_S / 60)
        return heard if silence_s > SILENT_S else None
    if owner_is_alive(owner):
        return None
    if owner.process.boot_id != boot_id():
        return say(f"ended.restarted{'_in_queue' * owner.waiting}", DEFAULT)
    if owner.waiting:
        return say("ended.supervisor_in_queue", DEFAULT)
    who = "supervisor" if owner.kind == "supervisor" else "trainer"
    # Ranks can come to their end without an owner; then nothing was lost but the record.
    return say(f"ended.{who}_gone{'_trained' * has_trained_all(run)}", DEFAULT)


def _is_ours(run: RunDir) -> bool:
    """Runs of other users may have processes that this user cannot see."""
    return os.getuid() in (0, run.path.stat().st_uid)


def _last_sign_of_life(run: RunDir) -> float:
    """When one of the run's files was last written, in seconds since 1970."""
    files = (run.spec, run.owner, run.console, run.events)
    return max((path.stat().st_mtime for path in files if path.exists()), default=0.0)


def _end_leftovers(run: RunDir, why: str) -> str:
    """End what still carries the run's token; the whole sentence, as it is kept."""
    leftovers = run_processes(run.id)
    with speaking(DEFAULT):
        if not leftovers:
            return say("ended.lost", why=why)
        survivors = stop_ladder((), run.id)
        if survivors:
            return say("ended.lost_not_ended", why=why, processes=name_processes(survivors))
        how = "ended_one" if len(leftovers) == 1 else "ended"
        return say(f"ended.lost_{how}", why=why, n=len(leftovers))
