"""Predicts a run: step, epoch, speed-up and memory, with what the prediction rests on."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from ringside.estimate.calibration import Calibration, work_among
from ringside.estimate.links import Link
from ringside.estimate.memory import memory_parts
from ringside.estimate.steps import NotEstimated, Step, step_of
from ringside.estimate.work import Work, work_at
from ringside.measurements import Description, Sweep
from ringside.measurements.crowd import crowding_ratio
from ringside.spec import RunSpec
from ringside.trace.findings import Confidence
from ringside.words import say

UNSURE_RATIO: dict[Confidence, float] = {
    "high": 0.05, "medium": 0.10, "low": 0.25, "not enough data": 0.0,
}  # fmt: skip
"""How far a step may be off beside the spread of what was measured: the bars that
`benchmarks/estimate.py` checks for a calibrated replay and for one device plus a sweep, and a guess
for what goes beyond."""


class Estimate(msgspec.Struct, frozen=True, kw_only=True):
    """A prediction; a figure is None where `missing` says what would have to be measured.

    `step_ms` is an optimizer step and lies between `step_ms_low` and `step_ms_high`.
    `speedup`: images/s against one device at the same precision and per-device batch.
    `exposed_ratio`: share of the step in which the device only waits for communication.
    `parts`: device milliseconds of a step (`forward_ms`, `backward_ms`, `optimizer_ms`,
    `communication_ms`, `exposed_ms`) and the host's (`launch_ms`); they run side by side.
    `memory_parts`: bytes of a device. `notes`: what was taken for granted.
    """

    format: int = 1
    preset: str
    num_devices: int
    micro_batch: int
    global_batch: int
    step_ms: float | None = None
    step_ms_low: float | None = None
    step_ms_high: float | None = None
    epoch_time_s: float | None = None
    samples_per_s: float | None = None
    speedup: float | None = None
    memory_bytes: int | None = None
    exposed_ratio: float | None = None
    num_bytes: int | None = None
    parts: dict[str, float] = {}
    memory_parts: dict[str, int] = {}
    confidence: Confidence = "not enough data"
    missing: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Inputs:
    """What was measured here; each part is None where it was not.

    `num_samples`: training images. `data_rate_per_s`: images that the loaders of all ranks give a
    second.
    """

    description: Description | None = None
    sweep: Sweep | None = None
    num_samples: int | None = None
    data_rate_per_s: float | None = None
    calibration: Calibration | None = None


def estimate(spec: RunSpec, inputs: Inputs) -> Estimate:
    """The prediction for one request."""
    nothing = Estimate(
        preset=spec.preset,
        num_devices=spec.num_devices,
        micro_batch=spec.micro_batch,
        global_batch=spec.global_batch,
    )
    nothing = _with_memory(nothing, spec, inputs)
    try:
        work = _work(spec, inputs)
        step = _step(spec, inputs, work)
    except NotEstimated as reason:
        return msgspec.structs.replace(nothing, missing=(str(reason), *nothing.missing))
    return _with_step(nothing, spec, inputs, work, step)


def _work(spec: RunSpec, inputs: Inputs) -> Work:
    if inputs.description is None:
        raise NotEstimated(say("estimate.no_description", model=spec.model))
    work = work_among(inputs.description, spec)
    if work is None:
        batches = ", ".join(str(profile.batch) for profile in inputs.description.profiles)
        raise NotEstimated(say("estimate.no_batch", batch=spec.micro_batch, measured=batches))
    return work.scaled(inputs.calibration.work_ratio) if inputs.calibration else work


def _step(spec: RunSpec, inputs: Inputs, work: Work) -> Step:
    link = None
    if inputs.sweep is not None:
        ratio = inputs.calibration.contention_ratio if inputs.calibration else 1.0
        link = Link(inputs.sweep, spec.num_processes, contention_ratio=ratio)
    assert inputs.description is not None
    return step_of(spec, inputs.description, work, link)


def _with_step(found: Estimate, spec: RunSpec, inputs: Inputs, work: Work, step: Step) -> Estimate:
    step_us = step.step_us
    rate = inputs.data_rate_per_s
    data_us = 1e6 * spec.global_batch / rate if rate else 0.0
    confidence = _confidence(spec, inputs, work, step)
    # Slower than the images come, nothing that devices do matters.
    low_us, high_us = (max(data_us, us) for us in _range(step_us, work, step, confidence))
    step_us = max(step_us, data_us)
    num_steps = inputs.num_samples // spec.global_batch if inputs.num_samples else None
    samples_per_s = 1e6 * spec.global_batch / step_us
    alone_per_s = _alone_per_s(spec, inputs)
    missing = found.missing if num_steps else (*found.missing, say("estimate.no_epoch"))
    return msgspec.structs.replace(
        found,
        step_ms=step_us / 1000,
        step_ms_low=low_us / 1000,
        step_ms_high=high_us / 1000,
        epoch_time_s=num_steps * step_us / 1e6 if num_steps else None,
        samples_per_s=samples_per_s,
        speedup=samples_per_s / alone_per_s,
        exposed_ratio=min(1.0, step.exposed_us / step_us),
        num_bytes=step.num_bytes,
        parts=_parts(spec, work, step, data_us),
        confidence=confidence,
        missing=missing,
        notes=tuple(_notes(spec, inputs, work, step, data_us)),
    )


def _alone_per_s(spec: RunSpec, inputs: Inputs) -> float:
    """Images a second of one device that has the machine to itself."""
    assert inputs.description is not None
    work = work_at(inputs.description, spec.micro_batch)
    assert work is not None
    ratio = inputs.calibration.work_ratio if inputs.calibration else 1.0
    return 1e6 * work.batch / work.scaled(ratio).step_us


def _with_memory(found: Estimate, spec: RunSpec, inputs: Inputs) -> Estimate:
    if inputs.description is None or spec.strategy in ("data_parallel", "model_parallel"):
        return found
    parts = memory_parts(spec, inputs.description)
    if parts is None:
        return msgspec.structs.replace(found, missing=(say("estimate.no_memory"),))
    return msgspec.structs.replace(found, memory_parts=parts, memory_bytes=sum(parts.values()))


def _is_crowd_unknown(spec: RunSpec, inputs: Inputs) -> bool:
    """Whether nothing says what the processes cost each other: no probe, and no run of several."""
    if inputs.description is None or inputs.calibration is not None:
        return False
    num, batch = spec.num_processes, spec.micro_batch
    return crowding_ratio(inputs.description, num, batch) is None


def _confidence(spec: RunSpec, inputs: Inputs, work: Work, step: Step) -> Confidence:
    """High where a run calibrates it; low where it goes beyond what was measured."""
    is_guess = work.is_host_bound and not work.is_device_known and step.exposed_us > 0
    is_guess = is_guess or _is_crowd_unknown(spec, inputs)
    if step.is_rough or step.is_extrapolated or work.is_extrapolated or is_guess:
        return "low"
    return "high" if inputs.calibration or step.communication_us == 0 else "medium"


def _range(step_us: float, work: Work, step: Step, confidence: Confidence) -> tuple[float, float]:
    spread_ratio = UNSURE_RATIO[confidence] + work.spread_ratio
    return step_us * (1 - spread_ratio), step_us * (1 + spread_ratio) + step.communication_spread_us


def _parts(spec: RunSpec, work: Work, step: Step, data_us: float) -> dict[str, float]:
    micro_steps = spec.training.accumulation_steps
    parts = {
        "forward_ms": work.forward_us * micro_steps,
        "backward_ms": work.backward_us * micro_steps,
        "optimizer_ms": work.optimizer_us,
        "launch_ms": work.launch_us * micro_steps,
        "communication_ms": step.communication_us,
        "exposed_ms": step.exposed_us,
    }
    if data_us:
        parts["data_ms"] = data_us
    return {name: us / 1000 for name, us in parts.items()}


def _notes(spec: RunSpec, inputs: Inputs, work: Work, step: Step, data_us: float) -> list[str]:
    notes = []
    if inputs.data_rate_per_s is None:
        notes.append(say("estimate.without_data"))
    elif data_us > step.step_us:
        notes.append(say("estimate.data_bound", rate=inputs.data_rate_per_s))
    if work.is_host_bound and not work.is_device_known and step.exposed_us > 0:
        notes.append(say("estimate.host_unknown", batch=work.batch))
    if _is_crowd_unknown(spec, inputs):
        notes.append(say("estimate.crowd_unknown", n=spec.num_processes))
    if step.is_extrapolated or work.is_extrapolated:
        notes.append(say("estimate.extrapolated"))
    if step.is_rough:
        notes.append(say("estimate.rough"))
    if inputs.calibration and inputs.calibration.run:
        notes.append(say("estimate.calibrated", run=inputs.calibration.run))
    return notes
