"""What was not measured, each with the command that would measure it."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from ringside.doctor.applying import estimate_command, request_command
from ringside.doctor.case import Case
from ringside.spec import DEFAULT_PROFILE_STEPS
from ringside.speedup import baseline_of
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
        profiled = msgspec.structs.replace(record.spec, profile_steps=DEFAULT_PROFILE_STEPS)
        yield say("doctor.missing_trace", run=record.name, command=request_command(profiled))
    if is_several and case.baseline is None:
        command = request_command(baseline_of(record.spec))
        yield say("doctor.missing_baseline", command=command)
    if is_several and case.experiment is None:
        yield say("doctor.missing_experiment", run=record.name)
    if case.description is None:
        yield say("doctor.missing_description", command=estimate_command(record.spec))
    if is_several and case.sweep is None:
        yield say("doctor.missing_sweep")
    if is_several and case.nccl is None and record.spec.device == "cuda":
        yield say("doctor.missing_nccl")


def _of_the_ranks(case: Case) -> Iterator[str]:
    """Traces that are not there, and a log where there are only traces."""
    if case.facts is None:
        return
    world, num = case.facts.pace.world_size or 1, len(case.facts.ranks)
    if num < world:
        yield say("doctor.missing_ranks", num=num, world=world)
    if case.record is None and case.nccl is None and world > 1:
        yield say("doctor.missing_nccl")
