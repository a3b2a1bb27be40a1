"""What a run has left for the readers of traces and of NCCL's logs, and how to ask for more."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

from ringside.errors import RunDirError
from ringside.profile_request import ask_for_profile
from ringside.run import fold_run
from ringside.rundir import RunDir, find_run, runs_root
from ringside.words import say


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
    print(say("following.records", run=run.name, n=num_steps))
    print(say("following.read_traces", run=run.name))
    return 0


def _run_of(path: Path) -> RunDir | None:
    """The run that a word names; None for anything that exists or looks like a path."""
    if path.exists() or len(path.parts) != 1 or path.suffix in (".json", ".gz", ".log", ".txt"):
        return None
    run = find_run(runs_root(), str(path))
    print(say("following.run", run=run.id, path=run.path), file=sys.stderr)
    return run


def _traces_of(run: RunDir) -> Path:
    if not any(run.trace.glob("*.json.gz")):
        key = "no_traces_over" if fold_run(run).final else "no_traces_yet"
        raise RunDirError(say(f"following.{key}", run=run.name))
    return Path(run.trace)


def _logs_of(run: RunDir) -> Path:
    record = fold_run(run)
    if not any(run.nccl.glob("*.log")) and record.spec is not None:
        spec = record.spec
        if spec.device == "cpu":
            raise RunDirError(say("following.no_log_on_cpu", run=run.name))
        if spec.num_processes == 1:
            raise RunDirError(say("following.no_log_of_one", run=run.name))
    return run.path
