"""What stands beside the cause of a failure: the last collective, the checkpoint, the files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from ringside.checkpoints import STATE, WEIGHTS, damaged_file, folders_of, read_about
from ringside.errors import RingsideError
from ringside.launch.blame import place
from ringside.launch.inquest import Finding, Traces
from ringside.marks import Mark
from ringside.records import Standing
from ringside.rundir import RunDir, iter_files
from ringside.spec import RunSpec
from ringside.words import say

READS_PICTURES = ("compile", "train", "evaluate")
REFUSES_CHECKPOINT = ("files", "setup")
"""What a run dies of before it has trained a step."""

EVIDENCE = ("rank*.error.json", "rank*.stack.txt", "rank*.stacks.txt", "flight_rank*")


class Resumable(NamedTuple):
    """A checkpoint to go on from, and the name of the run to resume for it."""

    standing: Standing
    run: str
    is_own: bool = True


def last_checkpoint(run: RunDir, spec: RunSpec | None) -> Resumable | None:
    """Where training can go on; None without a checkpoint."""
    begun_with = spec.resume_from if spec else None
    for folder in [*folders_of(run, "last"), *([Path(begun_with)] if begun_with else [])]:
        if not (folder / STATE).exists():
            continue
        try:
            about = read_about(folder)
            is_away = WEIGHTS in about.checksums and not (folder / WEIGHTS).exists()
            is_whole = not is_away and damaged_file(folder, about) is None
        except (RingsideError, OSError):
            continue
        if not is_whole:
            continue  # Nobody can go on from it.
        own = folder.is_relative_to(run.path)
        path = str(folder.relative_to(run.path) if own else folder)
        name = run.name if own else RunDir(Path(about.run or "")).name
        return Resumable(
            Standing(path=path, epoch=about.epoch or 1, step=about.step or 0), name, own
        )
    return None


def advice(found: Resumable | None, cause: Finding, mark: Mark | None) -> str:
    """What to do now; `mark` is where the rank that failed stood.

    What a person has to mend is said first: started again as it is, the run would fail again.
    """
    bad_picture = cause.cause == "data" and mark is not None and mark.phase in READS_PICTURES
    if found is not None and not found.is_own and cause.cause in REFUSES_CHECKPOINT:
        return say("ended.mend")  # It was this checkpoint that could not be resumed from.
    if found is not None:
        key = "mend_file_and_resume" if bad_picture else "resume"
        return say(f"ended.{key}", run=found.run, step=found.standing.step)
    if bad_picture:
        return say("ended.mend_file")
    return say("ended.mend" if cause.mistake else "ended.no_checkpoint")


def last_collective(spec: RunSpec | None, traces: Traces) -> str | None:
    """What a rank came to last: as NCCL recorded it, else from the mark that is furthest on."""
    recorded = [error.last_collective for error in traces.errors if error.last_collective]
    if recorded or traces.nccl_timeout:
        return next(iter(recorded), traces.nccl_timeout)
    if spec is None or spec.num_processes == 1 or not traces.marks:
        return None
    return collective_at(max(traces.marks, key=lambda mark: mark.position), spec)


def collective_at(mark: Mark, spec: RunSpec) -> str | None:
    """The newest collective that a rank at `mark` has come to; None before the first."""
    if mark.activity == "exchange":
        where = place(mark).removeprefix("in the exchange ").removeprefix("in an exchange ")
        return say("ended.exchange", where=where)
    if mark.phase == "evaluate":
        what = "gathering" if spec.strategy == "fsdp" else "averaging_statistics"
        return say(f"ended.{what}", epoch=mark.epoch)
    if mark.phase not in ("compile", "train"):
        return None
    step = mark.step if _has_reduced(mark, spec) else mark.step - 1
    if spec.strategy == "local_sgd":
        # Counted from the first step of all, in a resumed run too (training.weight_averaging).
        step -= step % (spec.training.local_sgd_steps or 1)
        return say("ended.averaging_weights", step=step) if step > 0 else None
    return say("ended.reduction", step=step) if step > 0 else None


def _has_reduced(mark: Mark, spec: RunSpec) -> bool:
    """Whether the gradients of the step under way are being reduced, or have been."""
    last_batch = mark.batch >= spec.training.accumulation_steps
    return mark.activity in ("optimizer", "save") or (mark.activity == "backward" and last_batch)


def evidence_files(run: RunDir) -> Iterator[str]:
    """Files of the run directory that say more, relative to it; empty ones say nothing."""
    for pattern in EVIDENCE:
        for path in iter_files(run.ranks, pattern):
            if path.stat().st_size:
                yield str(path.relative_to(run.path))
