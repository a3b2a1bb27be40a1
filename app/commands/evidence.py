"""What a run has left for the readers of traces and of NCCL's logs, and how to ask for more."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

from ringside.errors import RunDirError
from ringside.profile_request import ask_for_profile
from ringside.run import fold_run
from ringside.rundir import RunDir, find_run, runs_root


def trace_paths(paths: Iterable[Path]) -> list[Path]:
    """Paths as they are; a word that is no path names a run, of which the traces are meant.

    Raises RunDirError for a run without traces, or a word that names none.
    """
    return [path if (run := _run_of(path)) is None else _traces_of(run) for path in paths]


def nccl_paths(paths: Iterable[Path]) -> list[Path]:
    """Paths as they are; a word that is no path names a run, of which NCCL's logs are meant."""
    return [path if (run := _run_of(path)) is None else _logs_of(run) for path in paths]


def profile(run_id: str, *, num_steps: int) -> int:
    """Ask a run under way to record its next steps; it answers in its events."""
    run = find_run(runs_root(), run_id)
    ask_for_profile(run, num_steps)
    print(
        f"{run.name} records its next {num_steps} steps; if fewer are left in the epoch, later.\n"
        f"Then read them: ringside trace {run.name}"
    )
    return 0


def _run_of(path: Path) -> RunDir | None:
    """The run that a word names; None for anything that exists or looks like a path."""
    if path.exists() or len(path.parts) != 1 or path.suffix in (".json", ".gz", ".log", ".txt"):
        return None
    run = find_run(runs_root(), str(path))
    print(f"run {run.id} in {run.path}", file=sys.stderr)
    return run


def _traces_of(run: RunDir) -> Path:
    if not any(run.trace.glob("*.json.gz")):
        how = (
            "start one with --profile 5: ringside run PRESET --profile 5"
            if fold_run(run).final
            else f"ask for them while it runs: ringside profile {run.name}"
        )
        raise RunDirError(f"{run.name} has no traces; {how}.")
    return Path(run.trace)


def _logs_of(run: RunDir) -> Path:
    record = fold_run(run)
    if not any(run.nccl.glob("*.log")) and record.spec is not None:
        spec = record.spec
        if spec.device == "cpu":
            raise RunDirError(f"{run.name} ran on a CPU, through gloo: NCCL has no log of it.")
        if spec.num_processes == 1:
            raise RunDirError(f"{run.name} had one process: NCCL has no log of it.")
    return run.path
