"""Lets a finished run correct the replay: of the same set-up, or of one with another knob."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from statistics import median

from ringside.estimate.links import Link
from ringside.estimate.steps import NotEstimated, Step, step_of
from ringside.estimate.work import Work, work_at
from ringside.measurements import Description, Sweep
from ringside.measurements.crowd import crowding_ratio
from ringside.run import RunRecord
from ringside.spec import RunSpec

RANGE = (0.2, 5.0)
EXPOSED_RATIO = 0.05
"""Where waiting for the link is less of the step than this, a difference is not the link's."""


@dataclass(frozen=True)
class Calibration:
    """How many times longer work and collectives take than measured alone; 1 is as measured.

    `run`: the name of the run that says so, empty where none does.
    """

    work_ratio: float = 1.0
    contention_ratio: float = 1.0
    run: str = ""


def measured_step_us(record: RunRecord) -> float | None:
    """The median step of a run's windows after the first epoch, without waiting for images.

    A run of one epoch gives its windows but for the first. None where there are none.
    """
    later = [window for window in record.windows if window.epoch > 1] or record.windows[1:]
    steps = [1000 * (window.step_ms - window.data_ms) for window in later]
    return median(steps) if steps else None


def calibrate(
    record: RunRecord, description: Description | None, sweep: Sweep | None
) -> Calibration | None:
    """What makes the replay of this run equal to its measured step.

    One number cannot tell work from link: where the replay waits for the link, the link takes the
    difference (contention), else the work. What the link cannot explain is the work's. None where
    the run has no steps or its replay needs something that was not measured.
    """
    step_us = measured_step_us(record)
    if record.spec is None or step_us is None:
        return None
    return calibrate_step(record.spec, step_us, description, sweep, record.name)


def calibrate_step(
    spec: RunSpec, step_us: float, description: Description | None, sweep: Sweep | None, run: str
) -> Calibration | None:
    """The same for a step that was measured in another way."""

    def replayed(calibration: Calibration) -> Step | None:
        return step_with(spec, description, sweep, calibration)

    plain = replayed(Calibration())
    if plain is None:
        return None
    found = Calibration(run=run)
    if plain.exposed_us > EXPOSED_RATIO * plain.step_us:

        def with_contention(ratio: float) -> float:
            step = replayed(replace(found, contention_ratio=ratio))
            return step.step_us if step else 0.0

        found = replace(found, contention_ratio=_solve(with_contention, step_us))

    def with_work(ratio: float) -> float:
        step = replayed(replace(found, work_ratio=ratio))
        return step.step_us if step else 0.0

    return replace(found, work_ratio=_solve(with_work, step_us))


def step_with(
    spec: RunSpec, description: Description | None, sweep: Sweep | None, calibration: Calibration
) -> Step | None:
    """The replay under a calibration; None where something is missing."""
    work = work_among(description, spec) if description else None
    if description is None or work is None:
        return None
    link = None
    if sweep is not None:
        ratio = calibration.contention_ratio
        link = Link(sweep, spec.num_processes, contention_ratio=ratio)
    try:
        return step_of(spec, description, work.scaled(calibration.work_ratio), link)
    except NotEstimated:
        return None


def work_among(description: Description, spec: RunSpec) -> Work | None:
    """The work at the request's batch, as long as it is among its other processes."""
    work = work_at(description, spec.micro_batch)
    ratio = crowding_ratio(description, spec.num_processes, spec.micro_batch)
    return work.crowded(ratio) if work is not None and ratio is not None else work


def _solve(step_us: Callable[[float], float], wanted_us: float) -> float:
    """The ratio in RANGE at which the growing function comes nearest to what is wanted."""
    low, high = RANGE
    for _ in range(50):
        middle = (low * high) ** 0.5
        if step_us(middle) < wanted_us:
            low = middle
        else:
            high = middle
    return float((low * high) ** 0.5)
