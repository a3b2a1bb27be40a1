"""Every class of a run, and what it gained or lost against the reference."""

from __future__ import annotations

from pathlib import Path

import msgspec

from ringside.class_scores import EpochClasses, read_class_scores
from ringside.run import RunRecord
from ringside.rundir import RunDir
from ringside.scores import ClassMetric, ClassScores, Differences, Interval


class ComparedClass(msgspec.Struct, frozen=True, kw_only=True):
    """One class: this run's scores and counts at the common threshold, and the differences.

    A difference is this run's minus the reference's, with its 95 % interval. Each interval stands
    for its class alone: of many classes some 5 % are outside by chance, of AUC and AP up to 10 %
    where positives or negatives are few; below `ringside.scores.MIN_COUNT` these have none.
    """

    name: str
    support: int
    auc: float | None
    f1: float | None
    average_precision: float | None
    true_positives: int
    false_positives: int
    false_negatives: int
    true_negatives: int
    auc_delta: float | None = None
    f1_delta: float | None = None
    average_precision_delta: float | None = None
    auc_interval: Interval | None = None
    f1_interval: Interval | None = None
    average_precision_interval: Interval | None = None


def last_classes(record: RunRecord) -> EpochClasses | None:
    """All classes after the last evaluation; None before the first."""
    found = read_class_scores(RunDir(Path(record.path)))
    return found.last if found else None


def compared_classes(
    own: EpochClasses | None, base: EpochClasses | None, found: Differences | None
) -> tuple[ComparedClass, ...] | None:
    """The classes of a run in the order of the data; with `base`, their differences from it.

    `found` holds the intervals; None where nobody kept predictions.
    """
    if own is None:
        return None
    same = base is not None and _names(base) == _names(own) and base.threshold == own.threshold
    bases = base.classes if base is not None and same else (None,) * len(own.classes)
    known = found.classes if found is not None and same else ()
    intervals = known if len(known) == len(own.classes) else ({},) * len(own.classes)
    return tuple(
        _compared(one, other, **{f"{metric}_interval": value for metric, value in each.items()})
        for one, other, each in zip(own.classes, bases, intervals, strict=True)
    )


def _names(classes: EpochClasses) -> list[str]:
    return [one.name for one in classes.classes]


def _compared(
    own: ClassScores, base: ClassScores | None, **intervals: Interval | None
) -> ComparedClass:
    return ComparedClass(
        name=own.name,
        support=own.support,
        auc=own.auc,
        f1=own.f1,
        average_precision=own.average_precision,
        true_positives=own.true_positives,
        false_positives=own.false_positives,
        false_negatives=own.false_negatives,
        true_negatives=own.true_negatives,
        auc_delta=_minus(own, base, "auc"),
        f1_delta=_minus(own, base, "f1"),
        average_precision_delta=_minus(own, base, "average_precision"),
        **intervals,
    )


def _minus(own: ClassScores, base: ClassScores | None, metric: ClassMetric) -> float | None:
    x, y = getattr(own, metric), getattr(base, metric, None)
    return None if x is None or y is None else float(x - y)
