"""`scores/classes.json` of a run: every class of the last and of the best evaluated epoch."""

from __future__ import annotations

import msgspec

from ringside.rundir import RunDir
from ringside.scores import ClassScores, Task
from ringside.spec import FORMAT


class EpochClasses(msgspec.Struct, frozen=True, kw_only=True):
    """All classes after one epoch; the counts are at `threshold` (single-label: of the top class).

    `num_evaluated` is the size of the validation split, on which tuned thresholds were chosen too.
    """

    epoch: int
    task: Task
    num_evaluated: int
    threshold: float
    classes: tuple[ClassScores, ...]


class ClassTables(msgspec.Struct, frozen=True, kw_only=True):
    """The content of the file; `best` is the epoch of the best checkpoint, None without one."""

    format: int = FORMAT
    last: EpochClasses
    best: EpochClasses | None = None


def untrained_names(scored: EpochClasses) -> list[str]:
    """Classes without a positive in training: they have no score."""
    return [one.name for one in scored.classes if one.is_untrained]


def undefined_names(scored: EpochClasses) -> list[str]:
    """Trained classes without a positive or without a negative in validation: no AUC."""
    return [one.name for one in scored.classes if one.auc is None and not one.is_untrained]


def epoch_classes(tables: ClassTables | None, epoch: int) -> EpochClasses | None:
    """The classes after this epoch; None where the file has only others."""
    kept = (tables.last, tables.best) if tables else ()
    return next((one for one in kept if one is not None and one.epoch == epoch), None)


def write_class_scores(run: RunDir, tables: ClassTables) -> None:
    """Replace the file, whole or not at all; RunDirError when that fails."""
    run.class_scores.parent.mkdir(exist_ok=True)
    run.write(run.class_scores, tables)


def read_class_scores(run: RunDir) -> ClassTables | None:
    """The tables; None before the first evaluation, or when the file is damaged or newer."""
    found = run.read(run.class_scores, ClassTables)
    return found if found is not None and found.format <= FORMAT else None
