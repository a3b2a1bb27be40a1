"""The same run from a terminal: one line that works when it is pasted into a shell."""

from __future__ import annotations

import shlex
import shutil
import sys
from pathlib import Path

from ringside.request import RunRequest
from ringside.rundir import runs_root
from ringside.spec import DataSpec

FLAGS = {
    "model": "--model", "epochs": "--epochs", "batch": "--batch", "processes": "--processes",
    "image_size": "--image-size", "separator": "--separator", "seed": "--seed",
    "weights": "--weights", "profile": "--profile",
}  # fmt: skip
SWITCHES = {"keep_global_batch": "--keep-global-batch", "queue": "--queue", "beside": "--beside"}


def terminal_command(
    request: RunRequest, data: DataSpec, root: Path, *, skip_bad: bool = False
) -> str:
    """`ringside run ...` for a request, quoted for a POSIX shell; paths in it are absolute."""
    words = [*_program(), "run", request.preset, "--data", data.label]
    if data.revision:
        words[-1] += f"@{data.revision}"
    for name, flag in FLAGS.items():
        value = getattr(request, name)
        if value is not None:
            words += [flag, str(value)]
    if request.gpus is not None:
        words += ["--gpus", ",".join(map(str, request.gpus))]
    words += [flag for name, flag in SWITCHES.items() if getattr(request, name)]
    if request.time_limit_s is not None:
        words += ["--time-limit", f"{request.time_limit_s}s"]
    words += ["--retry"] if request.retries else []
    words += ["--skip-bad"] if skip_bad else []
    for key, value in request.overrides.items():
        words += ["--set", f"{key}={value}"]
    return shlex.join([*_environment(root), *words])


def _program() -> list[str]:
    """`ringside` where a shell finds this one under the name, else the way to it."""
    script = Path(sys.executable).with_name("ringside")
    found = shutil.which("ringside")
    if found is not None and script.exists() and Path(found).samefile(script):
        return ["ringside"]
    return [str(script)] if script.exists() else [sys.executable, "-m", "app"]


def _environment(root: Path) -> list[str]:
    """The folder of runs where it is not the one that a shell would use."""
    return [] if runs_root() == root else ["env", f"RINGSIDE_RUNS={root}"]
