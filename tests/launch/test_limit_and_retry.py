"""A run's time limit, and another try of one that was killed."""

from __future__ import annotations

import json
import subprocess
import sys

import msgspec
import pytest

from ringside import identity
from ringside.identity import wait_until
from ringside.launch import local
from ringside.launch.plan import LaunchPlan
from ringside.launch.stop import request_stop
from ringside.records import RankError, read_exit
from ringside.rundir import RunDir, list_run_dirs
from ringside.spec import RunSpec

WAITS = """
import pathlib, sys, time
run = pathlib.Path(sys.argv[1])
while not (run / "requests/stop.json").exists():
    time.sleep(0.02)
print("saved")
"""
DEAF = "import time; time.sleep(60)"

# What torch elastic prints of a rank that was killed.
KILLED = """
import os, sys
print("  rank      : 1 (local_rank: 1)\\n  exitcode  : -9 (pid: 6130)")
sys.exit(1)
"""


# A supervisor whose other try executes the script that it is given; while it makes that one, it
# executes the next argument.
SUPERVISE = """
import os, pathlib, sys
from ringside.launch import local, supervisor
from ringside.launch.plan import LaunchPlan

def plan(_spec, run):
    exec(sys.argv[3])
    argv = [sys.executable, "-I", "-u", "-c", sys.argv[2], str(run.path)]
    return LaunchPlan(argv=argv, environment={"RINGSIDE_RUN": run.id}, cwd=str(run.path))

local.make_plan = plan
sys.exit(supervisor.main([sys.argv[1]]))
"""


@pytest.fixture
def start(spec, hardware, root, monkeypatch):
    """Make a run whose launcher is the given script."""

    def start(script, **details):
        def plan(_spec, run):
            argv = [sys.executable, "-I", "-u", "-c", script, str(run.path)]
            return LaunchPlan(argv=argv, environment={"RINGSIDE_RUN": run.id}, cwd=str(run.path))

        monkeypatch.setattr(local, "make_plan", plan)
        return local.create_run(msgspec.structs.replace(spec, **details), hardware, root)

    return start


def supervise(run, again="print('done')", meanwhile=""):
    """See the run to its end; another try of it executes `again`. Returns the exit record."""
    argv = [sys.executable, "-c", SUPERVISE, str(run.path), again, meanwhile]
    subprocess.run(argv, check=True)
    return read_exit(run)


def others(run):
    return [other for other in list_run_dirs(run.path.parent) if other.id != run.id]


def test_at_its_limit_a_run_is_asked_to_stop(start):
    run = start(WAITS, time_limit_s=1)
    record = supervise(run)
    assert record.state == "stopped"
    assert record.reason == "Stopped: it reached its time limit of 1 s."
    assert 1 <= record.finished - record.started < 4
    assert "saved" in run.console.read_text()
    assert json.loads((run.requests / "stop.json").read_text())["by"] == "time_limit"


def test_beyond_its_limit_a_run_is_ended(start, monkeypatch):
    monkeypatch.setenv("RINGSIDE_STOP_GRACE_S", "0.2")
    run = start(DEAF, time_limit_s=1)
    record = supervise(run)
    assert record.state == "stopped"
    assert record.reason == (
        "Stopped: it reached its time limit of 1 s; the trainer did not end in time and was ended."
    )
    assert not identity.run_processes(run.id)


def test_who_stops_it_before_the_limit_is_told_so(start):
    run = start(WAITS, time_limit_s=3600)
    request_stop(run)
    assert supervise(run).reason == "Stopped on request before it started."


def test_a_run_of_which_a_rank_was_killed_is_tried_once_more(start):
    run = start(KILLED, retries=1, queue=True, request_id="a-form", time_limit_s=60)
    checkpoint = run.checkpoints / "last"
    checkpoint.mkdir()
    (checkpoint / "training.pt").write_bytes(b"")
    about = {"model": "resnet50", "classes": ["a"], "task": "single_label", "image_size": 64,
             "epoch": 2, "step": 40}  # fmt: skip
    (checkpoint / "about.json").write_text(json.dumps(about))
    record = supervise(run)
    assert (record.state, record.failure.cause, record.failure.rank) == ("failed", "killed", 1)
    (other,) = others(run)
    assert record.retried_as == other.id
    spec, again = run.read(run.spec, RunSpec), other.read(other.spec, RunSpec)
    assert again == msgspec.structs.replace(
        spec, resume_from=str(checkpoint), retries=0, retry_of=run.id, queue=False, request_id=None
    )
    assert wait_until(other.exit.exists, 15)
    assert read_exit(other).state == "completed"
    assert read_exit(other).retried_as is None


def test_there_is_no_third_try_and_without_a_checkpoint_it_begins_anew(start):
    run = start(KILLED, retries=1)
    record = supervise(run, again=KILLED)
    (other,) = others(run)
    assert record.retried_as == other.id
    assert other.read(other.spec, RunSpec).resume_from is None
    assert wait_until(other.exit.exists, 15)
    assert read_exit(other).state == "failed"
    assert len(others(run)) == 1


@pytest.mark.parametrize(
    ("cause", "is_tried"),
    [
        ("timeout", True), ("lost_connection", True), ("data", False), ("gpu_memory", False),
        ("memory", False), ("import", False), ("setup", False), ("error", False),
        ("disk_full", False),
    ],
)  # fmt: skip
def test_only_what_may_pass_is_tried_again(start, cause, is_tried):
    run = start("import sys; sys.exit(1)", retries=1)
    error = RankError(rank=0, t=1.0, sentence="A word.", cause=cause, user_error=cause == "data")
    RunDir(run.path).write(run.ranks / "rank0.error.json", error)
    record = supervise(run)
    assert (record.state, record.failure.cause) == ("failed", cause)
    assert [other.id for other in others(run)] == ([record.retried_as] if is_tried else [])
    for other in others(run):
        assert wait_until(other.exit.exists, 15)


def test_nobody_tries_again_who_did_not_ask_for_it_or_asked_to_stop(start):
    run = start(KILLED)
    assert supervise(run).retried_as is None
    asked = start(
        "import pathlib, sys; (pathlib.Path(sys.argv[1]) / 'requests/stop.json').touch()" + KILLED,
        retries=1,
    )
    assert supervise(asked).retried_as is None
    assert len(list_run_dirs(run.path.parent)) == 2


@pytest.mark.parametrize(
    "meanwhile",
    ["pathlib.Path(sys.argv[1], 'requests/stop.json').touch()", "os.kill(os.getpid(), 15)"],
)
def test_a_stop_that_comes_while_the_other_try_starts_stops_that_one(start, meanwhile):
    run = start(KILLED, retries=1)
    record = supervise(run, again=WAITS, meanwhile=meanwhile)
    (other,) = others(run)
    assert record.retried_as == other.id
    assert wait_until(other.exit.exists, 15)
    assert read_exit(other).state == "stopped"


def test_a_supervisor_that_is_told_to_end_starts_no_other_try(start):
    """As when the machine goes down: the ranks may be gone before the supervisor is asked."""
    run = start("import os; os.kill(os.getppid(), 15)\n" + KILLED, retries=1)
    assert supervise(run).retried_as is None
    assert others(run) == []
