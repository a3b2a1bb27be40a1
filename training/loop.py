"""The training loop: accumulate, forward, backward, step, and an honest clock beside it."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import torch

from ringside.events import EpochTrained, PhaseStarted, StopAgreed
from training.control import Control
from training.input import AnyBatches
from training.loss_watch import LossWatch
from training.order import TrainingOrder
from training.precision import SkippedSteps
from training.profiling import Profiling
from training.reductions import CollectiveCounter
from training.resume import Progress
from training.schedule import learning_rate_at
from training.timing import StepTimer
from training.windows import Windows


class Trainer:
    """One rank's loop over epochs; knows the engine, the order of samples and where events go."""

    def __init__(
        self, engine: Any, order: TrainingOrder, batches: AnyBatches,
        control: Control, writer: Any, rank_log: Any,
    ) -> None:  # fmt: skip
        self.engine, self.order, self.batches = engine, order, batches
        self.control, self.writer = control, writer
        self.spec = engine.spec
        self.total_steps = self.spec.epochs * order.steps_per_epoch
        self.warmup_steps = round(self.spec.training.warmup_epochs * order.steps_per_epoch)
        self.timer = StepTimer(engine.device)
        self.watch = LossWatch(self.spec)
        self.windows = Windows(engine, control, writer, rank_log, self.timer, self.watch)
        self.skipped = SkippedSteps(engine.accelerator.scaler)
        self.collectives = CollectiveCounter(engine.num_replicas)
        self.mark = control.mark
        self.step = 0
        self.grad_norm: torch.Tensor | None = None
        self.epoch = 1
        self.step_in_epoch = 0
        self.save_now: Callable[[Progress], None] = lambda _progress: None
        self.compiles = self.spec.training.compile
        self.profiling = Profiling(self)
        self._save_waits = False

    @property
    def progress(self) -> Progress:
        """Where training stands now; a finished epoch is the beginning of the next."""
        done = self.step_in_epoch == self.order.steps_per_epoch
        return Progress(
            epoch=self.epoch + done,
            step_in_epoch=0 if done else self.step_in_epoch,
            samples_in_epoch=0 if done else self.step_in_epoch * self.spec.global_batch,
            step=self.step,
        )

    def take_up(self, progress: Progress) -> Progress:
        """Continue at a checkpoint's position, counted in this run's own steps."""
        steps = self.order.steps_per_epoch
        in_epoch = min(steps, progress.samples_in_epoch // self.spec.global_batch)
        self.epoch, self.step_in_epoch = progress.epoch, in_epoch
        self.step = (progress.epoch - 1) * steps + in_epoch
        return self.progress

    def train_epoch(self, epoch: int, first_step: int = 0) -> EpochTrained | None:
        """One epoch, or the rest of one from `first_step`; None when a stop was agreed on the way.

        All ranks leave at the same step. A stop at the last step leaves the epoch whole.
        """
        self.order.epoch, self.order.first_step = epoch, first_step
        self.control.restart()
        self._begin_epoch(epoch, first_step)
        stream = iter(self.batches)
        for _ in range(first_step, self.order.steps_per_epoch):
            self._set_learning_rate()
            self.optimizer_step(stream)
            self.step += 1
            self.step_in_epoch += 1
            self.windows.count()
            if self.compiles:
                self._end_compiling()
            if self.profiling.is_recording:
                self.profiling.step()
            elif self.control.due():
                self.windows.close(epoch, self.step, self.learning_rate)
                self._save_waits |= self.control.take("checkpoint")
                self.profiling.ask(self.control.take_profile())
            self._save_waits |= self._is_save_step()
            if self.profiling.goes_on() or not self._can_leave_off():
                continue
            if self._save_waits:
                self._save_off_the_clock()
            if self.control.take("stop"):
                self.writer.write(StopAgreed(request="stop", epoch=epoch, step=self.step))
                return None
        return self._end_epoch()

    def _end_compiling(self) -> None:
        """The compiler ran in the first step of this process; what follows is training."""
        self.compiles = False
        self.mark.begin("train", self.epoch)
        self.writer.write(PhaseStarted(phase="train", epoch=self.epoch))

    def _can_leave_off(self) -> bool:
        """Whether training could go on exactly from here, and the epoch is not over anyway.

        Ranks that train alone are alike only after an averaging; saves and stops wait for it.
        """
        averager = self.engine.averager
        alike = averager is None or averager.is_due(self.step)
        return alike and self.step_in_epoch < self.order.steps_per_epoch

    def optimizer_step(self, stream: Any) -> None:
        """k micro-steps; only the last one lets the gradients be reduced."""
        k = self.spec.training.accumulation_steps
        self.mark.step = self.step + 1
        for number in range(k):
            self.mark.batch = number + 1
            images, targets = self._next_batch(stream)
            if number < k - 1 and not self._must_sync_first(number):
                with self.engine.accelerator.no_sync(self.engine.model):
                    self._micro_step(images, targets, k)
            else:
                self._micro_step(images, targets, k)
        self.timer.start()
        self._enter("optimizer")
        if self.spec.training.clip_norm:
            self.grad_norm = self.engine.clip_gradients(self.spec.training.clip_norm)
        self.engine.optimizer.step()
        self.engine.optimizer.zero_grad()
        if self.engine.averager is not None:
            self.engine.averager.step(self.step + 1)
        self.engine.follow_weights(self.step + 1)
        self.skipped.step()
        self.collectives.step()
        self.timer.end("optimizer")
        self.timer.step()

    def _is_save_step(self) -> bool:
        """Every so many steps, as the preset says."""
        every = self.spec.training.save_every_steps
        return every is not None and self.step % every == 0

    def _save_off_the_clock(self) -> None:
        """A checkpoint between steps; its time is neither the epoch's nor the next window's."""
        self._save_waits = False
        self.mark.enter("save")
        self.engine.synchronize()  # What the device still trains belongs to the epoch.
        begin = time.perf_counter()
        self.save_now(self.progress)
        self.control.gather([0.0])  # Rank 0 writes; without this the others wait on the clock.
        self.collectives.skip()
        spent = time.perf_counter() - begin
        self._begin += spent
        self.windows.leave_out(spent)

    def off_the_clock(self, begin: float) -> None:
        """What happened since `begin` is not the epoch's time, and a new window begins."""
        self._begin += time.perf_counter() - begin
        self.windows.restart()

    def _must_sync_first(self, number: int) -> bool:
        """DDP learns a static graph in its first backward, which must therefore reduce.

        Under no_sync torch fails an internal assertion (huggingface/accelerate#3679); averaging
        the first micro-step on its own leaves the sum over the group as it is.
        """
        return self.spec.training.static_graph and self.step == 0 and number == 0

    def _micro_step(self, images: torch.Tensor, targets: torch.Tensor, k: int) -> None:
        """DDP and FSDP average over ranks, so the mean over the micro-batch divided by k is the
        mean over the global batch: all micro-batches have the same size."""
        self.timer.start()
        self._enter("forward")
        if self.engine.pipeline is not None:
            self._pipeline_step(images, targets)
            return
        with self.engine.autocast():
            logits = self.engine.model(images)
        loss = self.engine.loss(logits, targets)
        self.timer.end("forward")
        self._enter("backward")
        self.engine.accelerator.backward(loss / k)
        self.timer.end("backward")
        self.timer.loss(loss)
        self.watch.see(self.step + 1, loss, logits, targets)

    def _pipeline_step(self, images: torch.Tensor, targets: torch.Tensor) -> None:
        """All micro-batches of one batch; a stage that waits for another shows it in its parts."""
        loss = self.engine.pipeline.step(images, targets, self._turn_backward)
        self.timer.end("backward")
        self.timer.loss(loss)
        self.watch.see(self.step + 1, loss)

    def _turn_backward(self) -> None:
        self.timer.end("forward")
        self._enter("backward")

    def _enter(self, part: str) -> None:
        """A part of a step begins, for the mark and, while one is made, for the trace."""
        self.mark.enter(part)
        self.profiling.recorder.enter(part)

    def _next_batch(self, stream: Any) -> tuple[torch.Tensor, torch.Tensor]:
        begin = time.perf_counter()
        self._enter("data")
        images, targets, _ = next(stream)
        self.timer.waited(time.perf_counter() - begin)
        return images, targets

    def _set_learning_rate(self) -> None:
        self.learning_rate = learning_rate_at(
            self.step,
            peak=self.spec.learning_rate,
            total_steps=self.total_steps,
            warmup_steps=self.warmup_steps,
        )
        for group in self.engine.optimizer.param_groups:
            group["lr"] = self.learning_rate

    def _begin_epoch(self, epoch: int, first_step: int) -> None:
        self.epoch, self.step_in_epoch, self._first_step = epoch, first_step, first_step
        self._save_waits = False
        self.collectives.begin()
        self.skipped.begin()
        self.profiling.begin_epoch()
        self.windows.begin_epoch()
        self._begin = time.perf_counter()

    def _end_epoch(self) -> EpochTrained:
        if self.engine.averager is not None:
            self.engine.averager.average()
        self.engine.synchronize()
        elapsed = time.perf_counter() - self._begin
        self.windows.close(self.epoch, self.step, self.learning_rate, wait=True)
        times = self.control.gather([elapsed])[:, 0]
        num_steps = self.order.steps_per_epoch - self._first_step
        num_profiled = self.profiling.num_in_epoch
        num_samples = (num_steps - num_profiled) * self.spec.global_batch
        return EpochTrained(
            epoch=self.epoch,
            epoch_time_s=float(times.max()),
            epoch_time_s_min=float(times.min()),
            num_samples=num_samples,
            samples_per_s=num_samples / float(times.max()),
            num_optimizer_steps=num_steps,
            train_loss=self.windows.train_loss,
            grad_norm=self._norm(),
            data_ratio=self.windows.data_s / float(times.max()),
            collectives_per_step=self.collectives.per_step,
            skipped_steps=self.skipped.total,
            num_profiled_steps=num_profiled,
            profiled=self.profiling.has_run,
        )

    def _norm(self) -> float | None:
        if self.grad_norm is None:
            return None
        full = getattr(self.grad_norm, "full_tensor", None)
        return float(full() if full else self.grad_norm)
