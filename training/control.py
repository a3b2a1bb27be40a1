"""Agreement between ranks: requests and window figures, on a CPU side group.

Ranks may only leave a loop together, or a collective hangs. Every K optimizer steps (K chosen by
rank 0 so that it is about a second at most) all ranks exchange one short vector over gloo: rank 0's
view of the request files, its next K, and each rank's timings. No device collective is added.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import numpy as np
import torch
from torch import distributed

from ringside.profile_request import asked_steps
from ringside.rundir import RunDir
from training.progress_mark import ProgressMark

REQUESTS = ("stop", "stop-after-epoch", "checkpoint", "profile")
ONCE = frozenset({"checkpoint", "profile"})
"""Requests that are done once and forgotten."""
PULSE_S = 1.0
MAX_STEPS = 500


class Control:
    """The side group and the schedule of exchanges; `world` 1 needs no group.

    A rank that waits here for another one longer than `timeout_s` seconds raises an error. `mark`
    tells where this rank is, and `came_on` is called after each exchange.
    """

    def __init__(self, rank: int, world: int, timeout_s: float = 600) -> None:
        self.rank, self.world = rank, world
        self.run: RunDir | None = None
        self.mark = ProgressMark(rank)
        self.came_on: Callable[[], None] = lambda: None
        self.group: Any = None
        if world > 1:
            self.group = distributed.new_group(backend="gloo", timeout=timedelta(seconds=timeout_s))
        self.granted: set[str] = set()
        self._steps_left = 1
        self._steps = 0
        self._since = time.perf_counter()

    def due(self) -> bool:
        """Count one step; True when it ends with an exchange (the same step on all ranks)."""
        self._steps += 1
        self._steps_left -= 1
        return self._steps_left <= 0

    def exchange(self, values: Sequence[float] = ()) -> np.ndarray:
        """Exchange `values`, equally many on every rank; returns float64 [world, len(values)]."""
        table = self.gather([*self._outlook(), *values])
        mask, self._steps_left = int(table[0, 0]), int(table[0, 1])
        self.granted |= {name for bit, name in enumerate(REQUESTS) if mask >> bit & 1}
        self._steps, self._since = 0, time.perf_counter()
        return table[:, 2:]

    def restart(self) -> None:
        """A new phase: its steps have another length, so exchange after its first one."""
        self._steps_left, self._steps, self._since = 1, 0, time.perf_counter()

    def gather(self, values: Sequence[float]) -> np.ndarray:
        """float64 [world, len(values)] with one row per rank."""
        row = torch.tensor(values, dtype=torch.float64)
        rows = [torch.empty_like(row) for _ in range(self.world)]
        with self._exchanging():
            if self.world == 1:
                rows = [row]
            else:
                distributed.all_gather(rows, row, group=self.group)
        return torch.stack(rows).numpy()

    def share(self, value: Any) -> Any:
        """Rank 0's picklable value on every rank."""
        box = [value]
        if self.world > 1:
            with self._exchanging():
                distributed.broadcast_object_list(box, src=0, group=self.group)
        return box[0]

    def collect(self, value: Any) -> list[Any] | None:
        """Every rank's picklable value, on rank 0 only."""
        if self.world == 1:
            return [value]
        box = [None] * self.world if self.rank == 0 else None
        with self._exchanging():
            distributed.gather_object(value, box, dst=0, group=self.group)
        return box

    def take(self, request: str) -> bool:
        """Whether a request was agreed; one of `ONCE` is done and forgotten."""
        if request not in self.granted:
            return False
        if request in ONCE:
            self.granted.discard(request)
            if self.run is not None and self.rank == 0:
                (self.run.requests / f"{request}.json").unlink(missing_ok=True)
        return True

    def take_profile(self) -> int:
        """Steps that somebody wants recorded, the same on all ranks; 0 when nobody does.

        A collective of the side group only where the request was agreed.
        """
        if "profile" not in self.granted:
            return 0
        asked = asked_steps(self.run) if self.run is not None and self.rank == 0 else 0
        self.take("profile")
        return int(self.share(asked))

    @contextmanager
    def _exchanging(self) -> Iterator[None]:
        """Marks the exchange; one that fails stays marked, to tell where this rank waited."""
        before = self.mark.activity
        self.mark.enter("exchange")
        yield
        self.mark.enter(before)
        self.came_on()

    def _outlook(self) -> tuple[float, float]:
        if self.rank != 0 or self.run is None:
            return 0.0, 1.0
        mask = sum(1 << bit for bit, name in enumerate(REQUESTS) if self.run.requested(name))
        step_s = (time.perf_counter() - self._since) / max(1, self._steps)
        return float(mask), float(max(1, min(MAX_STEPS, int(PULSE_S / max(step_s, 1e-6)))))
