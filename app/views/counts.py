"""What a run counted, in sentences: images left out, collectives, skipped steps, label scores."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from app.views import figures
from ringside.class_scores import EpochClasses, epoch_classes, read_class_scores
from ringside.run import EpochRow, RunRecord
from ringside.rundir import RunDir
from ringside.words import catalogue, say, say_few
from ringside.words.retelling import retold

EARLY_STOP = "early-stop"
ClassScore = Literal["average_precision", "f1"]
MEANS: tuple[tuple[ClassScore, str], ...] = (("f1", "f1_macro"), ("average_precision", "map_macro"))
"""Scores of a class, and the means over the classes that have them."""


def count_lines(record: RunRecord) -> list[str]:
    """Images that fill no step, collectives of a step, and steps that the loss scaler skipped."""
    means = (*_coverage(record), *_other_means(record))
    return [*means, *left_out_lines(record), *_collectives(record), *_skipped(record)]


def epoch_lines(record: RunRecord) -> tuple[str, ...]:
    """What belongs below the epochs: which images and steps are not in them, why they ended."""
    stops = [retold(warning.message) for warning in record.warnings if warning.code == EARLY_STOP]
    means = (*_coverage(record), *_other_means(record))
    counted = (*left_out_lines(record), *_skipped(record), *_averaged(record))
    return (*means, *counted, *stops)


def step_lines(record: RunRecord) -> tuple[str, ...]:
    """What belongs below the bar of a step: who decodes, and how often the processes talk."""
    return (*_decoding(record), *_collectives(record))


def label_scores(epochs: list[EpochRow]) -> str | None:
    """What only a task with several labels has, of the last evaluated epoch."""
    row = next((row for row in reversed(epochs) if row.hamming_loss is not None), None)
    if row is None:
        return None
    return say(
        "run.label_scores",
        epoch=row.epoch,
        hamming=figures.DASH if row.hamming_loss is None else f"{row.hamming_loss:.4f}",
        # Tuned are the classes that have an AUC, which are named with it: less than macro F1 has.
        tuned=_over(figures.score(row.f1_macro_tuned), over_classes(row)),
    )


def epoch_name(row: EpochRow, record: RunRecord) -> str:
    """The number of an epoch, and of which steps its figures are where a run went on midway."""
    steps, num = record.started.steps_per_epoch if record.started else 0, row.num_optimizer_steps
    if num is None or num >= steps:
        return str(row.epoch)
    return say("run.part_of_epoch", epoch=row.epoch, n=num, total=steps)


def over_classes(row: EpochRow) -> str:
    """Over how many classes the AUC is a mean; empty when it is over all, or not known."""
    if not row.undefined_classes or row.num_auc_classes is None:
        return ""
    total = row.num_auc_classes + len(row.undefined_classes)
    return say("run.over", n=row.num_auc_classes, m=total)


def classes_with(record: RunRecord, row: EpochRow, name: ClassScore) -> tuple[int, int] | None:
    """How many classes of an epoch have this score, and how many there are; None: not known."""
    scored = _classes_of(record, row)
    if scored is None:
        return None
    defined = [one for one in scored.classes if getattr(one, name) is not None]
    return len(defined), len(scored.classes)


def _classes_of(record: RunRecord, row: EpochRow) -> EpochClasses | None:
    return epoch_classes(read_class_scores(RunDir(Path(record.path))), row.epoch)


def _over(value: str, over: str) -> str:
    return say("following.auc_over", auc=value, over=over) if over else value


def _last_scored(record: RunRecord) -> EpochRow | None:
    return next((row for row in reversed(record.epochs) if row.num_evaluated is not None), None)


def _coverage(record: RunRecord) -> list[str]:
    """Which classes the means of the last evaluated epoch leave out, and why."""
    row = _last_scored(record)
    if row is None or not (over := over_classes(row)):
        return []
    undefined = [name for name in row.undefined_classes if name not in row.untrained_classes]
    named = (("run.untrained", row.untrained_classes), ("run.undefined", undefined))
    reasons = "; ".join(say(key, names=say_few(names)) for key, names in named if names)
    auc = figures.score(row.auc_macro)
    return [say("run.coverage", epoch=row.epoch, auc=auc, over=over, reasons=reasons)]


def _other_means(record: RunRecord) -> list[str]:
    """Of macro F1 and mAP the same: they leave out fewer classes than the AUC does."""
    row = _last_scored(record)
    found = _classes_of(record, row) if row else None
    if row is None or found is None:
        return []
    return [line for mean in MEANS if (line := _mean_line(row, found, *mean))]


def _mean_line(row: EpochRow, found: EpochClasses, name: ClassScore, mean: str) -> str:
    without = [one for one in found.classes if getattr(one, name) is None]
    if not without:
        return ""
    untrained = [one.name for one in without if one.is_untrained]
    undefined = [one.name for one in without if not one.is_untrained]
    named = (("run.untrained", untrained), (f"run.without_{name}", undefined))
    reasons = "; ".join(say(key, names=say_few(names)) for key, names in named if names)
    num = len(found.classes)
    over = say("run.over", n=num - len(without), m=num)
    value = figures.score(getattr(row, mean))
    return say(f"run.{mean}_over", epoch=row.epoch, value=value, over=over, reasons=reasons)


def left_out_lines(record: RunRecord) -> list[str]:
    """Images that fill no whole step, so that an epoch leaves them out."""
    started = record.started
    if started is None or record.spec is None or not started.num_left_out:
        return []
    left, batch = started.num_left_out, record.spec.global_batch
    return [say("run.left_out", left=left, n=started.num_train, batch=batch)]


def _collectives(record: RunRecord) -> list[str]:
    issued = [row.collectives_per_step for row in record.epochs if row.collectives_per_step]
    return [say("run.collectives", number=issued[-1])] if issued else []


def _skipped(record: RunRecord) -> list[str]:
    skipped = [row.skipped_steps for row in record.epochs if row.skipped_steps is not None]
    return [say("run.skipped", n=sum(skipped))] if skipped else []


def _averaged(record: RunRecord) -> list[str]:
    decay = record.observed.ema_decay if record.observed else None
    return [] if decay is None else [say("run.averaged", decay=decay)]


def _decoding(record: RunRecord) -> list[str]:
    started = record.started
    if started is None or started.decoder is None:
        return []
    where = catalogue().get(f"decoder.{started.decoder}", started.decoder)
    if not started.num_workers:
        return [say("run.decoding_here", where=where)]
    workers = say("run.workers" if started.num_workers > 1 else "run.worker", n=started.num_workers)
    measured = []
    if started.decode_rate_cpu and started.decode_rate_gpu:
        rates = (started.decode_rate_cpu, started.decode_rate_gpu)
        cpu, gpu = (figures.count(rate) for rate in rates)
        measured = [say("run.decode_rates", cpu=cpu, gpu=gpu)]
    return ["; ".join([say("run.decoding", where=where, workers=workers), *measured])]
