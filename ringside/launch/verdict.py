"""From exit code, requests, rank errors and the console to one final state and one sentence."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Collection

import msgspec

from ringside.events import Event, RunFinished, StopAgreed, decode_lines
from ringside.identity import ProcessIdentity
from ringside.records import FinalState, rank_errors
from ringside.rundir import RunDir

COMPLETED = "Completed."
STOPPED = "Stopped on request; the trainer ended by itself."
STOPPED_BY_FORCE = "Stopped on request; the trainer did not end in time and was ended."

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


class Verdict(msgspec.Struct, frozen=True):
    """How a run ended; `signal` names what ended the launcher or the first rank."""

    state: FinalState
    reason: str
    signal: str | None = None


def judge(
    run: RunDir,
    return_code: int | None,
    *,
    forced: bool = False,
    survivors: Collection[ProcessIdentity] = (),
) -> Verdict:
    """The verdict on a run whose launcher ended with `return_code`.

    `forced`: after a stop request the ladder had to end it. `survivors`: processes that could not
    be ended; with any left, a run is never called stopped.
    """
    if survivors:
        left = name_processes(survivors)
        return Verdict("failed", f"Could not end {left} of this run; end them by hand.")
    if return_code == 0:
        return Verdict("stopped", STOPPED) if _ended_early(run) else Verdict("completed", COMPLETED)
    if forced:
        return Verdict("stopped", STOPPED_BY_FORCE)
    return _why_failed(run, return_code)


def name_processes(processes: Collection[ProcessIdentity]) -> str:
    """`1 process (pid 12)` or `2 processes (pid 12, 13)`."""
    pids = ", ".join(str(pid) for pid in sorted(process.pid for process in processes))
    return f"{len(processes)} process{'es' if len(processes) != 1 else ''} (pid {pids})"


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


def _why_failed(run: RunDir, return_code: int | None) -> Verdict:
    """Killed ranks count before the errors of others: those only report a lost connection."""
    errors, deaths = rank_errors(run), _rank_deaths(run)
    killed = [(rank, code) for rank, code in deaths if -code in _CAUSES]
    own = [(rank, code) for rank, code in deaths if code != -signal.SIGTERM]
    if errors and (errors[0].user_error or not killed):
        first = errors[0]
        who = "" if first.user_error else f"Rank {first.rank}: "
        return Verdict("failed", who + first.sentence)
    if killed or own:
        rank, code = (killed or own)[-1]
        return _death(f"Rank {rank}", code)
    return _death("The launcher", return_code)


def _death(who: str, code: int | None) -> Verdict:
    if code is None or code >= 0:
        return Verdict("failed", f"{who} ended with exit code {code}; see console.log.")
    known = {number.value: number.name for number in signal.Signals}
    name = known.get(-code, f"signal {-code}")
    hint = "often the machine ran out of memory" if name == "SIGKILL" else "see console.log"
    return Verdict("failed", f"{who} was killed by {name}; {hint}.", name)


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
