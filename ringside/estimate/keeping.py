"""Keeps the prediction with its run, so that it stands beside what was measured."""

from __future__ import annotations

from pathlib import Path

import msgspec

from ringside.data.discovery import count_training
from ringside.errors import RingsideError
from ringside.estimate.calibration import measured_step_us
from ringside.estimate.estimate import Estimate, Inputs, estimate
from ringside.hardware import Hardware
from ringside.measurements import Sweep
from ringside.measurements.store import Store
from ringside.run import RunRecord
from ringside.rundir import RunDir
from ringside.spec import RunSpec
from ringside.words import DEFAULT, speaking

MANY_SAMPLES = 2**40
FARTHEST_RANKS = 16
"""Of a sweep that stands in for another number of ranks."""


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """Prediction against measurement; `error_ratio` is (predicted - measured) / measured.

    Waiting for images is left out of the measured step, as it is of the prediction.
    """

    predicted_step_ms: float | None
    step_ms: float | None
    error_ratio: float | None
    predicted_memory_bytes: int | None
    memory_bytes: int | None
    memory_error_ratio: float | None


def inputs_for(
    spec: RunSpec, hardware: Hardware, root: Path, *,
    data_rate_per_s: float | None = None, is_hurried: bool = False,
) -> Inputs:  # fmt: skip
    """What the store beside the runs of `root` holds for this request on this machine.

    `is_hurried`: data that take longer than a moment are not counted.
    """
    store = Store(root)
    sweep = nearest_sweep(store, spec, hardware) if spec.num_processes > 1 else None
    return Inputs(
        description=store.description(spec, gpu_name(spec, hardware), hardware=hardware),
        sweep=sweep,
        num_samples=num_samples_of(spec, is_hurried=is_hurried),
        data_rate_per_s=data_rate_per_s,
    )


def nearest_sweep(store: Store, spec: RunSpec, hardware: Hardware) -> Sweep | None:
    """The latest sweep of as many ranks under the request's variables, else of the nearest number.

    Between equally near ones that of more ranks: its slowest pair is more likely to be among those
    that train.
    """
    wanted = spec.num_processes
    devices = len(hardware.gpus) or hardware.num_cores
    counts = range(2, min(max(devices, wanted), wanted + FARTHEST_RANKS) + 1)
    for count in sorted(counts, key=lambda count: (abs(count - wanted), -count)):
        if (found := store.sweep(hardware, count, spec.environment)) is not None:
            return found
    return None


def num_samples_of(spec: RunSpec, *, is_hurried: bool = False) -> int | None:
    """Training images; None where the source cannot count them, or not at once."""
    # A source may leave the counting at four times of what is asked for.
    return count_training(spec.data, spec.global_batch if is_hurried else MANY_SAMPLES)


@speaking(DEFAULT)  # as all files of runs
def store_estimate(run: RunDir, spec: RunSpec, hardware: Hardware, root: Path) -> Estimate | None:
    """Write `estimate.json` of a run that is being started; None where nothing can be predicted.

    A prediction is an extra: whatever goes wrong with it, the run goes on.
    """
    try:
        found = estimate(spec, inputs_for(spec, hardware, root, is_hurried=True))
        if found.step_ms is None:
            return None
        run.write(run.estimate, found)
    except (RingsideError, OSError, ValueError, ArithmeticError, LookupError):
        return None
    return found


def outcome_of(record: RunRecord) -> Outcome | None:
    """The stored prediction of a run beside its measurement; None where none was stored."""
    run = RunDir(Path(record.path))
    found = run.read(run.estimate, Estimate)
    if found is None:
        return None
    step_us = measured_step_us(record)
    step_ms = None if step_us is None else step_us / 1000
    peaks = [w.memory_bytes for w in record.windows if w.memory_bytes is not None]
    memory = max(peaks, default=None)
    return Outcome(
        predicted_step_ms=found.step_ms,
        step_ms=step_ms,
        error_ratio=_error(found.step_ms, step_ms),
        predicted_memory_bytes=found.memory_bytes,
        memory_bytes=memory,
        memory_error_ratio=_error(found.memory_bytes, memory),
    )


def _error(predicted: float | None, measured: float | None) -> float | None:
    return None if predicted is None or not measured else predicted / measured - 1


def gpu_name(spec: RunSpec, hardware: Hardware) -> str | None:
    """The name of the GPU that trains; on a CPU the key of the model is all there is."""
    named = {gpu.index: gpu.name for gpu in hardware.gpus}
    return next((named[index] for index in spec.gpu_ids if index in named), None)
