"""Real runs through the real supervisor and `accelerate launch`, one per preset and session."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from ringside.hardware import read_hardware
from ringside.launch.local import start_run
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


@pytest.fixture(scope="session")
def session_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the session's shared runs live; a space and a quote in the name, on purpose."""
    return tmp_path_factory.mktemp("runs of o'brien")


@pytest.fixture(scope="session")
def make_request() -> Callable[..., RunSpec]:
    """A spec of the small job on this machine: `make_request("ddp", epochs=1)`."""

    def make(preset: str, **fields: object) -> RunSpec:
        request = {"data": DATA, "model": MODEL, "epochs": 2, "batch": 64, **fields}
        return resolve(RunRequest(preset=preset, **request), read_hardware())

    return make


@pytest.fixture(scope="session")
def finished_run(
    session_root: Path, make_request: Callable[..., RunSpec]
) -> Callable[[str], RunRecord]:
    """The completed run of a preset, started once a session."""

    @functools.cache
    def run(preset: str) -> RunRecord:
        return wait_for_end(start_run(make_request(preset), read_hardware(), session_root))

    return run
