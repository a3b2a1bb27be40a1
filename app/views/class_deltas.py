"""What each class gained or lost against the reference, the largest loss first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from app.views import figures
from app.views.classes import Cell
from app.views.naming import short_name
from ringside.compare import ComparedClass, ComparedRun
from ringside.scores import Interval
from ringside.words import say

Mark = Literal["up", "down", ""]
METRICS = ("auc", "f1", "average_precision")
COUNTS = ("true_positives", "false_positives", "false_negatives", "true_negatives")
COLUMNS = (
    "name", "support", "auc_delta", "f1_delta", "average_precision_delta", "tp", "fp", "fn", "tn",
)  # fmt: skip
CHANCE = 0.05


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
    if any(own.f1_interval or own.auc_interval for own, _ in pairs):
        chance = f"{CHANCE * len(pairs):.0f}" if len(pairs) >= 20 else f"{CHANCE * len(pairs):.1f}"
        notes.insert(0, say("compare.classes_by_chance", n=len(pairs), chance=chance))
    return ClassDeltas(names["run"], aside, tuple(rows), tuple(notes))


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
