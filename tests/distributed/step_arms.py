"""Launched by a test: measures arms one after the other and writes what came of them.

    accelerate launch ... step_arms.py ARMS OUT

ARMS is a JSON list of [spec, reduces, synthetic] with two processes each. OUT gets for each the
Experiment or the refusal, and then how far the ranks' weights are apart after steps of the first
spec as it is and after steps without reduction.
"""

from __future__ import annotations

import sys
from pathlib import Path

import msgspec
import torch

from ringside.errors import SetupError
from ringside.measurements import Experiment
from ringside.spec import RunSpec
from training.probes.arms import alone, measure_arm
from training.probes.bench import Bench

SECONDS = 0.3


def main(arms_path: str, out: str) -> None:
    arms = msgspec.json.decode(Path(arms_path).read_bytes(), type=list[tuple[RunSpec, bool, bool]])
    found = [measured(*arm) for arm in arms]
    apart = distances(arms[0][0])
    if torch.distributed.get_rank() == 0:
        Path(out).write_bytes(msgspec.json.encode([found, apart]))
    torch.distributed.destroy_process_group()


def measured(spec: RunSpec, reduces: bool, synthetic: bool) -> Experiment | str:
    try:
        return measure_arm(spec, "many", seconds=SECONDS, reduces=reduces, synthetic=synthetic)
    except SetupError as error:
        return str(error)


def distances(spec: RunSpec) -> list[float]:
    bench = Bench(spec, synthetic=False)
    found = []
    for step in (bench.step, alone(bench)):
        for _ in range(3):
            step()
        own = [float(p.double().sum()) for p in bench.engine.plain.parameters()]
        sums = bench.control.gather(own)
        found.append(float(abs(sums[0] - sums[1]).max()))
    return found


main(*sys.argv[1:])
