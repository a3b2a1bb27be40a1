"""Commands that use a trained model: export, label. torch works in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from ringside.checkpoints import CheckpointName, find_model, read_about, read_thresholds
from ringside.errors import RunDirError
from ringside.labelling import make_rule
from ringside.launch.plan import import_environment
from ringside.rundir import ID_PATTERN, runs_root


def export(run_id: str, *, kind: str, checkpoint: CheckpointName, out: Path | None) -> int:
    """Make a folder that works without Ringside; by default beside where one stands."""
    folder = find_model(runs_root(), run_id, checkpoint)
    about = read_about(folder)
    target = out or Path(f"{_short_name(about.run)}-{checkpoint}-{kind}")
    if target.exists():
        raise RunDirError(f"{target} exists: choose another folder with --out.")
    return _in_torch("training.export", [str(folder), "--format", kind, "--out", str(target)])


def label(
    run_id: str, images: list[str], *, checkpoint: CheckpointName, top: int | None,
    threshold: str | None, as_json: bool,
) -> int:  # fmt: skip
    """Print the labels of pictures; 1 when one of them could not be used."""
    folder = find_model(runs_root(), run_id, checkpoint)
    # A mistake is refused here, before torch is loaded.
    make_rule(top, threshold, read_about(folder), read_thresholds(folder))
    options = ["--json"] if as_json else []
    if top is not None:
        options += ["--top", str(top)]
    if threshold is not None:
        options += ["--threshold", threshold]
    return _in_torch("training.label", [*options, "--", str(folder), *images])


def _short_name(run_id: str | None) -> str:
    """The two words of a run's id; what is none, or would be a path, is just a model."""
    if run_id is None or not ID_PATTERN.fullmatch(run_id):
        return "model"
    return "-".join(run_id.split("-")[2:])


def _in_torch(module: str, arguments: list[str]) -> int:
    """Run a module of the trainer with this terminal as its own; its exit code."""
    environment = os.environ | import_environment()
    sys.stdout.flush()
    argv = [sys.executable, "-m", module, *arguments]
    return subprocess.run(argv, env=environment, check=False).returncode
