"""The training loop: accumulate, forward, backward, step, and an honest clock beside it."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np
import torch

from ringside.events import EpochTrained, StopAgreed, WindowTimed
from training.control import Control
from training.input import AnyBatches
from training.loss_watch import LossWatch
from training.order import TrainingOrder
from training.precision import SkippedSteps
from training.reductions import CollectiveCounter
from training.resume import Progress
from training.schedule import learning_rate_at
from training.timing import StepSums, StepTimer


class RankWindow(msgspec.Struct, frozen=True, kw_only=True):
    """A line of `ranks/rankN.jsonl`: this rank's means per optimizer step over a window."""

    t: float
    epoch: int
    step: int
    num_steps: int
    step_ms: float
    data_ms: float
    forward_ms: float
    backward_ms: float
    optimizer_ms: float


class Trainer:
    """One rank's loop over epochs; knows the engine, the order of samples and where events go."""

    def __init__(
        self, engine: Any, order: TrainingOrder, batches: AnyBatches,
        control: Control, writer: Any, rank_log: Any,
    ) -> None:  # fmt: skip
        self.engine, self.order, self.batches = engine, order, batches
        self.control, self.writer, self.rank_log = control, writer, rank_log
        self.spec = engine.spec
        self.total_steps = self.spec.epochs * order.steps_per_epoch
        self.warmup_steps = round(self.spec.training.warmup_epochs * order.steps_per_epoch)
        self.timer = StepTimer(engine.device)
        # Of a pipeline only the last stage has a loss.
        self.loss_rows = slice(None) if engine.pipeline is None else slice(-1, None)
        self.watch = LossWatch(self.spec)
        self.skipped = SkippedSteps(engine.accelerator.scaler)
        self.collectives = CollectiveCounter(engine.num_replicas)
        self.classes: tuple[str, ...] = ()
        self.mark = control.mark
        self.step = 0
        self.grad_norm: torch.Tensor | None = None
        self.epoch = 1
        self.step_in_epoch = 0
        self.save_now: Callable[[Progress], None] = lambda _progress: None

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

        All ranks leave at the same step.
        """
        self.order.epoch, self.order.first_step = epoch, first_step
        self.control.restart()
        self._begin_epoch(epoch, first_step)
        stream = iter(self.batches)
        for _ in range(first_step, self.order.steps_per_epoch):
            self._set_learning_rate()
            self._optimizer_step(stream)
            self.step += 1
            self.step_in_epoch += 1
            self._window_steps += 1
            if self._save_is_due():
                self._save_off_the_clock()
            if self.control.due():
                self._close_window()
                if self.control.take("checkpoint"):
                    self._save_off_the_clock()
                if self.control.take("stop"):
                    self.writer.write(StopAgreed(request="stop", epoch=epoch, step=self.step))
                    return None
        return self._end_epoch()

    def _optimizer_step(self, stream: Any) -> None:
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
        self.mark.enter("optimizer")
        if self.spec.training.clip_norm:
            self.grad_norm = self.engine.clip_gradients(self.spec.training.clip_norm)
        self.engine.optimizer.step()
        self.engine.optimizer.zero_grad()
        if self.engine.averager is not None:
            self.engine.averager.step()
        self.engine.follow_weights(self.step + 1)
        self.skipped.step()
        self.collectives.step()
        self.timer.end("optimizer")
        self.timer.step()

    def _save_is_due(self) -> bool:
        """Every so many steps, as the preset says; the end of an epoch has its own."""
        every = self.spec.training.save_every_steps
        ends = self.step_in_epoch == self.order.steps_per_epoch
        return every is not None and self.step % every == 0 and not ends

    def _save_off_the_clock(self) -> None:
        """A checkpoint between steps; its time is neither the epoch's nor the next window's."""
        self.mark.enter("save")
        self.engine.synchronize()  # What the device still trains belongs to the epoch.
        begin = time.perf_counter()
        self.save_now(self.progress)
        self.control.gather([0.0])  # Rank 0 writes; without this the others wait on the clock.
        self.collectives.skip()
        spent = time.perf_counter() - begin
        self._begin += spent
        self._window_begin += spent

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
        self.mark.enter("forward")
        if self.engine.pipeline is not None:
            self._pipeline_step(images, targets)
            return
        with self.engine.autocast():
            logits = self.engine.model(images)
        loss = self.engine.loss(logits, targets)
        self.timer.end("forward")
        self.mark.enter("backward")
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
        self.mark.enter("backward")

    def _next_batch(self, stream: Any) -> tuple[torch.Tensor, torch.Tensor]:
        begin = time.perf_counter()
        self.mark.enter("data")
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
        self._begin = self._window_begin = time.perf_counter()
        self._window_steps = 0
        self.collectives.begin()
        self.skipped.begin()
        self._sums = np.zeros(3)  # loss summed over steps, steps, data wait in ms

    def _close_window(self, *, wait: bool = False) -> None:
        """Exchange this window's figures and write them; the agreed moment for requests too."""
        sums = self.timer.drain(wait=wait)
        now = time.perf_counter()
        step_ms = 1000 * (now - self._window_begin) / max(1, self._window_steps)
        row = [self._window_steps, step_ms, *sums, self._peak_memory() or 0]
        table = self.control.exchange(row)
        self._window_begin, self._window_steps = now, 0
        losses = table[self.loss_rows]
        counted = losses[:, 2].sum()
        self._sums += [losses[:, 7].sum(), counted, table[:, 3].max()]
        # The window after an epoch's last exchange has no steps, only late readings of the device.
        if counted and table[0, 0]:
            self._write_rank_line(step_ms, sums)
            self._write_window(table)
        self.watch.forget(sums.num_steps)

    def _write_window(self, table: np.ndarray) -> None:
        losses = table[self.loss_rows]
        loss = float(losses[:, 7].sum() / losses[:, 2].sum())
        per_step = table[:, 3:7] / np.maximum(1, table[:, 2:3])
        slowest, fastest = per_step.max(axis=0), per_step.min(axis=0)
        step_ms = float(table[:, 1].max())
        self.writer.write(
            WindowTimed(
                epoch=self.epoch,
                step=self.step,
                num_steps=int(table[0, 0]),
                samples_per_s=1000 * self.spec.global_batch / step_ms,
                train_loss=loss,
                learning_rate=self.learning_rate,
                step_ms=step_ms,
                data_ms=float(slowest[0]),
                forward_ms=float(slowest[1]),
                backward_ms=float(slowest[2]),
                optimizer_ms=float(slowest[3]),
                step_ms_min=float(table[:, 1].min()),
                data_ms_min=float(fastest[0]),
                forward_ms_min=float(fastest[1]),
                backward_ms_min=float(fastest[2]),
                optimizer_ms_min=float(fastest[3]),
                memory_bytes=int(table[:, 8].max()) or None,
            )
        )
        if not np.isfinite(loss):
            raise self.watch.error(
                self.control, step=self.step, learning_rate=self.learning_rate,
                classes=self.classes, bad_ranks=np.flatnonzero(~np.isfinite(table[:, 7])),
            )  # fmt: skip

    def _end_epoch(self) -> EpochTrained:
        if self.engine.averager is not None:
            self.engine.averager.average()
        self.engine.synchronize()
        elapsed = time.perf_counter() - self._begin
        self._close_window(wait=True)
        times = self.control.gather([elapsed])[:, 0]
        num_steps = self.order.steps_per_epoch - self._first_step
        num_samples = num_steps * self.spec.global_batch
        loss_sum, counted, data_ms = self._sums
        return EpochTrained(
            epoch=self.epoch,
            epoch_time_s=float(times.max()),
            epoch_time_s_min=float(times.min()),
            num_samples=num_samples,
            samples_per_s=num_samples / float(times.max()),
            num_optimizer_steps=num_steps,
            train_loss=float(loss_sum / counted),
            grad_norm=self._norm(),
            data_ratio=float(data_ms / 1000 / times.max()),
            collectives_per_step=self.collectives.per_step,
            skipped_steps=self.skipped.total,
        )

    def _norm(self) -> float | None:
        if self.grad_norm is None:
            return None
        full = getattr(self.grad_norm, "full_tensor", None)
        return float(full() if full else self.grad_norm)

    def _peak_memory(self) -> int | None:
        if self.engine.device.type != "cuda":
            return None
        return int(torch.cuda.max_memory_allocated(self.engine.device))

    def _write_rank_line(self, step_ms: float, sums: StepSums) -> None:
        n = max(1, sums.num_steps)
        line = RankWindow(
            t=time.time(), epoch=self.epoch, step=self.step, num_steps=sums.num_steps,
            step_ms=step_ms, data_ms=sums.data_ms / n, forward_ms=sums.forward_ms / n,
            backward_ms=sums.backward_ms / n, optimizer_ms=sums.optimizer_ms / n,
        )  # fmt: skip
        self.rank_log.write(msgspec.json.encode(line) + b"\n")
