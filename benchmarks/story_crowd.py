"""Times what processes cost each other, for several models and batches in turn.

    accelerate launch --config_file FILE benchmarks/story_crowd.py SPECS.json OUT.json SECONDS

Started by `benchmarks/story.py`. Each step is that of `ringside.measurements.crowd`: DDP without
its reduction, so that no rank waits for another. Rank 0 writes what there is after each.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import msgspec
from estimate_ranks import forget_accelerate

from ringside.measurements import Crowded
from ringside.measurements.crowd import crowd_of
from ringside.rundir import write_atomic
from ringside.spec import RunSpec
from training.probes.arms import measure_arm
from training.train import end_process

ARM = "many_synthetic_without_reduction"


def main() -> int:
    """Time each of the requests for so many seconds."""
    specs = msgspec.json.decode(Path(sys.argv[1]).read_bytes(), type=list[RunSpec])
    found: list[Crowded] = []
    for spec in specs:
        forget_accelerate()
        found.append(crowded(spec, float(sys.argv[3])))
        if int(os.environ.get("RANK", "0")) == 0:
            write_atomic(Path(sys.argv[2]), msgspec.json.encode(found))
    return 0


def crowded(spec: RunSpec, seconds: float) -> Crowded:
    """Blocks of the slowest rank."""
    (arm,) = measure_arm(crowd_of(spec), ARM, seconds=seconds, reduces=False, synthetic=True).arms
    step_us = tuple(1000 * ms for ms in arm.step_ms)
    return Crowded(num_processes=spec.num_processes, batch=spec.micro_batch, step_us=step_us)


if __name__ == "__main__":
    end_process(main())
