"""The epochs of a run: train, score, save, and the places where it may end."""

from __future__ import annotations

from typing import Any

import msgspec

from ringside.events import EpochTrained, Evaluated, StopAgreed, Warned
from ringside.records import FinalState
from training.evaluation import Evaluator
from training.loop import Trainer
from training.resume import Progress
from training.saving import Saver


class Epochs:
    """One rank's way through the epochs; all ranks take every turn together.

    `session` tells the world: phases, events and lines on the console.
    """

    def __init__(self, session: Any, trainer: Trainer, evaluator: Evaluator, saver: Saver) -> None:
        self.session, self.trainer = session, trainer
        self.evaluator, self.saver = evaluator, saver
        self.spec, self.control, self.writer = session.spec, session.control, session.writer

    def run(self, start: Progress) -> FinalState:
        """All epochs from `start` on; `completed` or `stopped`."""
        if start.unevaluated is not None:
            self.writer.write(msgspec.structs.replace(start.unevaluated, carried=True))
            end = self._score(start.unevaluated)
            if end is not None:
                return end
        for epoch in range(start.epoch, self.spec.epochs + 1):
            self.session.phase("compile" if self.trainer.compiles else "train", epoch)
            first = start.step_in_epoch if epoch == start.epoch else 0
            trained = self.trainer.train_epoch(epoch, first)
            if trained is None:
                self.saver.now(self.trainer.progress)
                return "stopped"
            self._tell(trained)
            if epoch == start.epoch:
                self.session.report_ddp(self.trainer)
            end = self._score(trained)
            if end is not None:
                return end
        return "completed"

    def _score(self, trained: EpochTrained) -> FinalState | None:
        """Evaluate and save a trained epoch; the final state when the run ends here.

        A stop before or in the evaluation must be quick: whoever resumes begins with it.
        """
        epoch = trained.epoch
        scores = self._evaluate(epoch)
        if scores is None:
            step = self.trainer.step
            self.writer.write(StopAgreed(request="stop", epoch=epoch, step=step))
            progress = self.trainer.progress
            self.saver.now(msgspec.structs.replace(progress, unevaluated=trained))
            return "stopped"
        # The files come first: who reads the event finds them.
        is_best = self.saver.keep(scores, self.evaluator.last, self.evaluator.classes)
        self.writer.write(scores)
        self._tell_scores(scores)
        self.session.phase("save", epoch)
        self.saver.epoch_end(self.trainer.progress, scores, is_best=is_best)
        if self._has_stalled(epoch):
            return "completed"
        return "stopped" if self._stop_after(epoch) else None

    def _evaluate(self, epoch: int) -> Evaluated | None:
        """The scores; None when a stop was agreed since the last training step."""
        if self.control.take("stop"):
            return None
        self.session.phase("evaluate", epoch)
        return self.evaluator.evaluate(epoch)

    def _has_stalled(self, epoch: int) -> bool:
        """Whether early stopping ends the run here; every rank has the same scores."""
        reason = self.saver.best.why_stop(epoch, self.spec.training.early_stop_epochs)
        if reason is None or epoch == self.spec.epochs:
            return False
        self.writer.write(Warned(code="early-stop", message=reason))
        self.session.say(reason)
        return True

    def _stop_after(self, epoch: int) -> bool:
        """Between epochs all requests count; an exchange makes the ranks agree."""
        self.control.exchange()
        self.control.take("checkpoint")  # This epoch's was written a moment ago.
        for request in ("stop", "stop-after-epoch"):
            if self.control.take(request) and epoch < self.spec.epochs:
                step = self.trainer.step
                self.writer.write(StopAgreed(request=request, epoch=epoch, step=step))
                return True
        return False

    def _tell(self, trained: EpochTrained) -> None:
        self.writer.write(trained)
        recorded = trained.num_profiled_steps
        without = f" without {recorded} recorded steps" if recorded else ""
        self.session.say(
            f"epoch {trained.epoch} of {self.spec.epochs}: {trained.epoch_time_s:.1f} s{without}, "
            f"{trained.samples_per_s:,.0f} images/s, loss {trained.train_loss:.4f}"
        )

    def _tell_scores(self, scores: Evaluated) -> None:
        auc = "-" if scores.auc_macro is None else f"{scores.auc_macro:.4f}"
        f1 = "-" if scores.f1_macro is None else f"{scores.f1_macro:.4f}"
        self.session.say(
            f"evaluated {scores.num_evaluated} samples once each on {self.control.world} ranks: "
            f"macro AUC {auc}, macro F1 {f1}"
        )
