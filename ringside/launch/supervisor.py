"""The detached process that owns one run: `python -m ringside.launch.supervisor RUN_DIR`.

It waits for the run's turn, starts the plan, waits for it, carries a stop request through to the
end, and alone writes owner.json, console.log and exit.json. It needs no page and no terminal.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import traceback
from contextlib import suppress
from pathlib import Path

from ringside import identity
from ringside.errors import LaunchError, RingsideError, RunDirError
from ringside.identity import ProcessIdentity, descendants, run_processes, wait_gone
from ringside.launch.hang_watch import HangWatch
from ringside.launch.ladder import stop_grace_s, stop_ladder
from ringside.launch.memory_kills import num_memory_kills
from ringside.launch.plan import LaunchPlan
from ringside.launch.retry import retry
from ringside.launch.sampling import Sampler
from ringside.launch.stack_dump import rank_processes
from ringside.launch.stall import StallWatch
from ringside.launch.stop import request_stop
from ringside.launch.turn import Turn
from ringside.launch.verdict import Verdict, judge
from ringside.records import write_exit, write_owner
from ringside.rundir import RunDir, check_format
from ringside.spec import RunSpec
from ringside.words import say

POLL_S = 0.25
SETTLE_S = 2.0
HEARTBEAT_S = 10.0
_PR_SET_CHILD_SUBREAPER = 36


class Supervisor:
    """One run's owner; `supervise` returns when the run has ended and nothing of it is left."""

    def __init__(self, run: RunDir) -> None:
        self.run = run
        self.grace_s = stop_grace_s()
        self.spec = run.read(run.spec, RunSpec)
        self.launcher: subprocess.Popen[bytes] | None = None
        self.launcher_identity: ProcessIdentity | None = None
        self.signalled = False
        self.stop_seen: float | None = None
        self.launched: float | None = None
        self.out_of_time = False
        self.forced = False
        self.stall = StallWatch(run)
        self.stalled_s: float | None = None
        self.hang = HangWatch(run, lambda: descendants(os.getpid()))
        self.sampler = Sampler(run, lambda: rank_processes(run, descendants(os.getpid())))
        self.memory_kills = num_memory_kills()
        self.heartbeat = time.monotonic()

    def supervise(self) -> Verdict:
        """Own the run from start to end; returns when nothing of it is left."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._on_signal)
        become_subreaper()
        write_owner(self.run, "supervisor", waiting=self._may_wait())
        self.run.set_aside()
        if not self._wait_for_turn():
            return Verdict("stopped", say("ended.stopped_before"))
        try:
            self._start()
        except (OSError, RingsideError) as error:
            return Verdict("failed", say("ended.no_launcher", error=error))
        self.sampler.start()
        survivors = self._watch() or self._end_leftovers()
        self.hang.end()
        self.sampler.end()
        return judge(
            self.run, self.return_code, forced=self.forced, survivors=survivors,
            stalled_s=self.stalled_s, memory_kills=self._new_memory_kills(),
            limit_s=self._limit_s() if self.out_of_time else None,
        )  # fmt: skip

    @property
    def return_code(self) -> int | None:
        """The launcher's exit code; None while it runs or when it never did."""
        return self.launcher.returncode if self.launcher else None

    def end_everything(self) -> set[ProcessIdentity]:
        """Run the stop ladder on the launcher and all that descends; returns the survivors."""
        roots = [self.launcher_identity] if self.launcher_identity else []
        survivors = stop_ladder(roots, self.run.id, known=descendants(os.getpid()))
        self._reap()
        return survivors

    def _on_signal(self, _number: int, _frame: object) -> None:
        self.signalled = True

    def _may_wait(self) -> bool:
        return self.spec is not None and self.spec.queue

    def _limit_s(self) -> int | None:
        return self.spec.time_limit_s if self.spec else None

    def _wait_for_turn(self) -> bool:
        """Until this run may use its devices; False when it was stopped, or deleted, before."""
        turn = Turn(self.run) if self._may_wait() else None
        kinds = ("stop",) if turn is None else ("stop", "stop-after-epoch")
        while not (self.signalled or self._is_deleted() or any(map(self.run.requested, kinds))):
            if turn is None or turn.take():
                return True
            self._beat()
            time.sleep(POLL_S)
        return False

    def _is_deleted(self) -> bool:
        """Whether its folder is gone; where the runs folder is gone too, both may come back."""
        try:
            self.run.path.stat()
        except FileNotFoundError:
            return self.run.path.parent.is_dir()
        except OSError:
            return False
        return False

    def _start(self) -> None:
        plan = read_plan(self.run)
        # What happened while the run waited does not tell of it.
        self.memory_kills = num_memory_kills()
        self.launched = time.monotonic()
        with self.run.console.open("ab") as console:
            self.launcher = subprocess.Popen(
                plan.argv,
                cwd=plan.cwd,
                env=os.environ | plan.environment,
                stdin=subprocess.DEVNULL,
                stdout=console,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self.launcher_identity = identity.of(self.launcher.pid)
        # Without this line the launcher is still found, by its token.
        with suppress(RunDirError):
            write_owner(self.run, "supervisor", self.launcher_identity)

    def _watch(self) -> set[ProcessIdentity]:
        """Until the launcher ends, a stop request has run out of grace, or no rank comes on.

        Returns survivors.
        """
        while not self._launcher_ended():
            if self._out_of_grace():
                self.forced = True
                return self.end_everything()
            self.stalled_s = self.stall.stalled_s()
            if self.stalled_s is not None:
                return self.end_everything()
            self.hang.look()
            self._beat()
            time.sleep(POLL_S)
        return set()

    def _new_memory_kills(self) -> int | None:
        now = num_memory_kills()
        return None if now is None or self.memory_kills is None else now - self.memory_kills

    def _launcher_ended(self) -> bool:
        self._reap()
        return self.return_code is not None

    def _out_of_grace(self) -> bool:
        if self.stop_seen is None and self._is_asked_to_stop():
            self.stop_seen = time.monotonic()
            self._tell_trainer()
        return self.stop_seen is not None and time.monotonic() - self.stop_seen >= self.grace_s

    def _is_asked_to_stop(self) -> bool:
        """By a person, a signal, or because its time is up; of these the first one counts."""
        if self.signalled or self.run.requested("stop"):
            return True
        limit_s = self._limit_s()
        if limit_s is not None and self.launched is not None:
            self.out_of_time = time.monotonic() - self.launched >= limit_s
        return self.out_of_time

    def _tell_trainer(self) -> None:
        """A signal or the time limit becomes a request, which is what the trainer looks for."""
        if not self.run.requested("stop"):
            # On a full disk the trainer does not hear of it; the ladder ends it after the grace.
            with suppress(OSError, RunDirError):
                self.run.request("stop", by="time_limit" if self.out_of_time else "signal")

    def _end_leftovers(self) -> set[ProcessIdentity]:
        """The launcher has ended: what it left behind gets a moment, then the ladder."""
        leftovers = descendants(os.getpid()) | run_processes(self.run.id)
        survivors = self.end_everything() if wait_gone(leftovers, SETTLE_S) else set()
        self._reap()
        return survivors

    def _reap(self) -> None:
        """Collect every ended child, orphans of the run included.

        Popen.wait is not used: it would lose the launcher's exit code to this loop.
        """
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            if self.launcher is not None and pid == self.launcher.pid:
                self.launcher.returncode = os.waitstatus_to_exitcode(status)

    def _beat(self) -> None:
        """Touch owner.json, so that another machine that shares the folder sees a live run."""
        if time.monotonic() - self.heartbeat >= HEARTBEAT_S:
            self.heartbeat = time.monotonic()
            with suppress(OSError):
                os.utime(self.run.owner)


def read_plan(run: RunDir) -> LaunchPlan:
    """The plan of a run; LaunchError when plan.json is missing or cannot be read."""
    plan = run.read(run.plan, LaunchPlan)
    if plan is None:
        raise LaunchError(f"{run.plan} is missing or damaged; start a new run.")
    check_format(plan.format, str(run.plan))
    return plan


def become_subreaper() -> None:
    """On Linux, orphaned ranks become children of this process: still found, and reaped."""
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def main(argv: list[str]) -> str | None:
    """Supervise the run directory argv[0]; returns the sentence why not, or None."""
    run = RunDir(Path(argv[0]))
    if run.owner.exists() or run.exit.exists():
        return f"{run.path} has been started already; start a new run."
    try:
        supervisor = Supervisor(run)
        verdict = _supervise(supervisor)
        again = None if supervisor.signalled else _retried(run, verdict)
        write_exit(
            run,
            state=verdict.state,
            reason=verdict.reason,
            return_code=supervisor.return_code,
            signal=verdict.signal,
            failure=verdict.failure,
            retried_as=again.id if again else None,
        )
        # Whoever asked for a stop while the other try was being started means that one.
        if again and (supervisor.signalled or run.requested("stop")):
            request_stop(again)
    except RingsideError as error:
        return str(error)
    return None


def _retried(run: RunDir, verdict: Verdict) -> RunDir | None:
    """The other try of the run, if any; whatever goes wrong there, this one gets its record."""
    try:
        return retry(run, verdict)
    except Exception:
        traceback.print_exc()
        return None


def _supervise(supervisor: Supervisor) -> Verdict:
    """Whatever goes wrong inside the supervisor, the run is ended and has an exit record."""
    try:
        return supervisor.supervise()
    except Exception as error:
        traceback.print_exc()
        supervisor.end_everything()
        return Verdict("failed", say("ended.supervisor_failed", error=repr(error)))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
