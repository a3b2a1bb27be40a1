"""How like a request a calibrating run has to be, and what is said where it is less so."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ringside.estimate.calibration import Calibration
from ringside.estimate.steps import NotEstimated
from ringside.measurements.keys import fields_of_step, key_of_model
from ringside.spec import RunSpec
from ringside.words import say

DERIVED = ("global_batch", "num_processes", "gpu_ids", "threads_per_device")
"""What follows from the batch of a device, its micro-steps and the number of processes."""


def knobs_apart(a: RunSpec, b: RunSpec) -> list[str]:
    """The settings in which two requests of one model and as many processes differ.

    The strategy, with all that belongs to it, is one of them.
    """
    first, second = _knobs(a), _knobs(b)
    return [name for name in sorted(first | second) if first.get(name) != second.get(name)]


def _knobs(spec: RunSpec) -> dict[str, Any]:
    fields = {name: value for name, value in fields_of_step(spec).items() if name not in DERIVED}
    knobs: dict[str, Any] = {"batch": spec.micro_batch, "strategy": fields.pop("accelerate")}
    knobs |= fields.pop("training")
    knobs |= fields.pop("environment")
    return knobs | fields


def refuse_other_model(spec: RunSpec, calibration: Calibration) -> None:
    """NotEstimated where the calibrating run did another step: its ratios say nothing of this.

    So it is between FSDP and the others: what its units cost the host is no work of theirs.
    """
    own = calibration.spec
    if own is None:
        return
    is_sharded = [one.strategy == "fsdp" for one in (own, spec)]
    if key_of_model(own) != key_of_model(spec) or len(set(is_sharded)) > 1:
        raise NotEstimated(say("estimate.calibration_of_another", run=calibration.run))


def reservations(spec: RunSpec, calibration: Calibration) -> Iterator[str]:
    """Why a calibration is less sure than that of a run of which one knob was changed."""
    own = calibration.spec
    if own is None:
        return
    if own.num_processes != spec.num_processes:
        yield say(
            "estimate.calibration_processes",
            run=calibration.run, num=own.num_processes, wanted=spec.num_processes,
        )  # fmt: skip
    elif len(knobs := knobs_apart(own, spec)) > 1:
        yield say("estimate.calibration_knobs", run=calibration.run, knobs=", ".join(knobs))
