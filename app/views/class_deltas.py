"""What each class gained or lost against the reference, the largest loss first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from app.views import figures
from app.views.classes import Cell
from app.views.naming import short_name
from ringside.compare import ComparedClass, ComparedRun
from ringside.scores import MIN_COUNT, ClassMetric, Interval
from ringside.words import say

Mark = Literal["up", "down", ""]
METRICS: tuple[ClassMetric, ...] = ("auc", "f1", "average_precision")
COUNTS = ("true_positives", "false_positives", "false_negatives", "true_negatives")
COLUMNS = (
    "name", "support", "auc_delta", "f1_delta", "average_precision_delta", "tp", "fp", "fn", "tn",
)  # fmt: skip
CHANCE, CHANCE_OF_FEW, FEW = 0.05, 0.1, 50
"""What share of the intervals of equal models lies outside the noise.

More of AUC and AP where positives or negatives are below 50: see
`ringside.scores.by_class.MIN_COUNT`.
"""


@dataclass(frozen=True)
class DeltaCell:
    """A cell with a second line below it; `mark` tells a difference outside the noise."""

    cell: Cell
    under: str = ""
    mark: Mark = ""


@dataclass(frozen=True)
class ClassDeltas:
    """One run's classes against the reference's; without rows, `notes` say why."""

    run: str
    aside: str
    rows: tuple[tuple[DeltaCell, ...], ...]
    notes: tuple[str, ...]


def class_deltas(run: ComparedRun, reference: ComparedRun) -> ClassDeltas:
    """The table of a run that is not the reference itself."""
    names = {"run": short_name(run.id), "reference": short_name(reference.id)}
    aside = say("compare.classes_aside", **names)
    pairs = _pairs(run.classes, reference.classes)
    if not pairs or run.not_comparable:
        reason = "; ".join(run.not_comparable) or say("compare.no_such_classes")
        return ClassDeltas(
            names["run"], aside, (), (say("compare.classes_none", run=names["run"], reason=reason),)
        )
    rows = [_row(own, base) for own, base in sorted(pairs, key=lambda pair: _loss(pair[0]))]
    notes = [say("compare.classes_counts", counts=say("compare.at_threshold"), **names)]
    notes[:0] = _about_intervals([own for own, _ in pairs])
    return ClassDeltas(names["run"], aside, tuple(rows), tuple(notes))


def _about_intervals(classes: Sequence[ComparedClass]) -> Iterator[str]:
    """How many of the intervals shown lie outside by chance, and which classes have none."""
    shown = {
        metric: [one for one in classes if getattr(one, f"{metric}_interval")]
        for metric in METRICS
    }  # fmt: skip
    if not any(shown.values()):
        return
    expected = (
        say(
            "compare.classes_chance_of", metric=say(f"compare.class_{metric}_delta"), n=len(have),
            chance=f"{sum(_chance(one, metric) for one in have):.1f}",
        )
        for metric, have in shown.items() if have
    )  # fmt: skip
    yield say("compare.classes_by_chance", expected=", ".join(expected))
    if any(_rarer(one) < MIN_COUNT for one in classes):
        yield say("compare.classes_too_rare", least=MIN_COUNT)


def _chance(one: ComparedClass, metric: ClassMetric) -> float:
    return CHANCE_OF_FEW if metric != "f1" and _rarer(one) < FEW else CHANCE


def _rarer(one: ComparedClass) -> int:
    return min(one.support, one.false_positives + one.true_negatives)


def _pairs(
    own: Sequence[ComparedClass] | None, base: Sequence[ComparedClass] | None
) -> list[tuple[ComparedClass, ComparedClass]]:
    """The classes of both; empty unless they are the same ones."""
    own, base = own or (), base or ()
    if [one.name for one in own] != [one.name for one in base]:
        return []
    return list(zip(own, base, strict=True))


def _loss(one: ComparedClass) -> tuple[bool, float]:
    """Classes by their change of F1, then of AUC; those without any come last."""
    change = one.f1_delta if one.f1_delta is not None else one.auc_delta
    return (change is None, change or 0.0)


def _row(own: ComparedClass, base: ComparedClass) -> tuple[DeltaCell, ...]:
    deltas = (
        _delta(
            getattr(own, metric), getattr(own, f"{metric}_delta"),
            getattr(own, f"{metric}_interval"),
        )
        for metric in METRICS
    )  # fmt: skip
    counts = (
        DeltaCell(
            Cell(str(getattr(own, name)), float(getattr(own, name))), str(getattr(base, name))
        )
        for name in COUNTS
    )
    support = DeltaCell(Cell(str(own.support), float(own.support)))
    return (DeltaCell(Cell(own.name, own.name)), support, *deltas, *counts)


def _delta(value: float | None, delta: float | None, interval: Interval | None) -> DeltaCell:
    """The difference, and below it its interval, or without one the score itself."""
    cell = Cell(figures.delta(delta), delta)
    if delta is None:
        return DeltaCell(cell, figures.score(value) if value is not None else "")
    if interval is None:
        return DeltaCell(cell, figures.score(value))
    limits = f"{figures.delta(interval.low)} … {figures.delta(interval.high)}"
    mark: Mark = "down" if interval.high < 0 else "up" if interval.low > 0 else ""
    return DeltaCell(cell, limits, mark)
