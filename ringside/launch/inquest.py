"""The first cause of a failure, from everything that the ranks left.

Causes go before consequences: a rank that lost its connection or waited too long only reports
another one, which may have had no chance to say anything. The rules stand in `RULES`; the first
that applies counts.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from dataclasses import dataclass

from ringside.launch.blame import behind, first_out, place, waiting_sentence
from ringside.launch.deaths import nccl_timeout, rank_deaths, signal_name
from ringside.marks import Mark, read_marks
from ringside.records import RankError, rank_errors
from ringside.rundir import RunDir
from ringside.words import say

# What happens to a rank from outside or by a crash. SIGTERM is what torch elastic sends to the
# other ranks, SIGABRT what NCCL does when another rank has gone: both are consequences.
_FATAL = {signal.SIGKILL, signal.SIGSEGV, signal.SIGBUS, signal.SIGILL, signal.SIGFPE}


@dataclass(frozen=True)
class Finding:
    """A cause in one word, the rank that failed first, a sentence, and perhaps a signal's name.

    `mistake`: a person has to mend something before the run can work.
    """

    cause: str
    rank: int | None
    sentence: str
    signal: str | None = None
    tells_place: bool = False
    mistake: bool = False


class Traces:
    """What a failed run left: its ranks' words and marks, and how the launcher saw them die.

    `stalled_s`: its owner ended it because no rank came on for so long. `memory_kills`: how often
    the kernel ended a process meanwhile for lack of memory, None where it does not tell.
    """

    def __init__(
        self, run: RunDir, return_code: int | None, stalled_s: float | None,
        memory_kills: int | None,
    ) -> None:  # fmt: skip
        self.errors: list[RankError] = rank_errors(run)
        self.marks: list[Mark] = read_marks(run)
        self.deaths = rank_deaths(run)
        self.nccl_timeout = nccl_timeout(run)
        self.return_code, self.stalled_s = return_code, stalled_s
        self.memory_kills = memory_kills

    @property
    def killed(self) -> list[tuple[int, int]]:
        """(rank, code) of ranks that a signal ended, whoever sent it."""
        return [(rank, code) for rank, code in self.deaths if -code in _FATAL]

    @property
    def has_timed_out(self) -> bool:
        """Whether a rank waited for another one until the timeout."""
        told = any(error.cause == "timeout" for error in self.errors)
        return told or self.nccl_timeout is not None

    @property
    def nccl_gave_up(self) -> bool:
        """Whether it was NCCL's watchdog that gave up waiting, by its own words."""
        words = "".join(error.traceback or "" for error in self.errors if error.is_consequence)
        return self.nccl_timeout is not None or "WorkNCCL" in words or "NCCL timeout" in words

    @property
    def silent(self) -> list[Mark]:
        """Marks of ranks that neither said why they end nor died by the launcher's account."""
        spoken = {error.rank for error in self.errors} | {rank for rank, _ in self.deaths}
        return [mark for mark in self.marks if mark.rank not in spoken]

    @property
    def end(self) -> float:
        """When the first rank gave up, in seconds since 1970."""
        return min((error.t for error in self.errors), default=time.time())


def first_cause(traces: Traces) -> Finding:
    """The finding of the first rule that applies."""
    for rule in RULES:
        finding = rule(traces)
        if finding is not None:
            return finding
    return _death(traces, None, traces.return_code)


def _stalled(traces: Traces) -> Finding | None:
    if traces.stalled_s is None:
        return None
    if len(traces.marks) > 1:
        return _late(traces, time.time())
    where = place(traces.marks[0]) if traces.marks else ""
    return Finding(
        "timeout", 0, say("ended.stalled", where=where, seconds=traces.stalled_s), tells_place=True,
    )  # fmt: skip


def _raised(traces: Traces) -> Finding | None:
    """A rank's own word, unless another one was killed and this may only follow from it."""
    first = next((error for error in traces.errors if not error.is_consequence), None)
    if first is None:
        return None
    certain = first.user_error or first.cause != "error" or not traces.killed
    return _word(first) if certain or traces.deaths[-1][0] == first.rank else None


def _killed(traces: Traces) -> Finding | None:
    """A killed rank; not one that the launcher ended because it ignored the SIGTERM."""
    killed = traces.killed
    if not killed or (traces.has_timed_out and traces.deaths[-1] not in killed):
        return None
    rank, code = killed[-1]
    return _death(traces, rank, code)


def _left(traces: Traces) -> Finding | None:
    """A rank that ended with exit code 0: the launcher reports the others and not this one."""
    early = traces.marks if traces.return_code == 0 else traces.silent if traces.deaths else []
    if not early:
        return None
    if any(mark.activity == "finished" for mark in early):
        return Finding(
            "left", early[0].rank, waiting_sentence(traces.marks, traces.end), tells_place=True
        )
    first = min(early, key=lambda mark: mark.position)
    return Finding("left", first.rank, _noticed("left", first.rank, traces))


def _waited(traces: Traces) -> Finding | None:
    """Only consequences are left to read: the marks tell who did not come."""
    if len(traces.marks) < 2:
        return None
    if traces.has_timed_out:
        return _late(traces, traces.end)
    if not traces.errors or not traces.silent:
        return None
    rank = min(traces.silent, key=lambda mark: mark.position).rank
    return Finding("gone", rank, _noticed("gone", rank, traces))


def _spoke(traces: Traces) -> Finding | None:
    return _word(traces.errors[0]) if traces.errors else None


def _died(traces: Traces) -> Finding | None:
    own = [(rank, code) for rank, code in traces.deaths if code != -signal.SIGTERM]
    if not own:
        return None
    rank, code = own[-1]
    return _death(traces, rank, code)


RULES: tuple[Callable[[Traces], Finding | None], ...] = (
    _stalled, _raised, _killed, _left, _waited, _spoke, _died,
)  # fmt: skip


def _late(traces: Traces, now: float) -> Finding:
    missing = first_out(traces.marks) or behind(traces.marks)
    rank = missing[0].rank if missing else None
    return Finding("timeout", rank, waiting_sentence(traces.marks, now), tells_place=True)


def _word(error: RankError) -> Finding:
    sentence = error.sentence
    if not error.user_error:
        sentence = say("ended.rank_said", rank=error.rank, sentence=sentence)
    return Finding(error.cause, error.rank, sentence, mistake=error.user_error)


def _noticed(what: str, rank: int, traces: Traces) -> str:
    """What a rank did, and who lost its connection to it."""
    lost = [error.rank for error in traces.errors if error.is_consequence]
    if not lost:
        return say(f"ended.{what}", rank=rank)
    return say(f"ended.{what}_noticed", rank=rank, other=lost[0])


def _death(traces: Traces, rank: int | None, code: int | None) -> Finding:
    """A rank's end, or the launcher's where it was none."""
    who = say("ended.launcher") if rank is None else say("ended.rank", rank=rank)
    if code is None or code >= 0:
        return Finding("died", rank, say("ended.died", who=who, code=code))
    name = signal_name(code)
    if name != "SIGKILL":
        return Finding("killed", rank, say("ended.killed", who=who, signal=name), name)
    if traces.memory_kills:
        return Finding("memory", rank, say("ended.killed_for_memory", who=who, signal=name), name)
    # A memory daemon or a job scheduler may do the same, and the kernel does not count it.
    how = "perhaps" if traces.memory_kills is None else "not"
    sentence = say(f"ended.killed_{how}_for_memory", who=who, signal=name)
    return Finding("killed", rank, sentence, name)
