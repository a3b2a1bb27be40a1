"""What was not measured, each with the command that would measure it."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from ringside.doctor.case import Case
from ringside.spec import RunSpec
from ringside.words import say


def missing_of(case: Case) -> tuple[str, ...]:
    """A sentence each, what helps most first; for files alone only what concerns them."""
    return (*case.problems, *_of_the_run(case), *_of_the_ranks(case))


def _of_the_run(case: Case) -> Iterator[str]:
    record = case.record
    if record is None or record.spec is None:
        return
    is_several = record.spec.num_devices > 1
    if case.facts is None:
        yield say("doctor.missing_trace", run=record.name)
    if is_several and case.baseline is None:
        yield say("doctor.missing_baseline")
    if is_several and case.experiment is None:
        yield say("doctor.missing_experiment", run=record.name)
    if case.description is None:
        yield say("doctor.missing_description", command=_estimate(record.spec))
    if is_several and case.sweep is None:
        yield say("doctor.missing_sweep")
    if is_several and case.nccl is None and record.spec.device == "cuda":
        yield say("doctor.missing_nccl")


def _estimate(spec: RunSpec) -> str:
    """The estimate of the same model on the same data."""
    words = [f"--model={spec.model}", f"--data={spec.data.label}", "--measure"]
    return shlex.join(["ringside", "estimate", spec.preset, *words])


def _of_the_ranks(case: Case) -> Iterator[str]:
    """Traces that are not there, and a log where there are only traces."""
    if case.facts is None:
        return
    world, num = case.facts.pace.world_size or 1, len(case.facts.ranks)
    if num < world:
        yield say("doctor.missing_ranks", num=num, world=world)
    if case.record is None and case.nccl is None and world > 1:
        yield say("doctor.missing_nccl")
