"""Trains several runs in turn, in the processes of one launch; started by `benchmarks/story.py`.

    accelerate launch --config_file FILE benchmarks/story_ranks.py TURNS.json WINDOW_S OWNER.json

TURNS.json: pairs of a prepared run directory and a free port. Each run has its own process group
and the environment of a fresh launch, and is trained by the trainer's own `main`. What they share
is what a process loads: libraries, kernels, cuDNN's choices. The launch ends with the first run
that fails. A window is `WINDOW_S` seconds long instead of one.
"""

from __future__ import annotations

import gc
import os
import sys
import threading
import time
from pathlib import Path

import msgspec
import torch
from accelerate.state import AcceleratorState, GradientState

from ringside.identity import ProcessIdentity, is_alive
from ringside.launch.plan import LaunchPlan
from ringside.records import write_exit
from ringside.rundir import RunDir
from training import control, train

POLL_S = 1.0


def main() -> int:
    """0 when every run was completed."""
    turns = msgspec.json.decode(Path(sys.argv[1]).read_bytes(), type=list[tuple[str, int]])
    control.PULSE_S = float(sys.argv[2])
    end_with(msgspec.json.decode(Path(sys.argv[3]).read_bytes(), type=ProcessIdentity))
    fresh = dict(os.environ)
    for path, port in turns:
        run = RunDir(Path(path))
        begin_anew(fresh, run, port)
        code = train.main(["--run-dir", path])
        if code:
            return code
        if int(os.environ.get("RANK", "0")) == 0:
            write_exit(run, state="completed", reason="Completed.", return_code=0)
    return 0


def begin_anew(fresh: dict[str, str], run: RunDir, port: int) -> None:
    """Leave of the run before what another process would have to load again, and nothing else."""
    plan = run.read(run.plan, LaunchPlan)
    os.environ.clear()
    os.environ.update(fresh | (plan.environment if plan else {}))
    if "RANK" in fresh:
        # The keys of an earlier group stay in the agent's store; rank 0 opens one on the new port.
        os.environ.update(MASTER_PORT=str(port), TORCHELASTIC_USE_AGENT_STORE="False")
    AcceleratorState._reset_state(reset_partial_state=True)
    GradientState._reset_state()
    torch._dynamo.reset()
    gc.collect()  # Trainer, windows and DDP refer to each other.
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()


def end_with(owner: ProcessIdentity) -> None:
    """End at once when the benchmark is gone: torch elastic gives ranks a session of their own."""

    def watch() -> None:
        while is_alive(owner):
            time.sleep(POLL_S)
        os._exit(1)

    threading.Thread(target=watch, name="owner", daemon=True).start()


if __name__ == "__main__":
    train.end_process(main())  # NCCL's threads may outlive a clean end by minutes.
