"""Times several set-ups in one launch; started by `benchmarks/estimate.py`, once on every rank.

    accelerate launch --config_file FILE benchmarks/estimate_ranks.py SPECS.json OUT.json SECONDS

Set-ups of one kind, precision and batch are built side by side and timed in turns, so that drift
shows as spread and not as a difference between them. No profiler runs here.
"""

from __future__ import annotations

import itertools
import os
import sys
from pathlib import Path

import msgspec
import torch
from accelerate.state import AcceleratorState
from estimate_report import REPEATS, Timed

from ringside.rundir import write_atomic
from ringside.spec import RunSpec
from training.probes.bench import Bench
from training.probes.blocks import settle, timed_block

PACE_STEPS = 3
MEMORY_STEPS = 3


def main() -> int:
    """Time everything; rank 0 writes what there is after each group."""
    specs = msgspec.json.decode(Path(sys.argv[1]).read_bytes(), type=list[RunSpec])
    found: list[Timed] = []
    for _, group in itertools.groupby(specs, key=kind_of):
        found += time_group(list(group), float(sys.argv[3]))
        if int(os.environ.get("RANK", "0")) == 0:
            write_atomic(Path(sys.argv[2]), msgspec.json.encode(found))
    if torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()
    return 0


def kind_of(spec: RunSpec) -> tuple[str, str, int]:
    """What shares Accelerate's state and about the same memory."""
    settings = spec.accelerate
    return settings.distributed_type, settings.mixed_precision, spec.micro_batch


def time_group(specs: list[RunSpec], seconds: float) -> list[Timed]:
    """All set-ups of a group, in turns of `seconds` each."""
    forget_accelerate()
    benches: dict[int, Bench] = {}
    memory: dict[int, int | None] = {}
    problems: dict[int, str] = {}
    for index, spec in enumerate(specs):
        before = allocated()
        try:
            bench = Bench(spec, synthetic=True)
            settle(bench)
            benches[index], memory[index] = bench, peak_of(bench, before)
        except Exception as error:
            problems[index] = (str(error).splitlines() or [type(error).__name__])[0]
    counts = {index: num_steps(bench, seconds) for index, bench in benches.items()}
    times: dict[int, list[float]] = {index: [] for index in benches}
    for _, (index, bench) in itertools.product(range(REPEATS), benches.items()):
        times[index].append(1000 * timed_block(bench, counts[index]).step_s)
    for bench in benches.values():
        bench.close()
    return [
        Timed(
            spec=spec,
            step_ms=tuple(times.get(index, ())),
            memory_bytes=memory.get(index),
            problem=problems.get(index),
        )
        for index, spec in enumerate(specs)
    ]


def forget_accelerate() -> None:
    """Let the next set-up choose its strategy anew; the process group stays."""
    AcceleratorState._reset_state(reset_partial_state=True)
    for name in [name for name in os.environ if name.startswith(("FSDP_", "ACCELERATE_USE_"))]:
        del os.environ[name]
    torch._dynamo.reset()


def allocated() -> int:
    """Bytes that other set-ups hold."""
    return torch.cuda.memory_allocated() if torch.cuda.is_available() else 0


def peak_of(bench: Bench, before: int) -> int | None:
    """The largest peak over ranks; after settling, in which cuDNN takes more for trying."""
    if bench.engine.device.type != "cuda":
        return None
    torch.cuda.reset_peak_memory_stats()
    for _ in range(MEMORY_STEPS):
        bench.step()
    bench.engine.synchronize()
    peak = torch.cuda.max_memory_allocated() - before
    return int(bench.control.gather([float(peak)]).max())


def num_steps(bench: Bench, seconds: float) -> int:
    """Equal on all ranks, because the pace is exchanged."""
    return max(2, round(seconds / timed_block(bench, PACE_STEPS).step_s))


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    # NCCL's threads may outlive a clean end by minutes.
    os._exit(code)
