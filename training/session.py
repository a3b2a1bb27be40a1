"""One run on one rank, from data to the last checkpoint."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Any

import msgspec
from torch import nn

from ringside.checkpoints import About, read_about
from ringside.data import ImageData, open_data, write_classes
from ringside.errors import SetupError
from ringside.events import PhaseStarted, RunFinished, RunStarted, Warned
from ringside.records import FinalState
from ringside.rundir import RunDir
from ringside.words import say
from training import nccl_log
from training.agreement import require_same_data
from training.control import Control
from training.ddp_report import ddp_report
from training.engine import Engine
from training.epochs import Epochs
from training.evaluation import Evaluator
from training.failure import describe
from training.input import Feed
from training.loop import Trainer
from training.losses import training_loss
from training.model import make_model, make_optimizer
from training.observation import check
from training.order import TrainingOrder
from training.pretrained import start_from
from training.resume import Progress, differences, refuse_other_data, restore
from training.saving import Saver
from training.trackers import make_writer


class LineLog:
    """Appends bytes of whole lines to this rank's own file."""

    def __init__(self, path: Path) -> None:
        self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)

    def write(self, line: bytes) -> None:
        """Append one line with one write."""
        os.write(self._fd, line)


class Session:
    """Holds the parts of a run together; `run()` is the story from top to bottom.

    `has_left`: this rank left the others in a profile, and its process has to end at once.
    """

    def __init__(self, engine: Engine, run: RunDir, control: Control) -> None:
        self.engine, self.run_dir, self.control = engine, run, control
        self.spec = engine.spec
        self.writer = make_writer(run, self.spec, engine.rank)
        self.begin = time.perf_counter()
        self.has_left = False
        self._reported_step = 0

    def run(self) -> FinalState:
        """Train all epochs; returns `completed` or `stopped`."""
        try:
            return self._run()
        finally:
            self.writer.close()  # Trackers send what they still hold.

    def _run(self) -> FinalState:
        self.phase("data")
        data = open_data(self.spec.data, skip=frozenset(self.spec.data.skip))
        require_same_data(self.control, data.fingerprint)
        about = self._checkpoint(data)
        self.phase("setup")
        trainer, evaluator = self._build(data)
        saver = Saver(self.engine, self.run_dir, self.control, self.writer, data)
        trainer.save_now = saver.now
        start = self._resume(trainer, saver, about, data) if about else Progress(epoch=1)
        reason = Epochs(self, trainer, evaluator, saver).run(start)
        total = time.perf_counter() - self.begin
        self.report_ddp(trainer)
        # First: whatever a profile comes to, the run is over and on disk.
        self.writer.write(RunFinished(reason=reason, total_time_s=total))
        self.say(f"{reason} after {total:.1f} s")
        if reason == "completed":
            self._profile(trainer)
        return reason

    def _build(self, data: ImageData) -> tuple[Trainer, Evaluator]:
        engine, spec = self.engine, self.spec
        order = TrainingOrder(spec, len(data.train), engine.rank)
        engine.loss = training_loss(data.task, spec.training, data.train.targets, engine.device)
        model = engine.own_part(self._model(data.classes))
        engine.prepare(model, make_optimizer(spec, model))
        observed = engine.observe()
        check(spec, observed)
        self._refuse_idle_power_sgd(order)
        feed = Feed(engine, data, self.control)
        self._start_event(data, order, observed, feed)
        trainer = Trainer(
            engine, order, feed.training(order), self.control, self.writer,
            LineLog(self.run_dir.ranks / f"rank{engine.rank}.jsonl"),
        )  # fmt: skip
        trainer.windows.classes = data.classes
        return trainer, Evaluator(engine, data, self.control, feed)

    def _model(self, classes: tuple[str, ...]) -> nn.Module:
        """The model with the weights that it starts from; a resumed run gets its own later."""
        model = make_model(self.spec, len(classes))
        if self.spec.weights is not None and self.spec.resume_from is None:
            note = start_from(model, Path(self.spec.weights), classes)
            if note is not None:
                self.writer.write(Warned(code="weights", message=note))
                self.say(note)
        return model

    def _refuse_idle_power_sgd(self, order: TrainingOrder) -> None:
        """A run that ends before PowerSGD starts would claim a saving that never came."""
        settings, steps = self.spec.training, self.spec.epochs * order.steps_per_epoch
        if settings.comm_hook == "power_sgd" and steps <= settings.power_sgd_start_step:
            first = settings.power_sgd_start_step
            raise SetupError(say("refused.idle_power_sgd", step=first, n=steps))

    def _start_event(
        self, data: ImageData, order: TrainingOrder, observed: Any, feed: Feed
    ) -> None:
        if self.engine.rank == 0:
            write_classes(self.run_dir.classes, data.classes)
        self.writer.write(
            RunStarted(
                observed=observed,
                num_train=len(data.train),
                num_val=len(data.val),
                num_classes=len(data.classes),
                task=data.task,
                data_fingerprint=data.fingerprint,
                data_title=data.title,
                synthetic=data.synthetic,
                steps_per_epoch=order.steps_per_epoch,
                num_left_out=order.num_left_out,
                learning_rate=self.spec.learning_rate,
                resumed_from=self.spec.resume_from,
                num_workers=feed.num_workers,
                decoder=feed.choice.decoder,
                decode_rate_cpu=feed.choice.cpu_rate,
                decode_rate_gpu=feed.choice.gpu_rate,
            )
        )
        for note in data.notes:
            self.writer.write(Warned(code="data", message=note))
        why_not = nccl_log.why_not(self.spec, self.run_dir)
        if why_not is not None:
            self.writer.write(Warned(code="nccl-log", message=why_not))

    def _checkpoint(self, data: ImageData) -> About | None:
        """The description of the checkpoint to go on from, which must fit the opened data."""
        if self.spec.resume_from is None:
            return None
        folder = Path(self.spec.resume_from)
        about = read_about(folder)
        refuse_other_data(about, data, folder)
        return about

    def _resume(self, trainer: Trainer, saver: Saver, about: About, data: ImageData) -> Progress:
        """Take up the named checkpoint; returns where it stood."""
        folder = Path(str(self.spec.resume_from))
        for difference in differences(about, self.spec, data):
            note = say("noted.not_as_before", difference=difference)
            self.writer.write(Warned(code="resume", message=note))
        saved = restore(self.engine, folder, about)
        progress = trainer.take_up(saved)
        saver.take_up(folder)
        self.say(f"resumed at step {progress.step} of epoch {progress.epoch}")
        return msgspec.structs.replace(progress, unevaluated=saved.unevaluated)

    def report_ddp(self, trainer: Trainer) -> None:
        """What DDP says of itself, once for each step at which it is asked."""
        if self.engine.rank == 0 and trainer.step != self._reported_step:
            self._reported_step = trainer.step
            report = ddp_report(self.engine.model, epoch=trainer.epoch, step=trainer.step)
            if report is not None:
                self.writer.write(report)

    def _profile(self, trainer: Trainer) -> None:
        """Everything is safe on disk by now; what somebody asks for at the very end counts too."""
        self.control.exchange()
        trainer.profiling.ask(self.control.take_profile())
        num_steps = max(self.spec.profile_steps, trainer.profiling.asked)
        if num_steps:
            self.phase("profile", trainer.epoch)
            try:
                trainer.profiling.after_training(num_steps)
            except Exception as error:
                self._leave_profile(error)

    def _leave_profile(self, error: Exception) -> None:
        """What ends a profile, such as too little memory, does not end a finished run in failure.

        The others may wait for this rank in a collective, which only its end makes them leave.
        """
        why = describe(error).rstrip(".")
        message = say("noted.no_profile", problem=why)
        self.writer.write(Warned(code="profile", message=message))
        print(f"[rank {self.engine.rank}] {message}", file=sys.stderr, flush=True)
        self.has_left = self.control.world > 1

    def phase(self, phase: str, epoch: int | None = None) -> None:
        """A phase begins, for readers of marks and of events."""
        self.control.mark.begin(phase, epoch or 0)
        self.writer.write(PhaseStarted(phase=phase, epoch=epoch))

    def say(self, text: str) -> None:
        """A line on the console, once for all ranks."""
        if self.engine.rank == 0:
            print(f"[rank 0] {text}", flush=True)
