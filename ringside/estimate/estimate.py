"""Predicts a run: step, epoch, speed-up and memory, with what the prediction rests on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import msgspec

from ringside.estimate.calibration import Calibration, no_batch, step_with, work_with
from ringside.estimate.likeness import refuse_other_model, reservations
from ringside.estimate.memory import memory_parts, peaks
from ringside.estimate.steps import NotEstimated, Step, refuse_unmodelled
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

HIDDEN_RATIO = 0.05
"""From this share of the step on it is said that waiting for the link is not all to be won."""


class Estimate(msgspec.Struct, frozen=True, kw_only=True):
    """A prediction; a figure is None where `missing` says what would have to be measured.

    `step_ms` is an optimizer step and lies between `step_ms_low` and `step_ms_high`.
    `speedup`: images/s against one device at the same precision and per-device batch.
    `exposed_ratio`: share of the step in which the device only waits for communication;
    `gain_ratio`: what of the step a link that takes no time would save, which is less where the
    host sets the pace.
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
    gain_ratio: float | None = None
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
    calibration = inputs.calibration or Calibration()
    try:
        refuse_unmodelled(spec)
        refuse_other_model(spec, calibration)
        work = work_with(spec, inputs.description, calibration)
        step = step_with(spec, inputs.description, inputs.sweep, calibration)
    except NotEstimated as reason:
        missing = dict.fromkeys((str(reason), *nothing.missing))
        return msgspec.structs.replace(nothing, missing=tuple(missing))
    return _with_step(nothing, spec, inputs, work, step)


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
        gain_ratio=max(0.0, 1 - max(data_us, step.linkless_us) / step_us),
        num_bytes=step.num_bytes,
        parts=_parts(spec, work, step, data_us),
        confidence=confidence,
        missing=missing,
        notes=tuple(_notes(spec, inputs, work, step, data_us)),
    )


def _alone_per_s(spec: RunSpec, inputs: Inputs) -> float:
    """Images a second of one device that has the machine, its loaders included, to itself."""
    assert inputs.description is not None
    work = work_at(inputs.description, spec.micro_batch)
    assert work is not None
    ratio = inputs.calibration.work_ratio_among(1) if inputs.calibration else 1.0
    alone_per_s = 1e6 * work.batch / work.scaled(ratio).step_us
    return min(alone_per_s, inputs.data_rate_per_s or alone_per_s)


def _with_memory(found: Estimate, spec: RunSpec, inputs: Inputs) -> Estimate:
    if inputs.description is None or spec.strategy in ("data_parallel", "model_parallel"):
        return found
    parts = memory_parts(spec, inputs.description)
    if parts is None:
        is_far = len(peaks(inputs.description)) > 1
        batch = spec.micro_batch
        reason = no_batch(inputs.description, batch) if is_far else say("estimate.no_memory")
        return msgspec.structs.replace(found, missing=(reason,))
    return msgspec.structs.replace(found, memory_parts=parts, memory_bytes=sum(parts.values()))


def _calibration(spec: RunSpec, inputs: Inputs) -> Calibration | None:
    """None where the calibrating run says nothing of this request: of one alone among several."""
    found = inputs.calibration
    if found and found.spec and spec.num_processes == 1 < found.spec.num_processes:
        return None
    return found


def _is_crowd_unknown(spec: RunSpec, inputs: Inputs) -> bool:
    """Whether nothing says what the processes cost each other: no probe, and no run of several."""
    """What the ratios of a run say of it, they say of that run's batch and link together."""
    if inputs.description is None:
        return False
    num, batch = spec.num_processes, spec.micro_batch
    return crowding_ratio(inputs.description, num, batch) is None


def _confidence(spec: RunSpec, inputs: Inputs, work: Work, step: Step) -> Confidence:
    """High where a run with one other knob calibrates it; low beyond what was measured."""
    is_guess = work.is_host_bound and not work.is_device_known and step.exposed_us > 0
    is_guess = is_guess or _is_crowd_unknown(spec, inputs)
    if step.is_rough or step.is_extrapolated or work.is_extrapolated or is_guess:
        return "low"
    if (calibration := _calibration(spec, inputs)) is None:
        return "high" if step.communication_us == 0 else "medium"
    is_unsure = calibration.spec is None or any(reservations(spec, calibration))
    return "medium" if is_unsure else "high"


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
    exposed_ratio = step.exposed_us / step.step_us
    if work.is_host_bound and exposed_ratio > step.gain_ratio + HIDDEN_RATIO:
        notes.append(say("estimate.host_hides", exposed=exposed_ratio, gain=step.gain_ratio))
    if work.is_host_bound and not work.is_device_known and step.exposed_us > 0:
        notes.append(say("estimate.host_unknown", batch=work.batch))
    if _is_crowd_unknown(spec, inputs):
        notes.append(say("estimate.crowd_unknown", n=spec.num_processes))
    if step.is_extrapolated or work.is_extrapolated:
        notes.append(say("estimate.extrapolated"))
    if step.is_rough:
        notes.append(say("estimate.rough"))
    return [*notes, *_notes_of_calibration(spec, inputs)]


def _notes_of_calibration(spec: RunSpec, inputs: Inputs) -> Iterator[str]:
    if calibration := _calibration(spec, inputs):
        if calibration.run:
            yield say("estimate.calibrated", run=calibration.run)
        yield from reservations(spec, calibration)
    elif inputs.calibration:
        yield say("estimate.calibration_several", run=inputs.calibration.run)
