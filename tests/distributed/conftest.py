"""Real runs through the real supervisor and `accelerate launch`, one per preset and session.

What several files look at is launched once, by whichever worker of pytest-xdist asks first.
"""

from __future__ import annotations

import functools
import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from filelock import FileLock

from ringside.hardware import read_hardware
from ringside.launch.local import create_run, start, start_run
from ringside.request import RunRequest, resolve
from ringside.run import RunRecord, fold_run
from ringside.rundir import RunDir
from ringside.spec import RunSpec

TIMEOUT_S = 240
MODEL, DATA = "test_resnet", "products:ci"


def wait_for_end(run: RunDir, timeout_s: float = TIMEOUT_S) -> RunRecord:
    """The record of a run that has ended; fails with its console when it does not end."""
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        record = fold_run(run)
        if record.final:
            return record
        time.sleep(0.2)
    pytest.fail(f"{run.id} did not end:\n{run.console.read_text()[-3000:]}")


def first_on_path(folder: Path) -> str:
    """A PYTHONPATH that begins with `folder` and keeps what was there."""
    return os.pathsep.join(filter(None, [str(folder), os.environ.get("PYTHONPATH")]))


@pytest.fixture(scope="session")
def session_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the session's shared runs live; a space and a quote in the name, on purpose."""
    base = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        base = base.parent  # of all workers
    root = base / "runs of o'brien"
    root.mkdir(exist_ok=True)
    return root


@pytest.fixture(scope="session")
def make_request() -> Callable[..., RunSpec]:
    """A spec of the small job on this machine: `make_request("ddp", epochs=1)`."""

    def make(preset: str, **fields: object) -> RunSpec:
        request = {"data": DATA, "model": MODEL, "epochs": 2, "batch": 64, **fields}
        return resolve(RunRequest(preset=preset, **request), read_hardware())

    return make


@pytest.fixture(scope="session")
def once(session_root: Path) -> Callable[..., RunDir]:
    """`once(name, make)`: the run that `make()` leaves, which is called once in all workers."""

    def get(name: str, make: Callable[[], RunDir]) -> RunDir:
        made = session_root / f"{name}.made"
        with FileLock(session_root / f"{name}.lock"):
            if not made.exists():
                made.write_text(make().id)
        return RunDir(session_root / made.read_text())

    return get


@pytest.fixture(scope="session")
def finished_run(
    session_root: Path, make_request: Callable[..., RunSpec], once: Callable[..., RunDir]
) -> Callable[[str], RunRecord]:
    """The completed run of a preset, started once a session."""

    def make(preset: str) -> RunDir:
        run = start_run(make_request(preset), read_hardware(), session_root)
        wait_for_end(run)
        return run

    @functools.cache
    def get(preset: str) -> RunRecord:
        return fold_run(once(preset, lambda: make(preset)))

    return get


@pytest.fixture(scope="session")
def interrupted_run(
    session_root: Path, make_request: Callable[..., RunSpec], once: Callable[..., RunDir]
) -> Callable[[str], RunDir]:
    """The run of a preset that was told to stop after its first epoch; as if killed there."""

    def make(preset: str) -> RunDir:
        run = create_run(make_request(preset), read_hardware(), session_root)
        run.request("stop-after-epoch")
        start(run)
        assert wait_for_end(run).state == "stopped"
        return run

    return lambda preset: once(f"{preset} interrupted", lambda: make(preset))
