"""The scores of every class, of the last and of the best epoch, as cells that can be sorted."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from app.views import figures
from app.views.counts import label_scores
from ringside.class_scores import EpochClasses, read_class_scores, undefined_names, untrained_names
from ringside.run import RunRecord
from ringside.rundir import RunDir
from ringside.words import say

SCORES = ("auc", "average_precision", "f1")
COUNTS = ("true_positives", "false_positives", "false_negatives", "true_negatives")
TUNED = ("threshold_tuned", "f1_tuned")
COLUMNS = ("class", *SCORES, *COUNTS, *TUNED)


@dataclass(frozen=True)
class Cell:
    """What is read, and what it is sorted by; None (a dash) comes last."""

    text: str
    value: str | float | None


@dataclass(frozen=True)
class ClassTable:
    """One epoch: a line above, a row for each class, remarks below."""

    title: str
    rows: tuple[tuple[Cell, ...], ...]
    notes: tuple[str, ...]


def class_tables(record: RunRecord) -> tuple[ClassTable, ...]:
    """The last epoch, and the best one if it is another; empty before the first evaluation."""
    found = read_class_scores(RunDir(Path(record.path)))
    if found is None:
        return ()
    scores = label_scores(record.epochs)
    tables = [_table("last", found.last, (scores,) if scores else ())]
    if found.best is not None and found.best.epoch != found.last.epoch:
        tables.append(_table("best", found.best))
    return tuple(tables)


def table_title(kind: str, scored: EpochClasses) -> str:
    """Which epoch, how many images, and at which decision the counts are."""
    is_multi = scored.task == "multi_label"
    counts = say("classes.at", threshold=scored.threshold) if is_multi else say("classes.top")
    return say(f"classes.{kind}", epoch=scored.epoch, n=scored.num_evaluated, counts=counts)


def table_notes(scored: EpochClasses) -> tuple[str, ...]:
    """Which classes were left out, and what tuned thresholds are worth."""
    left_out = {"untrained": untrained_names(scored), "undefined": undefined_names(scored)}
    notes = [
        say(f"classes.{why}", names=", ".join(names)) for why, names in left_out.items() if names
    ]
    if scored.task == "multi_label":
        notes.append(say("classes.tuned_note"))
    return tuple(notes)


def _table(kind: str, scored: EpochClasses, notes: tuple[str, ...] = ()) -> ClassTable:
    rows = (
        (
            Cell(one.name, one.name),
            *(_score(getattr(one, name)) for name in SCORES),
            *(Cell(str(getattr(one, name)), float(getattr(one, name))) for name in COUNTS),
            *(_score(getattr(one, name)) for name in TUNED),
        )
        for one in scored.classes
    )
    return ClassTable(table_title(kind, scored), tuple(rows), (*notes, *table_notes(scored)))


def _score(value: float | None) -> Cell:
    return Cell(figures.score(value), value)
