"""The requests that an experiment and a description really launch."""

from __future__ import annotations

import msgspec

from ringside.measurements.experiment import ArmName
from ringside.spec import RunSpec
from ringside.speedup import baseline_of


def one_device(spec: RunSpec) -> RunSpec:
    """The same step in one process: the device's own images, micro-steps, layout and variables."""
    replace, one = msgspec.structs.replace, baseline_of(spec)
    micro_steps = spec.num_micro_steps
    training = replace(one.training, accumulation_steps=micro_steps)
    return replace(
        one,
        training=training,
        environment=spec.environment,
        global_batch=spec.micro_batch * micro_steps,
    )


def at_batch(spec: RunSpec, batch: int) -> RunSpec:
    """One process with `batch` images in one micro-step."""
    replace, one = msgspec.structs.replace, one_device(spec)
    return replace(one, training=replace(one.training, accumulation_steps=1), global_batch=batch)


def spec_of_arm(spec: RunSpec, name: ArmName) -> RunSpec:
    """What an arm trains: the request, or its step on one device. Nothing is taken up or kept."""
    chosen = one_device(spec) if name == "one" else spec
    return msgspec.structs.replace(
        chosen, resume_from=None, weights=None, request_id=None, profile_steps=0
    )
