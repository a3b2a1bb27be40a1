"""When a checkpoint is written, which one is the best, and what happens when the disk is full."""

from __future__ import annotations

from typing import Any

import msgspec

from ringside.data import ImageData
from ringside.errors import RunDirError
from ringside.events import CheckpointSaved, Evaluated, Warned
from ringside.predictions import Predictions, write_predictions
from ringside.rundir import RunDir
from training import checkpoint
from training.batchnorm import average_statistics
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
        self.best: float | None = None

    def epoch_end(
        self, progress: Progress, scores: Evaluated, predictions: Predictions | None
    ) -> None:
        """Save `last`; and `best` when the headline score (macro AUC, else loss) has risen.

        The predictions behind the scores are kept too, for intervals in a comparison.
        """
        if predictions is not None:
            self._keep(predictions)
        names = ["last", "best"] if self._is_best(scores) else ["last"]
        self._save(names, progress, scores)

    def now(self, progress: Progress) -> None:
        """A checkpoint in the middle of an epoch, with weights and statistics of all ranks."""
        if self.engine.averager is not None:
            self.engine.averager.average()
        average_statistics(self.engine.plain, self.engine.world)
        self._save(["last"], progress, None)

    def _save(self, names: list[str], progress: Progress, scores: Evaluated | None) -> None:
        weights = checkpoint.full_weights(self.engine)
        state = training_state(self.engine, self.control, progress)
        if self.engine.rank != 0:
            return
        spec, data = self.engine.spec, self.data
        about = checkpoint.describe(
            spec, data.classes, data.task, epoch=progress.epoch, step=progress.step,
            run=self.run.id, preset=spec.preset, request=request_of(spec),
            scores=scores and msgspec.to_builtins(scores),
        )  # fmt: skip
        for name in names:
            try:
                # Only `last` is resumed from; `best` is for use.
                kept = state if name == "last" else None
                path = checkpoint.save(self.run, name, weights, about, kept)
            except (OSError, RunDirError) as error:
                self._warn(name, error)
                continue
            relative = str(path.relative_to(self.run.path))
            self.writer.write(
                CheckpointSaved(path=relative, epoch=progress.epoch, best=name == "best")
            )

    def _keep(self, predictions: Predictions) -> None:
        try:
            write_predictions(self.run, predictions)
        except RunDirError as error:
            self.writer.write(Warned(code="predictions", message=str(error)))

    def _warn(self, name: str, error: OSError | RunDirError) -> None:
        """Hours of training are worth more than one checkpoint: say it, and go on."""
        self.writer.write(
            Warned(
                code="checkpoint",
                message=f"The checkpoint {name!r} could not be written: {error}. "
                "The one before is kept; free some space in the runs folder.",
            )
        )

    def _is_best(self, scores: Evaluated) -> bool:
        headline = scores.auc_macro
        if headline is None:
            headline = -scores.val_loss if scores.val_loss is not None else None
        if headline is None or (self.best is not None and headline <= self.best):
            return False
        self.best = headline
        return True
