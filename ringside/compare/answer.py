"""Did the scores fall? One answer about two sides of one run or several seeds each.

Every macro score is tested for a loss, and so is every score of every class with enough positives;
both families under Holm's control at half of 5 %, so that two set-ups that differ in nothing but
chance are called worse in 5 % of cases at most. As in `gate`, a loss counts beyond the tolerance,
and scores have held when their whole 95 % interval lies above minus the tolerance: all three have
to, so that no correction is due (Berger 1982, Technometrics 24,
doi:10.1080/00401706.1982.10487790).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

from ringside.compare.by_class import last_classes
from ringside.compare.gate import MIN_IMAGES, MIN_IMAGES_WITHOUT_WIDTH, NO_WIDTH, TOLERANCE
from ringside.compare.multiple import holm
from ringside.compare.noise import CONFIDENCE, Noise, noise_of
from ringside.compare.power import Needed, needed
from ringside.compare.sides import Side
from ringside.predictions import Predictions
from ringside.scores import ClassMetric, Metric
from ringside.scores.crossed import Crossed, crossed_scores
from ringside.words import say

AnswerVerdict = Literal["worse", "same", "no_worse", "not_enough_data"]

ALPHA = (1 - CONFIDENCE) / 2
"""Of the loss in a family, one-sided."""

MIN_CLASS_COUNT = 20
"""Positives, and negatives, from which on a class is tested.

The resampled variance of a class with fewer is too small too often for the small p-values that
Holm's control asks for.
"""


class ScoreAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """A macro score: candidate minus reference, its 95 % limits, and the p-value of a loss.

    `p_adjusted` is one-sided, under Holm's control over the macro scores; None without any noise.
    """

    metric: Metric
    delta: float
    low: float
    high: float
    p_adjusted: float | None = None


class LostClass(msgspec.Struct, frozen=True, kw_only=True):
    """A class that lost beyond the noise; `p_adjusted` is over all `num_class_tests`."""

    name: str
    metric: ClassMetric
    support: int
    delta: float
    low: float
    high: float
    p_adjusted: float


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a candidate against the reference.

    `reference` and `candidate` are ids of runs. `is_paired`: both have the same seeds. `decisive`
    is the macro score that decided, or would have to; None where the classes did, and where
    `reason` says why nothing can be told. `needed` is what would tell.
    """

    verdict: AnswerVerdict
    reference: tuple[str, ...]
    candidate: tuple[str, ...]
    reference_seeds: tuple[int, ...]
    candidate_seeds: tuple[int, ...]
    is_paired: bool
    num_images: int
    tolerance: float = TOLERANCE
    decisive: Metric | None = None
    scores: tuple[ScoreAnswer, ...] = ()
    lost_classes: tuple[LostClass, ...] = ()
    num_class_tests: int = 0
    needed: Needed | None = None
    reason: str | None = None

    @property
    def bound(self) -> float | None:
        """No macro score lies further off than this, with 95 % confidence each."""
        limits = [max(abs(one.low), abs(one.high)) for one in self.scores]
        return max(limits, default=None)


def answer_of(reference: Side, candidate: Side, kept: Sequence[Predictions]) -> Answer:
    """The answer from the predictions of all runs of both sides, in their order.

    All of them are of the same images.
    """
    crossed = crossed_scores(
        [one.probabilities for one in kept], kept[0].targets,
        task=kept[0].task, num_trained=kept[0].num_trained,
    )  # fmt: skip
    return answer_from(crossed, reference, candidate, supports=_supports(kept[0]))


def answer_from(
    crossed: Crossed, reference: Side, candidate: Side, *, supports: Sequence[int]
) -> Answer:
    """The answer from scores; `supports` are the positives of every class."""
    paired, count = reference.seeds == candidate.seeds, len(reference.runs)
    found = {name: noise_of(one, count, paired=paired) for name, one in crossed.means.items()}
    noises = {name: noise for name, noise in found.items() if noise is not None}
    lost, num_tests = _lost_classes(crossed, reference, supports, paired=paired)
    known = Answer(
        verdict="not_enough_data",
        reference=tuple(run.id for run in reference.runs),
        candidate=tuple(run.id for run in candidate.runs),
        reference_seeds=reference.seeds,
        candidate_seeds=candidate.seeds,
        is_paired=paired,
        num_images=crossed.num_samples,
        scores=_scores(noises),
        num_class_tests=num_tests,
        reason=_no_evidence(noises, reference, candidate, crossed.num_samples),
    )
    if known.reason is not None:
        return known
    return _decided(msgspec.structs.replace(known, lost_classes=lost), noises)


