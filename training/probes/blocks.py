"""Free-running steps in blocks: the device is waited for between blocks, never inside one.

All ranks take the same number of steps, since every length follows from exchanged times.

Loader workers start together and so end together: batches come in bursts of as many as there are
workers. What lies ready is used up before the clock starts, and a block holds whole bursts, for
between two bursts a starved step looks like any other.
"""

from __future__ import annotations

import math
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
LONGEST = 5.0
"""All blocks may take so many times the seconds asked for, for the sake of whole bursts."""


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

    Five blocks, of one burst at least; three where a burst takes longer than a fifth of the time.
    They take LONGEST times the time at most: where not even three bursts fit, blocks are shorter
    than a burst, and only their mean says something. A collective of the side group. Call `settle`
    first.
    """
    step = step or bench.step
    burst = _use_up(bench, seconds)
    pace_s = _warm_up(bench, seconds, burst, step)
    num_blocks = max(MIN_BLOCKS, min(NUM_BLOCKS, int(seconds / (burst * pace_s))))
    longest = max(1, int(LONGEST * seconds / (num_blocks * pace_s)))
    num_steps = min(longest, _whole_bursts(seconds / num_blocks, pace_s, burst))
    return [timed_block(bench, num_steps, step) for _ in range(num_blocks)]


def timed_block(bench: Bench, num_steps: int, step: Callable[[], None] | None = None) -> Block:
    """`num_steps` that all ranks begin together. A collective of the side group."""
    step = step or bench.step
    bench.engine.synchronize()
    bench.control.gather([])
    begin = time.perf_counter()
    for _ in range(num_steps):
        step()
    return _block(bench, begin, num_steps)


def _use_up(bench: Bench, limit_s: float) -> int:
    """Take batches that lie ready, in `limit_s` or one burst; the steps that a burst lasts.

    No step is made with them: beside one, a loader that is a little too slow would fill up again.
    """
    ready, num_at_once = map(int, bench.control.gather([*bench.buffered]).max(axis=0))
    begin = time.perf_counter()
    for _ in range(ready + 1 if ready else 0):  # The last one is waited for.
        next(bench.stream)
        if bench.control.gather([time.perf_counter() - begin]).max() > limit_s:
            break
    # After so many steps of k batches each, bursts and steps end together again.
    return num_at_once // math.gcd(num_at_once, bench.spec.training.accumulation_steps)


def _warm_up(bench: Bench, seconds: float, burst: int, step: Callable[[], None]) -> float:
    """Steps for a share of the time, one burst at least; seconds a step at the end of it."""
    bench.engine.synchronize()
    begin, num_steps = time.perf_counter(), 0
    while num_steps < max(PACE_STEPS, burst):
        step()
        num_steps += 1
        # Steps can take any time, and nothing is known of them yet.
        if bench.control.gather([time.perf_counter() - begin]).max() > 2 * seconds:
            break
    pace_s = _block(bench, begin, num_steps).step_s
    rest_s = WARM_SHARE * seconds - num_steps * pace_s
    if rest_s < burst * pace_s:
        return pace_s
    return timed_block(bench, _whole_bursts(rest_s, pace_s, burst), step).step_s


def _whole_bursts(seconds: float, pace_s: float, burst: int) -> int:
    """Steps for about so long: whole bursts, one at least."""
    return burst * max(1, round(min(MAX_BLOCK_STEPS, seconds / pace_s) / burst))


def _block(bench: Bench, begin: float, num_steps: int) -> Block:
    bench.engine.synchronize()
    spent = time.perf_counter() - begin
    sums = bench.trainer.timer.drain(wait=True)
    bench.trainer.watch.forget(num_steps)
    slowest = float(bench.control.gather([spent]).max())
    return Block(step_s=slowest / num_steps, num_steps=num_steps, sums=sums)
