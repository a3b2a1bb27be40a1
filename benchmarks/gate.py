"""Whether the gate tells real defects of an evaluation from none, on real runs over gloo.

    python benchmarks/gate.py --data FOLDER --runs FOLDER [--seeds 3] [--epochs 2] [--batch 16]

Six set-ups, each trained with every seed: one device; DDP on two processes with the same global
batch; FSDP on two, which computes the same another way; DDP whose BatchNorm statistics are those of
rank 0 alone at every evaluation (nobody averages them); DDP that loses those statistics (a copy of
the parameters without the buffers is evaluated); and DDP whose evaluation scores the padding that
makes ranks even a second time. The defects are planted by this file, in the processes that it
starts; the trainer itself has no such switch.
Then `ringside compare --gate` answers about each: FSDP against DDP, the others against one device.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ringside.libraries import built_in_folder
from ringside.rundir import list_run_dirs

ROOT = Path(__file__).resolve().parents[1]
SETUPS = {
    "single": ("single", 1, "nothing"),
    "ddp": ("ddp", 2, "nothing"),
    "fsdp": ("fsdp", 2, "nothing"),
    "statistics of rank 0": ("ddp", 2, "statistics"),
    "statistics lost": ("ddp", 2, "lost"),
    "padding counted twice": ("ddp", 2, "padding"),
}
"""By name: the preset, its processes, and what is planted."""

REFERENCES = {"fsdp": "ddp"}
"""What a set-up is held against, where that is not one device."""


def main(argv: list[str] | None = None) -> int:
    """Train what is missing, then print what the gate says."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", required=True)
    parser.add_argument("--runs", type=Path, required=True)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--batch", type=int, default=16)
    arguments = parser.parse_args(argv)
    names = {name: train_side(name, arguments) for name in SETUPS}
    print(f"single: {', '.join(names['single'])}")
    for name, runs in names.items():
        if name != "single":
            reference = REFERENCES.get(name, "single")
            print(f"\n{name} against {reference}: {', '.join(runs)}")
            for num_seeds in sorted({1, len(runs)}):
                ask(arguments.runs, runs[:num_seeds], names[reference][:num_seeds])
    return 0


def train_side(name: str, arguments: argparse.Namespace) -> list[str]:
    """Ids of the runs of a set-up, one a seed; those of an earlier call are used again."""
    found = []
    # What is refused needs no second seed.
    for seed in range(1 if SETUPS[name][2] == "padding" else arguments.seeds):
        note = arguments.runs / f"{name.replace(' ', '-')}.{seed}"
        if not note.exists():
            start = time.perf_counter()
            note.write_text(train(name, seed, arguments), encoding="utf-8")
            print(f"{name}, seed {seed}: {time.perf_counter() - start:.0f} s", file=sys.stderr)
        found.append(note.read_text(encoding="utf-8"))
    return found


def train(name: str, seed: int, arguments: argparse.Namespace) -> str:
    """One run through `accelerate launch`, with this file as the trainer; its id."""
    preset, processes, planted = SETUPS[name]
    arguments.runs.mkdir(parents=True, exist_ok=True)
    before = {run.id for run in list_run_dirs(arguments.runs)}
    argv = [
        sys.executable, "-m", "accelerate.commands.launch",
        "--config_file", str(built_in_folder() / f"{preset}.yaml"),
        "--num_processes", str(processes), str(Path(__file__).resolve()), f"planted={planted}",
        "--preset", preset, "--data", arguments.data, "--model", "test_resnet",
        "--epochs", str(arguments.epochs), "--batch", str(arguments.batch), "--seed", str(seed),
    ]  # fmt: skip
    environment = {**os.environ, "RINGSIDE_RUNS": str(arguments.runs)}
    done = subprocess.run(
        argv, env=environment, cwd=ROOT, capture_output=True, text=True, check=False
    )
    new = [run.id for run in list_run_dirs(arguments.runs) if run.id not in before]
    if done.returncode or len(new) != 1:
        raise SystemExit(f"{name}, seed {seed}: {new}: {done.stderr[-2000:]}")
    return new[0]


def ask(root: Path, candidate: list[str], reference: list[str]) -> None:
    """What the gate says, and its exit code."""
    argv = [
        sys.executable, "-m", "app", "compare", *candidate, "--against", ",".join(reference),
        "--gate",
    ]  # fmt: skip
    environment = {**os.environ, "RINGSIDE_RUNS": str(root)}
    done = subprocess.run(
        argv, env=environment, cwd=ROOT, capture_output=True, text=True, check=False
    )
    print(f"[exit {done.returncode}, {len(candidate)} a side]\n{done.stdout}{done.stderr}", end="")


def plant(what: str) -> None:
    """Put a defect into this process's trainer."""
    if what == "statistics":
        plant_statistics()
    elif what == "lost":
        plant_lost_statistics()
    elif what == "padding":
        plant_padding()


def plant_statistics() -> None:
    """The statistics of rank 0 are taken for those of all, as FSDP and DCP do."""
    from torch import distributed

    import training.engine
    from training.batchnorm import running_statistics

    def rank_0_wins(model: Any, world: int) -> None:
        for buffer in running_statistics(model) if world > 1 else []:
            distributed.broadcast(buffer, 0)

    training.engine.average_statistics = rank_0_wins


def plant_lost_statistics() -> None:
    """Every evaluation uses the statistics that BatchNorm begins with: mean 0, variance 1."""
    import torch

    import training.engine

    def lose(model: torch.nn.Module, _world: int) -> None:
        for module in model.modules():
            if isinstance(module, torch.nn.modules.batchnorm._BatchNorm):
                module.reset_running_stats()

    training.engine.average_statistics = lose


def plant_padding() -> None:
    """As a sampler with even batches does it: the first images stand in again at the end."""
    import msgspec
    import numpy as np

    from ringside.predictions import Predictions
    from ringside.scores import score
    from training.evaluation import BATCH, Evaluator

    exact: Callable[..., Any] = Evaluator._score

    def padded(self: Any, *given: Any) -> Any:
        evaluated, kept = exact(self, *given), self.last
        extra = -len(kept.targets) % (BATCH[self.engine.device.type] * self.engine.world)
        rows = np.concatenate([np.arange(len(kept.targets)), np.arange(extra)])
        probabilities, targets = kept.probabilities[rows], kept.targets[rows]
        self.last = Predictions(kept.epoch, kept.task, probabilities, targets, kept.num_trained)
        found = score(
            probabilities, targets, self.data.classes, kept.task, num_trained=kept.num_trained
        )
        names = ("auc_macro", "f1_macro", "map_macro")
        return msgspec.structs.replace(
            evaluated, num_evaluated=len(rows), **{name: getattr(found, name) for name in names}
        )

    Evaluator._score = padded  # type: ignore[method-assign]


if __name__ == "__main__":
    if len(sys.argv) > 1 and sys.argv[1].startswith("planted="):
        plant(sys.argv[1].removeprefix("planted="))
        from training.train import end_process
        from training.train import main as train_main

        end_process(train_main(sys.argv[2:]))
    sys.exit(main())
