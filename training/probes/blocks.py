"""Free-running steps in blocks: the device is waited for between blocks, never inside one.

All ranks take the same number of steps, since every length follows from exchanged times.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple

from training.probes.bench import Bench
from training.timing import StepSums

NUM_BLOCKS = 5
MIN_BLOCKS = 3
MAX_BLOCK_STEPS = 200
# cuDNN tries algorithms, DDP rebuilds its buckets in the second step, the allocator settles.
SETTLING_STEPS = {"cpu": 3, "cuda": 10}
PACE_STEPS = 2
WARM_SHARE = 0.2


class Block(NamedTuple):
    """Per step: seconds of the slowest rank, and the sums of this rank's parts over `num_steps`."""

    step_s: float
    num_steps: int
    sums: StepSums


def settle(bench: Bench) -> None:
    """The steps in which things are chosen and built."""
    for _ in range(SETTLING_STEPS[bench.engine.device.type]):
        bench.step()


def timed_blocks(
    bench: Bench, seconds: float, step: Callable[[], None] | None = None
) -> list[Block]:
    """About `seconds` of `step` (the bench's own where none is given), after a warm-up beside it.

    Five blocks, of one step at least; three where a step takes longer than a fifth of the time. A
    collective of the side group. Call `settle` first.
    """
    step = step or bench.step
    pace_s = _block(bench, PACE_STEPS, step).step_s
    _block(bench, _steps(WARM_SHARE * seconds, pace_s), step)
    num_blocks = max(MIN_BLOCKS, min(NUM_BLOCKS, int(seconds / pace_s)))
    num_steps = _steps(seconds / num_blocks, pace_s)
    return [_block(bench, num_steps, step) for _ in range(num_blocks)]


def _steps(seconds: float, pace_s: float) -> int:
    return max(1, min(MAX_BLOCK_STEPS, round(seconds / pace_s)))


def _block(bench: Bench, num_steps: int, step: Callable[[], None]) -> Block:
    bench.engine.synchronize()
    bench.control.gather([])  # All ranks begin together.
    begin = time.perf_counter()
    for _ in range(num_steps):
        step()
    bench.engine.synchronize()
    spent = time.perf_counter() - begin
    sums = bench.trainer.timer.drain(wait=True)
    bench.trainer.watch.forget(num_steps)
    slowest = float(bench.control.gather([spent]).max())
    return Block(step_s=slowest / num_steps, num_steps=num_steps, sums=sums)
