"""What a step's time is spent on, by taking one thing away at a time: differences, no heuristics.

With m = many, r = many_without_reduction, s = many_synthetic, b = both taken away, o = one:

communication  m - r   what the exchange of gradients adds to the step, waiting for late ranks
                       included; what is hidden behind computation is not in it
input          m - s   what images add: waiting for the loader, copies, and the cores that decoding
                       takes from training
contention     r - o   what a device's step takes longer because others work beside it. None of
                       them waits for another in r, and a device has as many images as in o; what is
                       left is shared (cores, memory, PCIe, disks, power), DDP's wrapper, and that
                       the slowest of several is slower than one. It is part of b and of the input
own work       b       the bare step of a device among the others
unexplained    m - b - communication - input. Above 0: each alone hides behind the other, and only
                       without both is the step so short. Below 0: they share time that either
                       would save

The middle of an arm is the median of its blocks, its spread the median distance of the blocks from
it, times 1.4826 (a standard deviation, were they normal; Rousseeuw & Croux 1993); the spread of a
sum is the root of the sum of squares. Where steps wait for images, these come in bursts: one block
then pays for what others use, so the middle is the mean, and the spread the standard deviation.
"""

from __future__ import annotations

import math
import statistics
from typing import Literal

import msgspec

from ringside.measurements.experiment import Arm, ArmName, Experiment
from ringside.words import say

MIN_BLOCKS = 3
WAITS_FROM = 0.05
"""Waiting for images counts from this share of the step on."""

_NORMAL = 1.4826

PartName = Literal["communication", "input", "contention", "unexplained"]
State = Literal["measured", "within_noise", "negative"]


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """A difference of arms in milliseconds of the step; signed, and never hidden.

    within_noise: not farther from 0 than `spread_ms`. negative: taking it away made the step
    slower by more than that, which no cost explains. `share_ratio`: of the step of `many`.
    """

    name: PartName
    ms: float
    spread_ms: float
    share_ratio: float
    state: State

    @property
    def shown_ms(self) -> float:
        """What a bar shows: 0 within noise and for a negative cost, which is then unexplained."""
        return self.ms if self.state == "measured" or self.name == "unexplained" else 0.0


class Attribution(msgspec.Struct, frozen=True, kw_only=True):
    """The parts of a step; None where an arm is missing or has fewer than three blocks.

    own_work_ms + the shown communication, input and unexplained = step_ms. `predicted_ms`: what
    taking both away would leave if both simply added up, against the measured `own_work_ms`;
    `prediction_error_ratio` = predicted / measured - 1. `efficiency_ratio`: one / many, at equal
    images per device. `missing`: arms without figures, each with its reason.
    """

    step_ms: float | None = None
    step_spread_ms: float | None = None
    own_work_ms: float | None = None
    communication: Part | None = None
    input: Part | None = None
    contention: Part | None = None
    unexplained: Part | None = None
    predicted_ms: float | None = None
    prediction_error_ratio: float | None = None
    efficiency_ratio: float | None = None
    missing: dict[ArmName, str] = {}

    @property
    def parts(self) -> tuple[Part, ...]:
        """Those that are known, in the order of the table above."""
        all_ = (self.communication, self.input, self.contention, self.unexplained)
        return tuple(part for part in all_ if part is not None)


class Figure(msgspec.Struct, frozen=True):
    """A middle and its spread in milliseconds; sums and differences carry both."""

    ms: float
    spread_ms: float

    def __sub__(self, other: Figure) -> Figure:
        return Figure(self.ms - other.ms, math.hypot(self.spread_ms, other.spread_ms))

    def __add__(self, other: Figure) -> Figure:
        return Figure(self.ms + other.ms, math.hypot(self.spread_ms, other.spread_ms))


def attribution(experiment: Experiment) -> Attribution:
    """Take the arms apart; see the module for what each difference means."""
    arms = {arm.name: arm for arm in experiment.arms}
    figures = {name: figure for name, arm in arms.items() if (figure := figure_of(arm))}
    missing = {name: why_missing(arm) for name, arm in arms.items() if name not in figures}
    many, one = figures.get("many"), figures.get("one")
    if many is None:
        return Attribution(missing=missing)
    apart, made_up = figures.get("many_without_reduction"), figures.get("many_synthetic")
    bare = figures.get("many_synthetic_without_reduction")
    communication = _part("communication", many - apart, many) if apart else None
    images = _part("input", many - made_up, many) if made_up else None
    predicted = (apart + made_up - many).ms if apart and made_up else None
    return Attribution(
        step_ms=many.ms,
        step_spread_ms=many.spread_ms,
        own_work_ms=bare.ms if bare else None,
        communication=communication,
        input=images,
        contention=_part("contention", apart - one, many) if apart and one else None,
        unexplained=_unexplained(many, bare, communication, images),
        predicted_ms=predicted,
        prediction_error_ratio=predicted / bare.ms - 1 if bare and predicted is not None else None,
        efficiency_ratio=one.ms / many.ms if one else None,
        missing=missing,
    )


def figure_of(arm: Arm) -> Figure | None:
    """The step of an arm; None of fewer than three blocks."""
    if len(arm.step_ms) < MIN_BLOCKS:
        return None
    mean = statistics.mean(arm.step_ms)
    if arm.data_ms is not None and arm.data_ms > WAITS_FROM * mean:
        return Figure(mean, statistics.stdev(arm.step_ms))
    middle = statistics.median(arm.step_ms)
    spread = statistics.median(abs(block - middle) for block in arm.step_ms)
    return Figure(middle, _NORMAL * spread)


def why_missing(arm: Arm) -> str:
    """Why an arm has no figure."""
    return arm.problem or say("bench.few_blocks", n=len(arm.step_ms), needed=MIN_BLOCKS)


def _part(name: PartName, figure: Figure, step: Figure) -> Part:
    state: State = "measured" if figure.ms > 0 else "negative"
    if abs(figure.ms) <= figure.spread_ms:
        state = "within_noise"
    return Part(
        name=name, ms=figure.ms, spread_ms=figure.spread_ms, state=state,
        share_ratio=figure.ms / step.ms,
    )  # fmt: skip


def _unexplained(
    many: Figure, bare: Figure | None, communication: Part | None, images: Part | None
) -> Part | None:
    """The rest of the step. What other parts do not show is in it, so that nothing is lost."""
    if bare is None or communication is None or images is None:
        return None
    rest = many.ms - bare.ms - communication.shown_ms - images.shown_ms
    spreads = (bare.spread_ms, communication.spread_ms, images.spread_ms)
    return _part("unexplained", Figure(rest, math.hypot(*spreads)), many)
