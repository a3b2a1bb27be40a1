"""A rank that raises, is killed, hangs or leaves: the run ends in time and names it.

The faults come from a `sitecustomize` of the test, which Python imports by itself; the product
knows nothing of them.
"""

from __future__ import annotations

from textwrap import dedent

import pytest

from ringside.hardware import read_hardware
from ringside.identity import run_processes
from ringside.launch.local import start_run
from ringside.marks import read_marks
from ringside.run import RunRecord
from ringside.rundir import RunDir

from tests.distributed.conftest import first_on_path, wait_for_end  # isort: skip

pytestmark = pytest.mark.distributed

HANG_S = 5  # `timeout_s` where a rank hangs; elsewhere it is long, and the run must not need it.
PATIENT_S = 60
FAULT_AT = 6
START_S = 40  # Two interpreters that import torch on busy cores.

# torch's loader calls `fetch` once a batch, in the trainer or in a worker of it.
SITE = """
import importlib.abc, importlib.util, os, signal, sys, time

NAME = "torch.utils.data._utils.fetch"
FAULTS = {
    "raise": lambda: {}["red"],
    "kill": lambda: os.kill(os.getpid(), signal.SIGKILL),
    "hang": lambda: time.sleep(3600),
    "leave": lambda: os._exit(0),
}

class Finder(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name != NAME:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        load = spec.loader.exec_module
        spec.loader.exec_module = lambda module: (load(module), break_at(module))
        return spec

def break_at(module):
    fetcher, count = module._MapDatasetFetcher, [0]
    fetch = fetcher.fetch
    def broken(self, indices):
        count[0] += 1
        if count[0] == int(os.environ["FAULT_AT"]):
            FAULTS[os.environ["FAULT"]]()
        return fetch(self, indices)
    fetcher.fetch = broken

if os.environ.get("RANK", "0") == os.environ.get("FAULT_RANK"):
    sys.meta_path.insert(0, Finder())
"""


@pytest.fixture
def break_rank(root, make_request, tmp_path, monkeypatch):
    """Run the small job with a fault on one rank; returns the run and its record."""

    def run(
        fault: str, preset: str = "ddp", *, rank: int = 1, at: int = FAULT_AT, **overrides: str
    ) -> tuple[RunDir, RunRecord]:
        folder = tmp_path / "site"
        folder.mkdir()
        (folder / "sitecustomize.py").write_text(dedent(SITE))
        variables = {"FAULT": fault, "FAULT_RANK": str(rank), "FAULT_AT": str(at)}
        for name, value in (variables | {"PYTHONPATH": first_on_path(folder)}).items():
            monkeypatch.setenv(name, value)
        # gloo notices that a rank has gone; NCCL over NVLink does not, and rank 0 waits in it.
        is_unnoticed = fault == "hang" or (fault == "leave" and bool(read_hardware().gpus))
        timeout_s = HANG_S if is_unnoticed else PATIENT_S
        settings = {"timeout_s": str(timeout_s), "num_workers": "0", **overrides}
        spec = make_request(preset, epochs=50, overrides=settings)
        started = start_run(spec, read_hardware(), root)
        record = wait_for_end(started, START_S + PATIENT_S)
        return started, record

    return run


def check_ending(run: RunDir, record: RunRecord, *, rank: int | None, cause: str) -> None:
    """What holds after every fault: failed, named, and nothing is left."""
    assert record.state == "failed"
    failure = record.exit.failure
    assert (failure.rank, failure.cause) == (rank, cause), record.exit
    assert record.failure.rank == rank
    assert run_processes(run.id) == set()


def waited_s(run: RunDir) -> float:
    """Seconds from the last mark of the rank that stopped first to the exit record."""
    first = min(mark.t for mark in read_marks(run))
    return run.exit.stat().st_mtime - first


def test_a_rank_that_raises_is_named_with_its_traceback(break_rank):
    run, record = break_rank("raise", save_every_steps="3")
    check_ending(run, record, rank=1, cause="error")
    assert record.exit.reason == "Rank 1: KeyError: 'red'"
    assert "broken" in record.failure.traceback
    failure = record.exit.failure
    assert failure.where == f"Rank 1 stood at step {FAULT_AT} while loading data."
    if record.spec.device == "cpu":
        # The launcher may end rank 0 before it comes to the exchange of this step.
        steps = (FAULT_AT - 1, FAULT_AT)
        found = [f"the reduction of gradients at step {step}" for step in steps]
        assert failure.last_collective in found
    else:
        assert failure.last_collective.startswith("nccl:")
    assert (failure.checkpoint.path, failure.checkpoint.step) == ("checkpoints/last", 3)
    assert failure.advice == f"`ringside resume {run.name}` goes on from step 3."
    assert "ranks/rank1.error.json" in failure.evidence
    assert waited_s(run) < PATIENT_S / 3


def test_a_killed_rank_is_named_with_its_signal(break_rank):
    run, record = break_rank("kill")
    check_ending(run, record, rank=1, cause="killed")
    assert record.exit.reason.startswith("Rank 1 was killed by SIGKILL;")
    assert record.exit.signal == "SIGKILL"
    where = record.exit.failure.where
    if record.spec.device == "cpu":
        assert where == f"Rank 1 stood at step {FAULT_AT} while loading data."
    else:  # Batches are fetched ahead of the step.
        assert any(where.startswith(f"Rank 1 stood at step {n} ") for n in range(1, FAULT_AT + 1))
    assert waited_s(run) < PATIENT_S / 3


def test_a_hanging_rank_ends_the_run_and_leaves_its_stack(break_rank):
    run, record = break_rank("hang")
    check_ending(run, record, rank=1, cause="timeout")
    reason = record.exit.reason
    assert reason.startswith(f"Rank 1 stopped at step {FAULT_AT} while loading data; rank 0 waited")
    if record.spec.device == "cpu":
        assert f"at step {FAULT_AT} in the backward pass for {HANG_S} s." in reason
    assert "sitecustomize.py" in (run.ranks / "rank1.stack.txt").read_text()
    assert "training/loop.py" in (run.ranks / "rank0.stack.txt").read_text()
    assert {"ranks/rank0.stack.txt", "ranks/rank1.stack.txt"} <= set(record.exit.failure.evidence)
    assert waited_s(run) < HANG_S + 10


def test_a_rank_that_leaves_early_is_named(break_rank):
    run, record = break_rank("leave")
    check_ending(run, record, rank=1, cause="left")
    assert record.exit.reason == (
        "Rank 1 ended with exit code 0 before the run was over; rank 0 lost its connection to it."
    )
    assert waited_s(run) < PATIENT_S / 3


def test_a_killed_loader_worker_is_named(break_rank):
    run, record = break_rank("kill", at=2, num_workers="2")
    check_ending(run, record, rank=1, cause="loader_worker")
    assert "loader worker (pid " in record.exit.reason
    assert "--set num_workers=1" in record.exit.reason
    assert waited_s(run) < PATIENT_S / 3


def test_a_single_process_that_hangs_is_ended_too(break_rank):
    run, record = break_rank("hang", "single", rank=0)
    check_ending(run, record, rank=0, cause="timeout")
    assert record.exit.reason.startswith("Rank 0: No progress for ")
    assert record.exit.failure.where == f"Rank 0 stood at step {FAULT_AT} while loading data."
    assert "sitecustomize.py" in record.failure.traceback
    assert waited_s(run) < HANG_S + 10
    assert "sitecustomize.py" in (run.ranks / "rank0.stack.txt").read_text()
