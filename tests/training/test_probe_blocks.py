"""Blocks of a step that images come too slowly for: by a loader and a device made of a clock."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader

from training.buffered import Buffered, buffered
from training.input.batches import SyntheticBatches
from training.probes import blocks
from training.probes.blocks import settle, timed_blocks
from training.timing import StepSums

PREFETCH = 2


class Clock:
    """Seconds that pass only where something is said to take them."""

    def __init__(self) -> None:
        self.now = 0.0

    def perf_counter(self) -> float:
        return self.now


class Workers:
    """As DataLoader's: in order, each with PREFETCH batches to make, all started together."""

    def __init__(self, clock: Clock, num: int, seconds: float) -> None:
        self.clock, self.num, self.seconds = clock, num, seconds
        self.ends = [0.0] * num
        self.taken: list[float] = []

    def __iter__(self) -> Iterator[None]:
        return self

    def __next__(self) -> None:
        number = len(self.taken)
        worker, before = number % self.num, number - PREFETCH * self.num
        asked = self.taken[before] if before >= 0 else 0.0
        self.ends[worker] = max(self.ends[worker], asked) + self.seconds
        self.clock.now = max(self.clock.now, self.ends[worker])
        self.taken.append(self.clock.now)


class Bench:
    """A step that waits for `k` batches of `data_s` each and then computes `step_s`."""

    def __init__(
        self, clock: Clock, num_workers: int, data_s: float, step_s: float, k: int = 1
    ) -> None:
        self.clock, self.step_s, self.k = clock, step_s, k
        self.stream = Workers(clock, num_workers, num_workers * data_s)
        self.buffered = Buffered(PREFETCH * num_workers, num_workers)
        self.engine = SimpleNamespace(device=torch.device("cuda"), synchronize=lambda: None)
        self.control = SimpleNamespace(gather=lambda values: np.array([values]))
        self.spec = SimpleNamespace(training=SimpleNamespace(accumulation_steps=k))
        self.trainer = SimpleNamespace(
            timer=SimpleNamespace(drain=self.drain), watch=SimpleNamespace(forget=lambda _: None)
        )
        self.waited = 0.0

    def step(self) -> None:
        before = self.clock.now
        for _ in range(self.k):
            next(self.stream)
        self.waited += self.clock.now - before
        self.clock.now += self.step_s

    def drain(self, *, wait: bool) -> StepSums:
        sums = StepSums(0, 1000 * self.waited, 0.0, 0.0, 0.0, 0.0, 0.0)
        self.waited = 0.0
        return sums


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> Any:
    def measure(*how: Any, seconds: float = 5.0, pause_s: float = 0.0, **more: Any) -> Any:
        clock = Clock()
        monkeypatch.setattr(blocks, "time", clock)
        bench: Any = Bench(clock, *how, **more)
        settle(bench)
        clock.now += pause_s  # While it lasts, the workers fill all there is to fill.
        begin = clock.now
        found = timed_blocks(bench, seconds)
        return SimpleNamespace(
            blocks=found, spent_s=clock.now - begin,
            middle=statistics.median(block.step_s for block in found),
        )  # fmt: skip

    return measure


@pytest.mark.parametrize(
    ("num_workers", "data_s", "step_s", "seconds"),
    [
        (15, 0.5, 0.25, 5.0), (7, 0.4, 0.2, 5.0), (15, 0.5, 0.02, 5.0), (15, 0.1, 0.02, 5.0),
        (7, 0.1, 0.055, 6.0), (15, 0.08, 0.055, 5.0), (3, 0.06, 0.055, 5.0), (1, 0.5, 0.25, 5.0),
    ],
)  # fmt: skip
@pytest.mark.parametrize("pause_s", [0.0, 100.0], ids=["from the start", "with all buffers full"])
def test_a_starved_step_is_seen_in_every_block(
    measured: Any, num_workers: int, data_s: float, step_s: float, seconds: float, pause_s: float
) -> None:
    found = measured(num_workers, data_s, step_s, seconds=seconds, pause_s=pause_s)
    assert len(found.blocks) >= 3
    for block in found.blocks:
        assert block.step_s == pytest.approx(data_s, rel=0.02)
    waits = [block.sums.data_ms / block.num_steps for block in found.blocks]
    assert statistics.mean(waits) == pytest.approx(1000 * (data_s - step_s), rel=0.05)
    assert found.spent_s < 9 * seconds


def test_a_step_of_several_batches_holds_whole_bursts_too(measured: Any) -> None:
    found = measured(15, 0.1, 0.2, k=4, seconds=6.0)
    assert found.middle == pytest.approx(0.4, rel=0.02)
    assert {block.num_steps % 15 for block in found.blocks} == {0}


@pytest.mark.parametrize("num_workers", [1, 4, 15])
def test_a_step_that_is_fed_is_as_long_as_it_is(measured: Any, num_workers: int) -> None:
    """And about as long as was asked for is spent on it."""
    found = measured(num_workers, 0.04, 0.1)
    assert {round(block.step_s, 6) for block in found.blocks} == {0.1}
    assert len(found.blocks) >= 3
    timed_s = sum(block.num_steps * block.step_s for block in found.blocks)
    assert timed_s == pytest.approx(5, rel=0.3)
    assert found.spent_s < 2 * 5


def test_bursts_that_are_too_long_are_cut(measured: Any) -> None:
    """A burst takes 64 s, and no block can hold one."""
    found = measured(16, 4.0, 0.25, seconds=5.0)
    assert len(found.blocks) == 3
    assert found.spent_s < 9 * 5 + 3 * 64  # A step that waits cannot be cut short.
    assert {block.num_steps for block in found.blocks} < set(range(1, 16))


def test_what_lies_ready_is_what_the_loader_keeps() -> None:
    cpu, cuda = torch.device("cpu"), torch.device("cuda")
    data = torch.zeros(4)
    many: Any = DataLoader(data, num_workers=2, prefetch_factor=4)
    none: Any = DataLoader(data, num_workers=0)
    assert buffered(SimpleNamespace(loader=many, device=cpu)) == (8, 2)
    assert buffered(SimpleNamespace(loader=many, device=cuda)) == (11, 2)
    assert buffered(SimpleNamespace(loader=none, device=cuda)) == (0, 1)
    assert buffered(SyntheticBatches(1, 2, 8, cpu)) == (0, 1)
