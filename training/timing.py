"""Where a step goes: waiting for data, forward, backward, optimizer.

On a GPU the parts are measured by events in the stream and read only when they have passed, so
timing never makes the host wait for the device. On a CPU the clock is read directly.
"""

from __future__ import annotations

import contextlib
import time
from typing import NamedTuple

import torch

PARTS = ("forward", "backward", "optimizer")


class StepSums(NamedTuple):
    """Sums over the finished steps since the last reading; milliseconds, and the summed loss.

    `host_ms` is the host's time from the first mark of each part to its last, whatever the device
    did meanwhile: what it takes to issue the step.
    """

    num_steps: int
    data_ms: float
    forward_ms: float
    backward_ms: float
    optimizer_ms: float
    host_ms: float
    loss_sum: float


class _Step:
    """The marks of one optimizer step: pairs of (part, begin, end), waiting time, loss."""

    def __init__(self) -> None:
        self.spans: list[tuple[str, object, object]] = []
        self.before: object = None
        self.data_s = self.host_s = 0.0
        self.losses: list[torch.Tensor] = []


class StepTimer:
    """Collects marks of steps; `drain` returns sums over those that the device has finished."""

    def __init__(self, device: torch.device) -> None:
        self._cuda = device.type == "cuda"
        self._stream = torch.cuda.Stream(device) if self._cuda else None
        self._open = _Step()
        self._pending: list[_Step] = []
        self._last: object = None
        self._host_mark = 0.0

    def waited(self, seconds: float) -> None:
        """Host time spent waiting for the loader in this step."""
        self._open.data_s += seconds

    def start(self) -> None:
        """The first mark of a micro-step; what follows is the forward pass."""
        if not self._open.spans:
            self._open.before = self._last
        self._last = self._mark()
        self._host_mark = time.perf_counter()

    def end(self, part: str) -> None:
        """The part that began at the last mark ends here."""
        now = self._mark()
        self._open.spans.append((part, self._last, now))
        self._last = now
        host = time.perf_counter()
        self._open.host_s += host - self._host_mark
        self._host_mark = host

    def loss(self, value: torch.Tensor) -> None:
        """Keep the micro-step's mean loss on the device."""
        self._open.losses.append(value.detach())

    def step(self) -> None:
        """An optimizer step is complete."""
        self._pending.append(self._open)
        self._open = _Step()

    def drain(self, *, wait: bool = False) -> StepSums:
        """Sums over finished steps; with `wait` over all (synchronises, at the end of an epoch)."""
        if wait and self._cuda:
            torch.cuda.current_stream().synchronize()
        done = [step for step in self._pending if self._passed(step)]
        self._pending = self._pending[len(done) :]
        parts = dict.fromkeys(PARTS, 0.0)
        for step in done:
            for part, begin, end in step.spans:
                parts[part] += self._elapsed_ms(begin, end)
        waited = sum(self._waited_ms(step) for step in done)
        return StepSums(
            num_steps=len(done),
            data_ms=waited,
            forward_ms=parts["forward"],
            backward_ms=parts["backward"],
            optimizer_ms=parts["optimizer"],
            host_ms=1000 * sum(step.host_s for step in done),
            loss_sum=self._loss_sum(done),
        )

    def _waited_ms(self, step: _Step) -> float:
        """Waiting for the loader that cost something.

        On a GPU the host may wait while queued work runs; only what the device idled since the
        step before counts, and never more than the host waited.
        """
        host_ms = 1000 * step.data_s
        if not self._cuda or step.before is None:
            return host_ms
        return min(host_ms, self._elapsed_ms(step.before, step.spans[0][1]))

    def _mark(self) -> object:
        if not self._cuda:
            return time.perf_counter()
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def _passed(self, step: _Step) -> bool:
        last = step.spans[-1][2]
        return bool(last.query()) if isinstance(last, torch.cuda.Event) else True

    @staticmethod
    def _elapsed_ms(begin: object, end: object) -> float:
        if isinstance(begin, torch.cuda.Event) and isinstance(end, torch.cuda.Event):
            return float(begin.elapsed_time(end))
        return 1000 * (float(end) - float(begin))  # type: ignore[arg-type]

    def _loss_sum(self, steps: list[_Step]) -> float:
        """Sum over steps of the mean over micro-steps; a side stream keeps the queue running."""
        if not steps:
            return 0.0
        with torch.cuda.stream(self._stream) if self._stream else contextlib.nullcontext():
            means = [torch.stack(step.losses).mean() for step in steps]
            # In double the sum does not depend on where a window ends.
            return float(torch.stack(means).double().sum())
