"""When a checkpoint is written, which one is the best, and what happens when the disk is full."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from ringside.checkpoints import WEIGHTS, Thresholds, folders_of, read_about, read_thresholds
from ringside.class_scores import (
    ClassTables,
    EpochClasses,
    read_class_scores,
    write_class_scores,
)
from ringside.data import ImageData
from ringside.errors import RunDirError
from ringside.events import CheckpointSaved, Evaluated, Warned
from ringside.predictions import Predictions, write_predictions
from ringside.rundir import RunDir
from ringside.words import say
from training import checkpoint
from training.best import LOSS, Best
from training.control import Control
from training.engine import Engine
from training.resume import Progress, request_of, training_state


class Saver:
    """Writes `last` and `best`; every rank must call, rank 0 writes."""

    def __init__(
        self, engine: Engine, run: RunDir, control: Control, writer: Any, data: ImageData
    ) -> None:
        self.engine, self.run, self.control = engine, run, control
        self.writer, self.data = writer, data
        self.best = Best(engine.spec.training.best_by, data.task)
        self.best_classes: EpochClasses | None = None
        self.thresholds = Thresholds()
        self._failing: set[str] = set()

    def keep(
        self, scores: Evaluated, predictions: Predictions | None, classes: EpochClasses | None
    ) -> bool:
        """Write what an evaluation found, before its event; whether it is the best so far.

        Predictions give a comparison its intervals. Only rank 0 has them and the classes.
        """
        is_best = self.best.rises(scores)
        if classes is not None and predictions is not None:
            self.best_classes = classes if is_best else self.best_classes
            self.thresholds = _thresholds_of(classes)
            try:
                write_predictions(self.run, predictions)
                write_class_scores(self.run, ClassTables(last=classes, best=self.best_classes))
            except (OSError, RunDirError) as error:
                self.writer.write(Warned(code="predictions", message=str(error)))
        return is_best

    def epoch_end(self, progress: Progress, scores: Evaluated, *, is_best: bool) -> None:
        """Save `last`, and `best` when this epoch is better than all before."""
        self._save(["last", "best"] if is_best else ["last"], progress, scores)

    def take_up(self, folder: Path) -> None:
        """Go on from a checkpoint: its best so far is this run's, on disk too."""
        before = read_about(folder).best
        if before is None or before.by not in (self.best.by, LOSS):
            return
        self.best.so_far = before
        if self.engine.rank == 0:
            self.thresholds = read_thresholds(folder)
            self._adopt_best(folder.parent / "best")

    def now(self, progress: Progress) -> None:
        """A checkpoint outside of an epoch's end, with the statistics of all ranks.

        Ranks that train alone call after an averaging: one for the checkpoint's sake would change
        the training.
        """
        self.engine.average_statistics()
        self._save(["last"], progress, None)

    def _save(self, names: list[str], progress: Progress, scores: Evaluated | None) -> None:
        weights = checkpoint.full_weights(self.engine, self.control)
        state = training_state(self.engine, self.control, progress)
        if self.engine.rank != 0:
            return
        spec, data = self.engine.spec, self.data
        about = checkpoint.describe(
            spec, data.classes, data.task, epoch=progress.epoch, step=progress.step,
            run=self.run.id, preset=spec.preset, request=request_of(spec),
            data_fingerprint=data.fingerprint,
            unevaluated=progress.unevaluated and progress.unevaluated.epoch,
            scores=scores and msgspec.to_builtins(scores),
            best=self.best.so_far and msgspec.to_builtins(self.best.so_far),
        )  # fmt: skip
        for name in names:
            try:
                # Only `last` is resumed from; `best` is for use.
                kept = state if name == "last" else None
                path = checkpoint.save(self.run, name, weights, about, kept, self.thresholds)
            except (OSError, RunDirError) as error:
                self._warn(name, error)
                continue
            self._failing.discard(name)
            relative = str(path.relative_to(self.run.path))
            self.writer.write(
                CheckpointSaved(path=relative, epoch=progress.epoch, best=name == "best")
            )

    def _adopt_best(self, folder: Path) -> None:
        """The best checkpoint and its class table of the run that is continued."""
        if not (folder / WEIGHTS).exists():
            return
        before = read_class_scores(RunDir(folder.parent.parent))
        self.best_classes = before.best if before else None
        try:
            path = checkpoint.adopt(self.run, "best", folder)
        except OSError as error:
            self._warn("best", error)
            return
        relative, epoch = str(path.relative_to(self.run.path)), read_about(path).epoch
        self.writer.write(CheckpointSaved(path=relative, epoch=epoch or 0, best=True))

    def _warn(self, name: str, error: OSError | RunDirError) -> None:
        """Hours of training are worth more than one checkpoint: say it once, and go on."""
        if name not in self._failing:
            reason = str(error).rstrip(".")
            has_one = any((folder / WEIGHTS).exists() for folder in folders_of(self.run, name))
            key = "noted.no_checkpoint" if has_one else "noted.no_first_checkpoint"
            message = say(key, name=name, reason=reason)
            self.writer.write(Warned(code="checkpoint", message=message))
        self._failing.add(name)


def _thresholds_of(classes: EpochClasses) -> Thresholds:
    return Thresholds(
        epoch=classes.epoch,
        num_evaluated=classes.num_evaluated,
        thresholds={one.name: one.threshold_tuned for one in classes.classes},
    )
