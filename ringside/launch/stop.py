"""Ask a run to stop and see it through, for the page and the terminal alike."""

from __future__ import annotations

import signal
import threading

from ringside import identity
from ringside.errors import LaunchError, RingsideError, RunDirError
from ringside.identity import wait_until
from ringside.launch.ladder import stop_grace_s, stop_ladder
from ringside.launch.locks import run_lock
from ringside.launch.reconcile import reconcile
from ringside.launch.supervisor_log import note
from ringside.records import ExitRecord, Owner, is_local, read_exit, read_owner, write_exit
from ringside.rundir import RunDir
from ringside.words import DEFAULT, say, say_count, speaking

TERMINAL_TIMEOUT_S = 90.0

__all__ = ["request_stop", "stop_ladder", "stop_run"]


def request_stop(run: RunDir) -> None:
    """Leave the request; the trainer reads it at its next step boundary. Returns at once.

    Where it cannot be left (a full disk), the supervisor is told by a signal and ends the run.
    """
    if run.requested("stop"):
        return
    try:
        run.request("stop")
    except RunDirError:
        owner = read_owner(run)
        if owner is None or owner.kind != "supervisor" or not is_local(owner):
            raise
        if not identity.is_alive(owner.process):
            raise
        identity.signal_process(owner.process, signal.SIGTERM)


def stop_in_background(run: RunDir) -> None:
    """Ask for the stop and return; a run without a supervisor is seen through by a thread.

    What goes wrong in the thread becomes a line of the run's supervisor.log.
    """
    request_stop(run)
    owner = read_owner(run)
    if owner is not None and owner.kind == "terminal":
        threading.Thread(target=_see_through, args=(run,), daemon=True).start()


def stop_run(run: RunDir, *, timeout_s: float) -> ExitRecord | None:
    """Stop the run and wait at most `timeout_s` seconds; None when it has not ended by then.

    A supervised run is ended by its supervisor whether or not anyone waits. A terminal run gets
    the grace (RINGSIDE_STOP_GRACE_S, 20 s) and is then ended from here, which takes a few seconds
    more: wait at least that long. Raises LaunchError when processes survive.
    """
    record = read_exit(run)
    if record is not None:
        return record
    request_stop(run)
    owner = read_owner(run)
    from_here = owner is not None and owner.kind == "terminal" and is_local(owner)
    grace_s = stop_grace_s() if from_here else timeout_s
    if wait_until(lambda: _has_ended(run), min(timeout_s, grace_s)):
        return read_exit(run)
    if owner is None or not from_here or timeout_s < grace_s:
        return None
    return _end_terminal_run(run, owner)


@speaking(DEFAULT)  # what went wrong is kept
def _see_through(run: RunDir) -> None:
    try:
        stop_run(run, timeout_s=TERMINAL_TIMEOUT_S)
    except (RingsideError, OSError) as error:
        note(run, f"The stop failed: {error}")
    except Exception as error:
        # Nobody sees the traceback of this thread but whoever started the page.
        note(run, f"The stop failed: {error!r}")
        raise


def _has_ended(run: RunDir) -> bool:
    return run.exit.exists() or reconcile(run)


def _end_terminal_run(run: RunDir, owner: Owner) -> ExitRecord:
    """No supervisor carries a terminal run to its end, so whoever stops it does.

    The lock covers the signals too: a page that sees the owner die must not call the run lost.
    """
    with run_lock(run):
        record = read_exit(run)
        if record is not None:
            return record
        survivors = stop_ladder([owner.launcher or owner.process], run.id, known=[owner.process])
        if survivors:
            processes = say_count("process", len(survivors))
            pids = ", ".join(str(pid) for pid in sorted(one.pid for one in survivors))
            raise LaunchError(say("launching.undying", processes=processes, pids=pids, run=run.id))
        # On SIGTERM the trainer may still have closed the books itself.
        reason = say("ended.stopped_by_force", DEFAULT)
        return read_exit(run) or write_exit(run, state="stopped", reason=reason)
