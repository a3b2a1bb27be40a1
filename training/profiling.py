"""When steps are profiled: on request in the middle of training, or after the last epoch.

Steps that are recorded in training are training steps like any other, off the clock. Those after
the last epoch use the live model with a learning rate of 0, and nothing is saved any more. They are
numbered on from the last one, for local SGD averages by number; afterwards all is as it was.
"""

from __future__ import annotations

import itertools
import time
from typing import Any

from torch.nn.parallel import DistributedDataParallel

from ringside.events import Profiled, Warned
from ringside.words import say
from training.buffered import buffered
from training.recorder import UNRECORDED, Recorder

SETTLE_S = 20.0
"""At most so long the loader's full buffers are used up before steps after training count."""

SETTLING_STEPS = 2

DDP_LOGGED_STEPS = 10
"""Optimizer steps of a process that DDP measures for its own log.

After each of its first ten synchronised forwards the next one waits for the CUDA events of the step
before, which takes as long as the exchange; then only every hundredth does. Such a wait would be
taken for a fault of the run. The eleventh step still waits: it is one of those before a recording.
An optimizer step has one synchronised forward, the first of a static graph two.
Source: `Reducer::should_collect_runtime_stats` and `Logger::set_runtime_stats_and_log` in
torch/csrc/distributed/c10d, kDDPRuntimeLoggingSampleRate.
"""


def is_logged(engine: Any) -> bool:
    """Whether DDP measures steps for its log with events of a GPU."""
    return engine.device.type == "cuda" and isinstance(engine.model, DistributedDataParallel)


class Profiling:
    """One rank's profiles; `trainer` is the loop whose steps are recorded."""

    def __init__(self, trainer: Any) -> None:
        self.trainer, self.control = trainer, trainer.control
        self.recorder = Recorder(trainer.engine.device, trainer.control)
        self.asked = 0
        self.num_in_epoch = 0
        self.has_run = False
        self._began = 0.0
        self._first_step: int | None = None

    @property
    def is_recording(self) -> bool:
        """Whether the loop must neither exchange nor save: it would stand in the trace."""
        return self.recorder.is_recording

    def begin_epoch(self) -> None:
        """No step of this epoch is recorded yet."""
        self.num_in_epoch = 0
        self._note_first_step()

    def ask(self, num_steps: int) -> None:
        """Somebody wants so many steps; 0 is nobody. The newest wish counts."""
        self.asked = num_steps or self.asked

    def goes_on(self) -> bool:
        """After a step: whether the next one is recorded. Begins what was asked for and fits.

        A stop comes first. What does not fit into the rest of an epoch waits for the next one, or
        for the end of training. While DDP logs it waits too, if it fits into the epoch afterwards.
        """
        if self.recorder.is_recording:
            return True
        steps = self.trainer.order.steps_per_epoch
        # At least one step of an epoch stays on the clock.
        num = min(self.asked, steps - 1 - UNRECORDED)
        left = steps - self.trainer.step_in_epoch
        if num < 1 or left < num + UNRECORDED or self.control.granted & {"stop"}:
            return False
        if 0 < self._num_logged() <= left - num - UNRECORDED:
            return False
        self.asked = 0
        self._begin(num)
        return True

    def step(self) -> None:
        """A recorded step is done; after the last one the traces are written."""
        self.num_in_epoch += 1
        self.recorder.step()
        if not self.recorder.is_recording:
            self._end()

    def after_training(self, num_steps: int) -> None:
        """Record steps that train nothing, unless a stop is asked for before they begin.

        While they are recorded nobody is listened to: an exchange would stand in the trace.
        """
        self._note_first_step()
        trainer, num_steps = self.trainer, max(num_steps, self.asked)
        if num_steps == 0 or self.control.take("stop"):
            return
        step = trainer.step
        try:
            is_recorded = self._record_after(num_steps)
        finally:
            trainer.step = step
        if is_recorded:
            self._write(after_training=True)

    def _record_after(self, num_steps: int) -> bool:
        """False for a stop before the first of them."""
        trainer = self.trainer
        stream = itertools.chain.from_iterable(iter(trainer.batches) for _ in itertools.count())
        trainer.order.first_step = 0
        trainer.engine.train_mode()
        for group in trainer.engine.optimizer.param_groups:
            group["lr"] = 0.0
        if not self._settle(stream):
            return False
        self._start(num_steps)
        while self.recorder.is_recording:
            self._step_beside(stream)
            self.recorder.step()
        trainer.timer.drain(wait=True)
        return True

    def _step_beside(self, stream: Any) -> None:
        """A step with a number of its own."""
        self.trainer.optimizer_step(stream)
        self.trainer.step += 1

    def _settle(self, stream: Any) -> bool:
        """Use up the batches that a new loader made ahead, then train on; False for a stop.

        Steps on full buffers would hide that a loader is too slow, and those that DDP logs would
        look as if the host waited. A step or two more settle.
        """
        ahead = buffered(self.trainer.batches).num_batches
        num_ready = int(self.control.gather([ahead])[:, 0].max())
        begin = time.perf_counter()
        for number in range(num_ready + self._num_logged() + SETTLING_STEPS):
            if number < num_ready:
                next(stream)
            else:
                self._step_beside(stream)
            spent = self.control.exchange([time.perf_counter() - begin])[:, 0].max()
            if self.control.take("stop"):
                return False
            if spent > SETTLE_S:
                break
        return True

    def _note_first_step(self) -> None:
        """Where this process began; a resumed run counts its steps on."""
        if self._first_step is None:
            self._first_step = self.trainer.step

    def _num_logged(self) -> int:
        """Steps that DDP still logs."""
        if self._first_step is None or not is_logged(self.trainer.engine):
            return 0
        return max(0, DDP_LOGGED_STEPS - (self.trainer.step - self._first_step))

    def _begin(self, num_steps: int) -> None:
        trainer = self.trainer
        trainer.engine.synchronize()
        trainer.windows.close(trainer.epoch, trainer.step, trainer.learning_rate, wait=True)
        self._began = time.perf_counter()
        self._start(num_steps)

    def _start(self, num_steps: int) -> None:
        run = self.control.run
        self.recorder.begin(num_steps, run.trace if run is not None else None)

    def _end(self) -> None:
        trainer = self.trainer
        trainer.engine.synchronize()
        trainer.windows.close(
            trainer.epoch, trainer.step, trainer.learning_rate, wait=True, profiled=True
        )
        self._write(after_training=False)
        if not self.has_run:
            trainer.writer.write(
                Warned(code="profile", message=say("noted.spoilt", step=trainer.step + 1))
            )
        self.has_run = True
        self.control.restart()
        trainer.off_the_clock(self._began)

    def _write(self, *, after_training: bool) -> None:
        trainer, run = self.trainer, self.control.run
        trainer.mark.enter("profile")
        files = self.recorder.write(run.trace) if run is not None else ()
        if files:
            trainer.writer.write(
                Profiled(
                    step=trainer.step, num_steps=self.recorder.num_steps,
                    files=tuple(f"trace/{file}" for file in files), after_training=after_training,
                )
            )  # fmt: skip
        if len(files) < self.control.world:
            trainer.writer.write(Warned(code="profile", message=self._missing(len(files))))

    def _missing(self, num_files: int) -> str:
        problem, numbers = self.recorder.problem, {"n": num_files, "num": self.control.world}
        if problem:
            return say("noted.traces_missing_because", problem=problem, **numbers)
        return say("noted.traces_missing", **numbers)
