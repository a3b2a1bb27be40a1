"""Whether decoding on the GPU is among what to try where pictures come too slowly."""

from __future__ import annotations

from ringside.doctor.case import Case
from ringside.doctor.figures import spec_of
from ringside.run import RunRecord
from ringside.spec import RunSpec
from ringside.words import say


def decoding_to_try(case: Case) -> str:
    """One item of a list of things to try; empty where a GPU cannot help with pictures."""
    return say("doctor.decode_on_gpu") if may_decode_on_gpu(case) else ""


def may_decode_on_gpu(case: Case) -> bool:
    """True where there is a GPU and, as far as is known, it decoded no picture yet.

    `auto` that settled for the CPU had a reason: the GPU cannot, most pictures are no JPEG, or
    both were timed and the GPU was slower (`training.input.choice`). They were timed before
    training, on idle cores, so a run that goes slower than its GPU decoded then may still gain.
    """
    asked = spec.training.decoder if (spec := _timed_spec(case)) is not None else None
    used = _decoders(case)
    if not _has_gpu(case, spec) or "gpu" in (asked, *used):
        return False
    return asked != "auto" or "cpu" not in used or _goes_slower_than_the_gpu_decoded(case.record)


def _goes_slower_than_the_gpu_decoded(record: RunRecord | None) -> bool:
    if record is None or record.started is None or record.spec is None:
        return False
    decoded, trained = record.started.decode_rate_gpu, record.steady_samples_per_s
    if decoded is None or trained is None:
        return False
    return trained / record.spec.num_processes < decoded


def _timed_spec(case: Case) -> RunSpec | None:
    if (spec := spec_of(case)) is not None:
        return spec
    return case.experiment.spec if case.experiment is not None else None


def _has_gpu(case: Case, spec: RunSpec | None) -> bool:
    """What trained counts before what the machine has: a run may leave its GPUs alone."""
    if spec is not None:
        return spec.device == "cuda"
    if case.facts is not None:
        return not case.facts.pace.is_cpu_estimate
    return case.machine is not None and bool(case.machine.hardware.gpus)


def _decoders(case: Case) -> frozenset[str | None]:
    """What the run and the experiment decoded with; None where one did not say."""
    started = case.record.started if case.record is not None else None
    arms = case.experiment.arms if case.experiment is not None else ()
    own = (started.decoder,) if started is not None else ()
    return frozenset((*own, *(arm.decoder for arm in arms)))
