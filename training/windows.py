"""Windows of about a second: what every rank measured in them, exchanged and written down."""

from __future__ import annotations

import time
from typing import Any, NamedTuple

import msgspec
import numpy as np
import torch

from ringside.events import WindowTimed
from ringside.rank_windows import RankWindow
from training.control import Control
from training.loss_watch import LossWatch
from training.timing import StepSums, StepTimer


class Row(NamedTuple):
    """One rank's figures of a window, exchanged as float64; after that, one array [world] each.

    The host has issued `issued_steps` in it, at `step_ms` each. The device had finished
    `num_steps`, and the sums that follow are theirs.
    """

    issued_steps: Any
    step_ms: Any
    num_steps: Any
    data_ms: Any
    forward_ms: Any
    backward_ms: Any
    optimizer_ms: Any
    host_ms: Any
    loss_sum: Any
    memory_bytes: Any


class Windows:
    """Measures one epoch in windows. `timer` and `watch` are the loop's own."""

    def __init__(
        self, engine: Any, control: Control, writer: Any, rank_log: Any,
        timer: StepTimer, watch: LossWatch,
    ) -> None:  # fmt: skip
        self.spec, self.device = engine.spec, engine.device
        self.control, self.writer, self.rank_log = control, writer, rank_log
        self.timer, self.watch = timer, watch
        # Of a pipeline only the last stage has a loss.
        self.losing = slice(None) if engine.pipeline is None else slice(-1, None)
        self.classes: tuple[str, ...] = ()
        self.begin_epoch()

    def begin_epoch(self) -> None:
        """Forget the epoch before and start the clock."""
        self._begin = time.perf_counter()
        self._issued = 0
        self._loss_sum = self._loss_steps = self._data_ms = 0.0

    def count(self) -> None:
        """An optimizer step was issued."""
        self._issued += 1

    def leave_out(self, seconds: float) -> None:
        """Time that belongs to no step, such as a checkpoint's."""
        self._begin += seconds

    def restart(self) -> None:
        """The next window begins now."""
        self._begin = time.perf_counter()

    @property
    def train_loss(self) -> float:
        """Mean over ranks and steps of the epoch so far."""
        return float(self._loss_sum / self._loss_steps)

    @property
    def data_s(self) -> float:
        """Seconds of the epoch so far that the slowest rank of a window waited for the loader."""
        return float(self._data_ms / 1000)

    def close(
        self, epoch: int, step: int, learning_rate: float, *, wait: bool = False,
        profiled: bool = False,
    ) -> None:  # fmt: skip
        """Exchange this window's figures and write them. A collective of the side group.

        `wait` for all steps on the device, at the end of an epoch. `profiled` steps do not count
        in the epoch's wait for data. Raises RingsideError on all ranks when the loss of one is not
        finite any more.
        """
        sums = self.timer.drain(wait=wait)
        now = time.perf_counter()
        step_ms = 1000 * (now - self._begin) / max(1, self._issued)
        row = Row(self._issued, step_ms, *sums, self._peak_memory())
        ranks = Row(*self.control.exchange(row).T)
        self._begin, self._issued = now, 0
        steps = ranks.num_steps[self.losing].sum()
        self._loss_sum += ranks.loss_sum[self.losing].sum()
        self._loss_steps += steps
        self._data_ms += 0.0 if profiled else ranks.data_ms.max()
        # The window after an epoch's last exchange has no steps, only late readings of the device.
        if steps and ranks.issued_steps[0]:
            self._write_rank(epoch, step, step_ms, sums, profiled)
            self._write(epoch, step, learning_rate, ranks, profiled)
        if steps:
            self._refuse_non_finite(step, learning_rate, ranks)
        self.watch.forget(sums.num_steps)

    def _write(
        self, epoch: int, step: int, learning_rate: float, ranks: Row, profiled: bool
    ) -> None:
        finished = np.maximum(1, ranks.num_steps)
        sums = (ranks.data_ms, ranks.forward_ms, ranks.backward_ms, ranks.optimizer_ms)
        data, forward, backward, optimizer = (of_rank / finished for of_rank in sums)
        step_ms = float(ranks.step_ms.max())
        self.writer.write(
            WindowTimed(
                epoch=epoch,
                step=step,
                num_steps=int(ranks.issued_steps[0]),
                samples_per_s=1000 * self.spec.global_batch / step_ms,
                train_loss=self._mean_loss(ranks),
                learning_rate=learning_rate,
                step_ms=step_ms,
                data_ms=float(data.max()),
                forward_ms=float(forward.max()),
                backward_ms=float(backward.max()),
                optimizer_ms=float(optimizer.max()),
                step_ms_min=float(ranks.step_ms.min()),
                data_ms_min=float(data.min()),
                forward_ms_min=float(forward.min()),
                backward_ms_min=float(backward.min()),
                optimizer_ms_min=float(optimizer.min()),
                host_ms=float((ranks.host_ms / finished).max()),
                memory_bytes=int(ranks.memory_bytes.max()) or None,
                profiled=profiled,
            )
        )

    def _mean_loss(self, ranks: Row) -> float:
        return float(ranks.loss_sum[self.losing].sum() / ranks.num_steps[self.losing].sum())

    def _refuse_non_finite(self, step: int, learning_rate: float, ranks: Row) -> None:
        if not np.isfinite(self._mean_loss(ranks)):
            raise self.watch.error(
                self.control, step=step, learning_rate=learning_rate, classes=self.classes,
                bad_ranks=np.flatnonzero(~np.isfinite(ranks.loss_sum)),
            )  # fmt: skip

    def _write_rank(
        self, epoch: int, step: int, step_ms: float, sums: StepSums, profiled: bool
    ) -> None:
        n = max(1, sums.num_steps)
        line = RankWindow(
            t=time.time(), epoch=epoch, step=step, num_steps=sums.num_steps,
            step_ms=step_ms, data_ms=sums.data_ms / n, forward_ms=sums.forward_ms / n,
            backward_ms=sums.backward_ms / n, optimizer_ms=sums.optimizer_ms / n,
            host_ms=sums.host_ms / n, profiled=profiled,
        )  # fmt: skip
        self.rank_log.write(msgspec.json.encode(line) + b"\n")

    def _peak_memory(self) -> int:
        return int(torch.cuda.max_memory_allocated(self.device)) if self._on_gpu else 0

    @property
    def _on_gpu(self) -> bool:
        return bool(self.device.type == "cuda")
