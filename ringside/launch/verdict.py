"""From exit code, requests, rank errors and the console to one final state and one sentence."""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Collection

from ringside.events import Event, RunFinished, StopAgreed, decode_lines
from ringside.launch.identity import ProcessIdentity
from ringside.launch.records import ExitRecord, FinalState, rank_errors
from ringside.rundir import RunDir

TAIL_BYTES = 64 * 1024

# What happens to a rank from outside or by a crash. SIGTERM is what torch elastic sends to the
# other ranks, SIGABRT what NCCL does when another rank has gone: both are consequences.
_CAUSES = {signal.SIGKILL, signal.SIGSEGV, signal.SIGBUS, signal.SIGILL, signal.SIGFPE}

# torch elastic's report: "  rank      : 1 (local_rank: 1)\n  exitcode  : -9 (pid: 6130)".
# It lists the other failures first and the root cause last.
_ELASTIC_RANK = re.compile(rb"rank +: (\d+) \(local_rank: \d+\)\s+exitcode +: (-?\d+) ")
# Accelerate's launcher of a single process, through subprocess.CalledProcessError.
_SINGLE_CODE = re.compile(rb"CalledProcessError: .* returned non-zero exit status (\d+)\.")
_SINGLE_SIGNAL = re.compile(rb"CalledProcessError: .* died with <Signals\.(\w+): \d+>")


def judge(
    run: RunDir,
    return_code: int | None,
    *,
    started: float,
    forced: bool = False,
    survivors: Collection[ProcessIdentity] = (),
) -> ExitRecord:
    """The exit record of a run whose launcher ended with `return_code`.

    `forced`: after a stop request the ladder had to end it. `survivors`: processes that could not
    be ended; with any left, a run is never called stopped.
    """
    state, reason, killed_by = _state(run, return_code, forced, survivors)
    return ExitRecord(
        state=state,
        return_code=return_code,
        signal=killed_by,
        reason=reason,
        started=started,
        finished=time.time(),
    )


def name_processes(processes: Collection[ProcessIdentity]) -> str:
    """`1 process (pid 12)` or `2 processes (pid 12, 13)`."""
    pids = ", ".join(str(pid) for pid in sorted(process.pid for process in processes))
    return f"{len(processes)} process{'es' if len(processes) != 1 else ''} (pid {pids})"


def _state(
    run: RunDir, return_code: int | None, forced: bool, survivors: Collection[ProcessIdentity]
) -> tuple[FinalState, str, str | None]:
    if survivors:
        left = name_processes(survivors)
        return "failed", f"Could not end {left} of this run; end them by hand.", None
    if return_code == 0:
        if _ended_early(run):
            return "stopped", "Stopped on request; the trainer ended by itself.", None
        return "completed", "Completed.", None
    if forced:
        return "stopped", "Stopped on request; the trainer did not end in time and was ended.", None
    return "failed", *_why_failed(run, return_code)


def _ended_early(run: RunDir) -> bool:
    """Whether a run with exit code 0 was cut short; the trainer's own word counts most."""
    events = _events(run)
    finished = [event for event in events if isinstance(event, RunFinished)]
    if finished:
        return finished[-1].reason != "completed"
    return run.requested("stop") or any(isinstance(event, StopAgreed) for event in events)


def _events(run: RunDir) -> list[Event]:
    try:
        return decode_lines(run.events.read_bytes())
    except OSError:
        return []


def _why_failed(run: RunDir, return_code: int | None) -> tuple[str, str | None]:
    """The sentence, and the signal that ended the launcher or the first rank.

    A rank that was killed comes before the errors of other ranks: those report a lost connection.
    """
    errors = rank_errors(run)
    deaths = _rank_deaths(run)
    killed = [(rank, -code) for rank, code in deaths if code < 0 and -code in _CAUSES]
    if errors and (errors[0].user_error or not killed):
        first = errors[0]
        return (first.sentence if first.user_error else f"Rank {first.rank}: {first.sentence}"), None
    if killed:
        return _killed(f"Rank {killed[-1][0]}", killed[-1][1])
    own = [(rank, code) for rank, code in deaths if code != -signal.SIGTERM]
    if own and own[-1][1] < 0:
        return _killed(f"Rank {own[-1][0]}", -own[-1][1])
    if own:
        return f"Rank {own[-1][0]} ended with exit code {own[-1][1]}; see console.log.", None
    if return_code is not None and return_code < 0:
        return _killed("The launcher", -return_code)
    return f"The launcher ended with exit code {return_code}; see console.log.", None


def _killed(who: str, number: int) -> tuple[str, str]:
    name = signal.Signals(number).name
    if number == signal.SIGKILL:
        return f"{who} was killed by SIGKILL; often that means the machine ran out of memory.", name
    return f"{who} was killed by {name}; see console.log.", name


def _rank_deaths(run: RunDir) -> list[tuple[int, int]]:
    """(rank, exit code) as the launcher reported them, the root cause last; negative: a signal."""
    tail = _console_tail(run)
    deaths = [(int(rank), int(code)) for rank, code in _ELASTIC_RANK.findall(tail)]
    deaths += [(0, int(code)) for code in _SINGLE_CODE.findall(tail)]
    deaths += [(0, -signal.Signals[name.decode()]) for name in _SINGLE_SIGNAL.findall(tail)]
    return deaths


def _console_tail(run: RunDir) -> bytes:
    try:
        with run.console.open("rb") as stream:
            stream.seek(max(0, stream.seek(0, os.SEEK_END) - TAIL_BYTES))
            return bytes(stream.read())
    except OSError:
        return b""
