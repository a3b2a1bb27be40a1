"""What is executed for a run: the argument list, the environment delta and the working folder."""

from __future__ import annotations

import functools
import os
import shlex
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import msgspec

from ringside.identity import RUN_TOKEN
from ringside.records import launcher_above
from ringside.rundir import RunDir
from ringside.spec import FORMAT, RunSpec

SECRETS = frozenset({"RINGSIDE_PASSWORD", "RINGSIDE_VIEW_PASSWORD"})

_FINDS_OURS = """
import importlib.util, os, sys

def finds_ours(name):
    spec = importlib.util.find_spec(name)
    folders = list(spec.submodule_search_locations or ()) if spec else []
    return bool(folders) and os.path.samefile(folders[0], os.path.join(sys.argv[1], name))

sys.exit(0 if all(map(finds_ours, ("ringside", "training"))) else 1)
"""


class LaunchPlan(msgspec.Struct, frozen=True, kw_only=True):
    """What a launcher executes; `environment` is added to the environment of the launcher."""

    format: int = FORMAT
    argv: list[str]
    environment: dict[str, str] = {}
    cwd: str


def make_plan(spec: RunSpec, run: RunDir) -> LaunchPlan:
    """The plan of a run; starts nothing, so it is also the dry run.

    The working folder is the run directory: it exists as long as the run, holds no Python of the
    user's, and keeps what a library drops where it stands (core dumps) beside the other evidence.
    """
    return LaunchPlan(argv=_argv(spec, run), environment=_environment(spec, run), cwd=str(run.path))


def observed_plan() -> LaunchPlan:
    """The plan of a run that was launched by hand: its launcher's own words, as found above it.

    The launcher's environment cannot be told from the shell's, so the delta stays empty; what the
    ranks got is in the event `run_started`.
    """
    above = launcher_above()
    return LaunchPlan(argv=above[1] if above else [sys.executable, *sys.argv], cwd=os.getcwd())


def quoted_command(plan: LaunchPlan) -> str:
    """The plan as one line for a POSIX shell, to be read or pasted; nothing here executes it."""
    variables = [f"{name}={value}" for name, value in plan.environment.items()]
    return shlex.join([*(["env", *variables] if variables else []), *plan.argv])


def import_environment() -> dict[str, str]:
    """Variables that make a child of this process import this Ringside and nothing in its place.

    PYTHONSAFEPATH takes the working folder off the import path. PYTHONPATH is only added where
    the child would not find this `ringside` and `training` by itself: in a clone that is not
    installed, or behind a PYTHONPATH that holds folders of the same names.
    """
    environment = {"PYTHONSAFEPATH": "1"}
    inherited = os.environ.get("PYTHONPATH", "")
    if not _child_finds_ours(inherited):
        parts = [str(_packages_folder()), inherited]
        environment["PYTHONPATH"] = os.pathsep.join(part for part in parts if part)
    return environment


def without_secrets(environment: Mapping[str, str]) -> dict[str, str]:
    """A copy without the page's passwords, which are no business of what the page starts."""
    return {name: value for name, value in environment.items() if name not in SECRETS}


def _argv(spec: RunSpec, run: RunDir) -> list[str]:
    return [*launcher_argv(spec, run), "-m", "training.train", "--run-dir", str(run.path)]


def launcher_argv(spec: RunSpec, run: RunDir) -> list[str]:
    """The words of a launch up to the module that all ranks execute."""
    launcher = [sys.executable, "-m", "accelerate.commands.launch"]
    launcher += ["--config_file", str(run.accelerate)]
    if spec.accelerate.distributed_type != "NO":
        # torch elastic writes LOGS/none_*/attempt_0/RANK/{stdout,stderr}.log; 3 tees both. Without
        # a folder it makes one in $TMPDIR, also for one process, and leaves it there when killed.
        launcher += ["--log_dir", str(run.logs), "--tee", "3"]
    return launcher


def _environment(spec: RunSpec, run: RunDir) -> dict[str, str]:
    """The preset's variables first: nothing in a preset may replace what Ringside itself sets."""
    environment = dict(spec.environment)
    if spec.device == "cpu":
        environment["OMP_NUM_THREADS"] = str(spec.threads_per_device)
    elif spec.gpu_ids:
        environment["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID"
        environment["CUDA_VISIBLE_DEVICES"] = ",".join(map(str, spec.gpu_ids))
    environment |= import_environment()
    environment["PYTHONUNBUFFERED"] = "1"
    environment[RUN_TOKEN] = run.id
    return environment


def _packages_folder() -> Path:
    """The folder that holds `ringside` and `training`."""
    return Path(__file__).resolve().parents[2]


@functools.cache
def _child_finds_ours(python_path: str) -> bool:
    """Ask a child: only it knows what .pth files, editable installs and PYTHONPATH come to."""
    found = subprocess.run(
        [sys.executable, "-P", "-c", _FINDS_OURS, str(_packages_folder())],
        env=os.environ | {"PYTHONPATH": python_path},
        stderr=subprocess.DEVNULL,
        check=False,
    )
    return found.returncode == 0
