"""From exit code, requests, rank errors, marks and the console to one final state, and why."""

from __future__ import annotations

from collections.abc import Collection

import msgspec

from ringside.causes import kind_of
from ringside.durations import duration
from ringside.events import Event, PhaseStarted, RunFinished, StopAgreed, decode_lines
from ringside.identity import ProcessIdentity
from ringside.launch.blame import place
from ringside.launch.evidence import advice, evidence_files, last_checkpoint, last_collective
from ringside.launch.inquest import Traces, first_cause
from ringside.marks import read_marks
from ringside.records import Failure, FinalState
from ringside.rundir import RunDir
from ringside.spec import RunSpec
from ringside.words import DEFAULT, say, speaking


class Verdict(msgspec.Struct, frozen=True):
    """How a run ended; `signal` names what ended the launcher or the first rank."""

    state: FinalState
    reason: str
    signal: str | None = None
    failure: Failure | None = None


def judge(
    run: RunDir,
    return_code: int | None,
    *,
    forced: bool = False,
    survivors: Collection[ProcessIdentity] = (),
    stalled_s: float | None = None,
    memory_kills: int | None = None,
    limit_s: int | None = None,
) -> Verdict:
    """The verdict on a run whose launcher ended with `return_code`.

    `forced`: after a stop request the ladder had to end it. `survivors`: processes that could not
    be ended; with any left, a run is never called stopped. `stalled_s` and `memory_kills` as in
    `Traces`. `limit_s`: the time limit, where the stop came of it.
    """
    with speaking(DEFAULT):  # It is kept.
        if survivors:
            return Verdict("failed", say("ended.not_ended", processes=name_processes(survivors)))
        if return_code == 0 and not _left_early(run):
            cut_short = _ended_early(run)
            return _stopped(limit_s) if cut_short else Verdict("completed", say("ended.completed"))
        if _ended_in_profile(run):
            return Verdict("completed", say("ended.completed_without_profile"))
        if forced:
            return _stopped(limit_s, forced=True)
        return _failed(run, Traces(run, return_code, stalled_s, memory_kills))


def _stopped(limit_s: int | None, *, forced: bool = False) -> Verdict:
    how = "_by_force" if forced else ""
    if limit_s is None:
        return Verdict("stopped", say(f"ended.stopped{how}"))
    return Verdict("stopped", say(f"ended.stopped_at_limit{how}", limit=duration(limit_s)))


def name_processes(processes: Collection[ProcessIdentity]) -> str:
    """`1 process (pid 12)` or `2 processes (pid 12, 13)`."""
    pids = ", ".join(str(pid) for pid in sorted(process.pid for process in processes))
    num = len(processes)
    return say("ended.process" if num == 1 else "ended.processes", n=num, pids=pids)


def _left_early(run: RunDir) -> bool:
    """Whether a trainer that keeps marks ended with exit code 0 and without its last one."""
    marks = read_marks(run)
    return bool(marks) and all(mark.activity != "finished" for mark in marks)


def _ended_early(run: RunDir) -> bool:
    """Whether a run with exit code 0 was cut short; the trainer's own word counts most."""
    events = _events(run)
    finished = [event for event in events if isinstance(event, RunFinished)]
    if finished:
        return finished[-1].reason != "completed"
    return run.requested("stop") or any(isinstance(event, StopAgreed) for event in events)


def _ended_in_profile(run: RunDir) -> bool:
    """Whether all was done and on disk, and only steps for the profile were still recorded."""
    is_finished = False
    for event in _events(run):
        if isinstance(event, RunFinished):
            is_finished = event.reason == "completed"
        elif is_finished and isinstance(event, PhaseStarted):
            return event.phase == "profile"
    return False


def has_trained_all(run: RunDir) -> bool:
    """Whether the trainer itself wrote that it came to its planned end."""
    finished = [event for event in _events(run) if isinstance(event, RunFinished)]
    return bool(finished) and finished[-1].reason == "completed"


def _events(run: RunDir) -> list[Event]:
    try:
        return decode_lines(run.events.read_bytes())
    except OSError:
        return []


def _failed(run: RunDir, traces: Traces) -> Verdict:
    """The first cause, and beside it all that a person needs to mend it and to go on."""
    found, spec = first_cause(traces), run.read(run.spec, RunSpec)
    checkpoint = last_checkpoint(run, spec)
    mark = next((mark for mark in traces.marks if mark.rank == found.rank), None)
    where = None
    if mark and not found.tells_place:
        where = say("ended.stood", rank=found.rank, where=place(mark))
    failure = Failure(
        rank=found.rank,
        cause=found.cause,
        kind=kind_of(
            found.cause,
            nccl_gave_up=traces.nccl_gave_up,
            memory_ran_out=bool(traces.memory_kills),
        ),
        where=where,
        last_collective=last_collective(spec, traces),
        checkpoint=checkpoint.standing if checkpoint else None,
        advice=advice(checkpoint, found, mark),
        evidence=tuple(evidence_files(run)),
    )
    return Verdict("failed", found.sentence, found.signal, failure)
