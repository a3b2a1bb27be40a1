"""Whether the disk of the runs has room for the checkpoints.

A run keeps `best` and `last`, and writes a new one beside the old one before it replaces it. What
one takes is looked up at an earlier run of the same model and optimizer, else counted from the
weights where the model was measured: float32 weights, and for `last` the optimizer's state.
"""

from __future__ import annotations

from pathlib import Path

from ringside.checkpoints import WEIGHTS
from ringside.machine.host import disk_bytes
from ringside.measurements.store import Store
from ringside.preflight.case import Case
from ringside.preflight.items import Remark, remark
from ringside.rundir import list_run_dirs
from ringside.spec import RunSpec

CODE, ORDER = "disk", 55

GIB = 2**30
RECENT_RUNS = 50
LEAST_BYTES = 2 * GIB
"""Said to be little where no size is known: logs, traces and the checkpoints of most models."""


def check(case: Case) -> Remark | None:
    _, free = disk_bytes(case.root)
    if free is None:
        return None
    need = None if case.spec is None else checkpoint_bytes(case.root, case.spec)
    if need is None:
        return _unsized(free)
    values = {"free": free / GIB, "need": need / GIB, "folder": case.root}
    if free < need:
        return remark("error", "disk_full", **values)
    if free - need < GIB:
        return remark("warning", "disk_tight", **values)
    return remark("fine", "disk_fine", **values)


def _unsized(free: int) -> Remark:
    if free < LEAST_BYTES:
        return remark("warning", "disk_low", free=free / GIB)
    return remark("fine", "disk_unsized", free=free / GIB)


def checkpoint_bytes(root: Path, spec: RunSpec) -> int | None:
    """What a run's checkpoints take at most, in the moment of saving; None where nobody knows."""
    for run in list_run_dirs(root)[:RECENT_RUNS]:
        last = run.checkpoints / "last"
        if not (last / WEIGHTS).is_file():
            continue
        other = run.read(run.spec, RunSpec)
        if other is not None and _alike(spec) == _alike(other):
            # best + last + the one being written, which is a `last` at most.
            return _size(last / WEIGHTS) + 2 * sum(map(_size, last.iterdir()))
    found = Store(root).description(spec)
    if found is None:
        return None
    weights = found.parameter_bytes + found.buffer_bytes
    return weights + 2 * (weights + found.optimizer_state_bytes)


def _alike(spec: RunSpec) -> tuple[object, ...]:
    settings = spec.training
    return (spec.model, settings.optimizer, settings.freeze, settings.ema_decay is not None)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
