"""Runs that use this machine's devices: beside them nothing can be measured."""

from __future__ import annotations

from pathlib import Path

from ringside.errors import LaunchError, RingsideError
from ringside.hardware import Hardware
from ringside.records import is_local
from ringside.run import IDLE_STATES, fold_run
from ringside.rundir import RunDir, list_run_dirs
from ringside.spec import RunSpec
from ringside.words import say


class DevicesInUseError(LaunchError):
    """Runs use the devices; the sentence names them."""


def require_idle(root: Path, hardware: Hardware) -> None:
    """DevicesInUseError while runs below `root` use the devices."""
    names = runs_on(root, hardware)
    if names:
        key = "occupied.by_one" if len(names) == 1 else "occupied.by_several"
        raise DevicesInUseError(say(key, names=", ".join(names), first=names[0]))


def runs_on(root: Path, hardware: Hardware) -> list[str]:
    """Names of the unfinished runs of this machine that are of its kind of device."""
    return [run.name for run in list_run_dirs(root) if _uses(run, hardware)]


def _uses(run: RunDir, hardware: Hardware) -> bool:
    if run.exit.exists():
        return False
    spec = run.read(run.spec, RunSpec)
    if spec is None or spec.device != hardware.device:
        return False
    try:
        record = fold_run(run)
    except RingsideError:
        return False  # written by a newer Ringside
    is_elsewhere = record.owner is not None and not is_local(record.owner)
    return not (record.state in IDLE_STATES or is_elsewhere)