def _supports(kept: Predictions) -> list[int]:
    counts: list[int] = kept.targets.sum(axis=0, dtype="int64").tolist()
    return counts


def _no_evidence(
    noises: dict[Metric, Noise], reference: Side, candidate: Side, num_images: int
) -> str | None:
    """Why nothing can be told, whatever the scores are."""
    sizes = len(reference.runs), len(candidate.runs)
    if min(sizes) == 1 < max(sizes):
        return say("gate.lone_seed", n=max(sizes))
    if not noises:
        return say("compare.no_scores")
    if num_images < MIN_IMAGES:
        return say("compare.few_images", n=num_images, least=MIN_IMAGES)
    is_still = any(noise.error <= NO_WIDTH for noise in noises.values())
    if is_still and num_images < MIN_IMAGES_WITHOUT_WIDTH:
        return say("compare.no_width", n=num_images, least=MIN_IMAGES_WITHOUT_WIDTH)
    return None


def _scores(noises: dict[Metric, Noise]) -> tuple[ScoreAnswer, ...]:
    p_values = {name: p for name, noise in noises.items() if (p := noise.p_worse) is not None}
    adjusted = dict(zip(p_values, holm(list(p_values.values())), strict=True))
    rows = []
    for name, noise in noises.items():
        low, high = noise.limits()
        rows.append(
            ScoreAnswer(
                metric=name, delta=noise.delta, low=low, high=high, p_adjusted=adjusted.get(name)
            )
        )
    return tuple(rows)


def _decided(known: Answer, noises: dict[Metric, Noise]) -> Answer:
    by_loss = sorted(known.scores, key=lambda one: one.delta)
    worse = [one for one in by_loss if _is_worse(one)]
    if worse or known.lost_classes:
        decisive = worse[0].metric if worse else None
        return msgspec.structs.replace(known, verdict="worse", decisive=decisive)
    open_ = [one for one in by_loss if one.low < -TOLERANCE]
    if open_:
        missing = [_missing(noises[one.metric], one, known) for one in open_]
        return msgspec.structs.replace(known, decisive=open_[0].metric, needed=_all(missing))
    is_same = all(one.high <= TOLERANCE for one in known.scores)
    return msgspec.structs.replace(
        known, verdict="same" if is_same else "no_worse", decisive=by_loss[0].metric
    )


def _is_worse(one: ScoreAnswer) -> bool:
    is_sure = one.high < 0 if one.p_adjusted is None else one.p_adjusted <= ALPHA
    return is_sure and one.delta < -TOLERANCE


def _missing(noise: Noise, one: ScoreAnswer, known: Answer) -> Needed:
    if one.delta < -TOLERANCE:  # To be called worse, as the first of several scores.
        return needed(noise, known.num_images, -one.delta, 2 * ALPHA / len(known.scores))
    return needed(noise, known.num_images, min(one.delta, 0.0) + TOLERANCE)


def _all(missing: Sequence[Needed]) -> Needed:
    """What would tell for each of these scores."""
    seeds, images = [one.seeds for one in missing], [one.images for one in missing]
    return Needed(
        seeds=None if None in seeds else max(n for n in seeds if n is not None),
        images=None if None in images else max(n for n in images if n is not None),
    )


def _lost_classes(
    crossed: Crossed, reference: Side, supports: Sequence[int], *, paired: bool
) -> tuple[tuple[LostClass, ...], int]:
    """The classes that lost, the largest loss first, and how many questions were asked."""
    asked: list[tuple[int, ClassMetric, Noise, float]] = []
    for (column, metric), scores in crossed.classes.items():
        rarer = min(supports[column], crossed.num_samples - supports[column])
        noise = noise_of(scores, len(reference.runs), paired=paired)
        if rarer < MIN_CLASS_COUNT or noise is None or (p := noise.p_worse) is None:
            continue
        asked.append((column, metric, noise, p))
    found = last_classes(reference.runs[0])
    names = [one.name for one in found.classes] if found else []
    adjusted = holm([p for *_, p in asked])
    lost = [
        LostClass(
            name=names[column] if column < len(names) else str(column),
            metric=metric, support=supports[column], delta=noise.delta,
            low=noise.limits()[0], high=noise.limits()[1], p_adjusted=p,
        )
        for (column, metric, noise, _), p in zip(asked, adjusted, strict=True)
        if p <= ALPHA and noise.delta < -TOLERANCE
    ]  # fmt: skip
    return tuple(sorted(lost, key=lambda one: one.delta)), len(asked)
