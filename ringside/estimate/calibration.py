"""Lets a finished run correct the replay: of the same set-up, or of one with another knob."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from statistics import median

from ringside.estimate.links import Link
from ringside.estimate.steps import NotEstimated, Step, step_of
from ringside.estimate.work import Work, work_at
from ringside.events import without_starts
from ringside.measurements import Description, Sweep
from ringside.measurements.crowd import crowding_ratio
from ringside.run import RunRecord
from ringside.spec import RunSpec
from ringside.words import say

RANGE = (0.2, 5.0)
GAIN_RATIO = 0.05
"""Where a link that takes no time would save less of the step, a difference is not the link's."""

TOLERANCE = 0.001
"""How near a replay has to come to the measured step, relative to it."""


@dataclass(frozen=True)
class Calibration:
    """How many times longer work and collectives take than measured alone; 1 is as measured.

    `run`: the name of the run that says so, empty where none does; `spec`: what it trained.
    """

    work_ratio: float = 1.0
    contention_ratio: float = 1.0
    run: str = ""
    spec: RunSpec | None = None

    def work_ratio_among(self, num_processes: int) -> float:
        """What a run of several processes says of their work, it does not say of one alone."""
        is_of_one = self.spec is not None and self.spec.num_processes == 1
        return self.work_ratio if num_processes > 1 or is_of_one else 1.0


def measured_step_us(record: RunRecord) -> float | None:
    """The median step of a run's windows after the first epoch, without waiting for images.

    A run of one epoch gives its windows but for the first. A profiler slows what it records and
    what comes after it, so only the windows before count. None where there are none.
    """
    clean = record.clean_windows
    later = [window for window in clean if window.epoch > 1] or clean[1:]
    steps = [1000 * (window.step_ms - window.data_ms) for window in without_starts(later)]
    return median(steps) if steps else None


def calibrate(
    record: RunRecord, description: Description | None, sweep: Sweep | None
) -> Calibration:
    """What makes the replay of this run equal to its measured step.

    One number cannot tell work from link: where a faster link would shorten the replay, the link
    takes the difference (contention), else the work. What the link cannot explain is the work's.
    NotEstimated, in a sentence, where the run has no steps, its replay needs something that was not
    measured, or neither explains the difference.
    """
    step_us = measured_step_us(record)
    if record.spec is None or step_us is None:
        raise NotEstimated(say("estimate.calibration_unmeasured", run=record.name))
    return calibrate_step(record.spec, step_us, description, sweep, record.name)


def calibrate_step(
    spec: RunSpec, step_us: float, description: Description | None, sweep: Sweep | None, run: str
) -> Calibration:
    """The same for a step that was measured in another way."""

    def replayed(calibration: Calibration) -> Step:
        return step_with(spec, description, sweep, calibration)

    def solved(make: Callable[[float], Calibration]) -> Calibration | None:
        ratio = _solve(lambda ratio: replayed(make(ratio)).step_us, step_us)
        return None if ratio is None else make(ratio)

    def with_contention(ratio: float) -> Calibration:
        return Calibration(contention_ratio=ratio, run=run, spec=spec)

    def with_work(ratio: float) -> Calibration:
        return Calibration(work_ratio=ratio, run=run, spec=spec)

    plain = replayed(Calibration())
    found = solved(with_contention) if plain.gain_ratio > GAIN_RATIO else None
    found = found or solved(with_work)
    if found is not None:
        return found
    low, high = RANGE
    raise NotEstimated(
        say(
            "estimate.calibration_far",
            run=run, measured=step_us / 1000, replayed=plain.step_us / 1000, low=low, high=high,
        )
    )  # fmt: skip


def step_with(
    spec: RunSpec, description: Description | None, sweep: Sweep | None, calibration: Calibration
) -> Step:
    """The replay under a calibration; NotEstimated where something is missing."""
    work = work_with(spec, description, calibration)
    link = None
    if sweep is not None:
        ratio = calibration.contention_ratio
        link = Link(sweep, spec.num_processes, contention_ratio=ratio)
    assert description is not None
    return step_of(spec, description, work, link)


def work_with(spec: RunSpec, description: Description | None, calibration: Calibration) -> Work:
    """The work at the request's batch, among its other processes and as the calibration says."""
    if description is None:
        raise NotEstimated(say("estimate.no_description", model=spec.model))
    work = work_at(description, spec.micro_batch)
    if work is None:
        raise NotEstimated(no_batch(description, spec.micro_batch))
    crowding = crowding_ratio(description, spec.num_processes, spec.micro_batch)
    crowded = work if crowding is None else work.crowded(crowding)
    return crowded.scaled(calibration.work_ratio_among(spec.num_processes))


def no_batch(description: Description, batch: int) -> str:
    """The sentence for a batch that is too far from the measured ones."""
    batches = ", ".join(str(profile.batch) for profile in description.profiles)
    return say("estimate.no_batch", batch=batch, measured=batches)


def _solve(step_us: Callable[[float], float], wanted_us: float) -> float | None:
    """The ratio in RANGE at which the growing function is what is wanted; None where it is not."""
    low, high = RANGE
    for _ in range(50):
        middle = (low * high) ** 0.5
        if step_us(middle) < wanted_us:
            low = middle
        else:
            high = middle
    found = float((low * high) ** 0.5)
    return found if abs(step_us(found) / wanted_us - 1) <= TOLERANCE else None
