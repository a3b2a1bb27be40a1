"""A stop is honoured in every phase, and two runs at once do not meet."""

from __future__ import annotations

import msgspec
import pytest

from ringside.events import PhaseStarted, decode_lines
from ringside.hardware import read_hardware
from ringside.identity import run_processes, wait_until
from ringside.launch.local import create_run, start
from ringside.launch.plan import LaunchPlan
from ringside.launch.stop import stop_run
from ringside.rundir import RunDir

pytestmark = pytest.mark.distributed

SHOWS_ITS_PORT = """
import os, time
print("port", os.environ["MASTER_PORT"], flush=True)
time.sleep(60)
"""

# Two gloo workers in the middle of a collective that never ends, and that do not want to go.
IN_A_COLLECTIVE = """
import os, signal, time
import torch, torch.distributed as dist
signal.signal(signal.SIGTERM, signal.SIG_IGN)
dist.init_process_group("gloo")
dist.barrier()
print("together", flush=True)
if dist.get_rank() == 0:
    dist.all_reduce(torch.ones(1))
while True:
    time.sleep(1)
"""


def phases(run):
    text = run.events.read_bytes() if run.events.exists() else b""
    return [event.phase for event in decode_lines(text) if isinstance(event, PhaseStarted)]


@pytest.mark.parametrize("phase", ["data", "evaluate"])
def test_a_stop_in_this_phase_ends_the_run(make_request, tmp_path, phase, monkeypatch):
    monkeypatch.setenv("RINGSIDE_STOP_GRACE_S", "5")
    run = create_run(make_request("ddp", epochs=50), read_hardware(), tmp_path)
    start(run)
    assert wait_until(lambda: phase in phases(run), 120), run.console.read_text()
    record = stop_run(run, timeout_s=60)
    assert record is not None
    assert record.state == "stopped"
    assert run_processes(run.id) == set()
    assert len(phases(run)) < 100


@pytest.fixture
def launch(make_request, tmp_path, monkeypatch):
    """Start a script in the place of the trainer, with the real launcher."""
    monkeypatch.setenv("RINGSIDE_STOP_GRACE_S", "0.5")
    made: list[RunDir] = []

    def begin(script: str) -> RunDir:
        run = create_run(make_request("ddp", beside=True), read_hardware(), tmp_path)
        (run.path / "script.py").write_text(script)
        plan = run.read(run.plan, LaunchPlan)
        argv = [*plan.argv[: plan.argv.index("training.train") - 1], str(run.path / "script.py")]
        run.write(run.plan, msgspec.structs.replace(plan, argv=argv))
        start(run)
        made.append(run)
        return run

    yield begin
    for run in made:
        stop_run(run, timeout_s=60)


def test_two_runs_at_once_have_a_port_each(launch):
    runs = [launch(SHOWS_ITS_PORT) for _ in range(2)]
    for run in runs:
        assert wait_until(lambda run=run: run.console.read_text().count("port ") == 2, 60)
    lines = [run.console.read_text().splitlines() for run in runs]
    first, second = ({line.split()[-1] for line in found if "port " in line} for found in lines)
    assert len(first) == len(second) == 1
    assert first != second


def test_two_workers_in_a_collective_that_ignore_the_signal(launch):
    run = launch(IN_A_COLLECTIVE)
    assert wait_until(lambda: run.console.read_text().count("together") == 2, 90)
    assert len(run_processes(run.id)) >= 3
    record = stop_run(run, timeout_s=60)
    assert record.state == "stopped"
    assert run_processes(run.id) == set()
