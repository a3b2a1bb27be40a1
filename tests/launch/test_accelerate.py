"""The real `accelerate launch` with two processes: per-rank logs, a killed rank, a full stop."""

from __future__ import annotations

import msgspec
import pytest

from ringside.launch import local
from ringside.launch.plan import LaunchPlan
from ringside.launch.stop import stop_run

pytestmark = pytest.mark.distributed

TRAINER = """
import os, pathlib, sys, time
print("rank", os.environ["RANK"], os.environ["OMP_NUM_THREADS"])
here = pathlib.Path(__file__).parent
while not (here / "kill").exists():
    time.sleep(0.05)
if os.environ["RANK"] == "1":
    os.kill(os.getpid(), 9)
time.sleep(60)
"""


@pytest.fixture
def launched(spec, hardware, root, wait_console, monkeypatch):
    """The plan of a real run, with another script in place of the trainer."""
    monkeypatch.setenv("RINGSIDE_STOP_GRACE_S", "0.5")
    run = local.create_run(spec, hardware, root)
    script = run.path / "script.py"
    script.write_text(TRAINER)
    plan = run.read(run.plan, LaunchPlan)
    argv = [*plan.argv[: plan.argv.index("training.train") - 1], str(script)]
    run.write(run.plan, msgspec.structs.replace(plan, argv=argv))
    local.start(run)
    for rank in range(2):
        wait_console(run, f"[default{rank}]:rank {rank} 1")
    yield run
    stop_run(run, timeout_s=60)


def test_a_killed_rank_is_named(launched, wait_exit):
    logs = sorted(launched.logs.glob("*/attempt_0/*/stdout.log"))
    assert [log.read_text() for log in logs] == ["rank 0 1\n", "rank 1 1\n"]
    (launched.path / "kill").touch()
    record = wait_exit(launched)
    assert (record.state, record.signal) == ("failed", "SIGKILL")
    assert record.reason.startswith("Rank 1 was killed by SIGKILL")


def test_a_stop_leaves_nothing(launched, wait_exit):
    record = stop_run(launched, timeout_s=60)
    assert record == wait_exit(launched)
    assert record.state == "stopped"
