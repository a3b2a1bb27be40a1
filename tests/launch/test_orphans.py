"""A run whose supervisor was killed trains on: what the commands say of it, and how it is ended."""

from __future__ import annotations

import os
import signal

import pytest

from app.views.run import run_view
from ringside.identity import run_processes, wait_gone, wait_until
from ringside.launch import local
from ringside.records import read_exit, read_owner
from ringside.run import fold_run

WORKERS = """
import subprocess, sys
command = [sys.executable, "-uc", "import time; print('ready'); time.sleep(120)"]
workers = [subprocess.Popen(command, start_new_session=True) for _ in range(2)]
for worker in workers:
    worker.wait()
"""


@pytest.fixture
def orphaned(make_run, wait_console, root, monkeypatch, leave_checkpoint):
    """A launcher and two ranks in sessions of their own, and nobody who answers for them."""
    monkeypatch.setenv("RINGSIDE_RUNS", str(root))
    run = make_run(WORKERS)
    local.start(run)
    wait_console(run, "ready", 2)
    leave_checkpoint(run, epoch=2, step=10)
    supervisor = read_owner(run).process
    os.kill(supervisor.pid, signal.SIGKILL)
    assert not wait_gone([supervisor], 5.0)
    return run


def test_stop_ends_what_still_runs(orphaned, ringside):
    processes = run_processes(orphaned.id)
    assert len(processes) == 3
    code, out, _ = ringside("show", orphaned.name)
    assert code == 0
    sentence = (
        f"Its supervisor is gone, 3 processes still run; `ringside stop {orphaned.name}` ends them."
    )
    assert sentence in out.splitlines()

    # A second run from the same checkpoint beside the first would be nobody's wish.
    code, out, err = ringside("resume", orphaned.name)
    assert (code, out, err) == (2, "", f"{sentence}\n")
    assert run_processes(orphaned.id) == processes

    assert ringside("watch", orphaned.name)[:2] == (1, f"lost: {sentence}\n")

    code, out, _ = ringside("stop", orphaned.name)
    assert code == 0
    assert "3 leftover processes were ended" in out
    assert not run_processes(orphaned.id)
    assert read_exit(orphaned).state == "lost"
    assert "has ended already: lost" in ringside("stop", orphaned.name)[1]


def test_leftovers_names_it_and_delete_says_what_it_ended(orphaned, ringside):
    code, out, err = ringside("leftovers")
    assert (code, len(out.splitlines())) == (0, 3)
    assert all(line.split()[:2] == [orphaned.id, "lost"] for line in out.splitlines())
    assert f"3 processes still run; `ringside stop {orphaned.name}` ends them." in err

    code, out, _ = ringside("delete", orphaned.name, "--yes")
    assert code == 0
    assert out.endswith("; 3 processes of it still ran and were ended\n")
    assert not run_processes(orphaned.id)
    assert not orphaned.path.exists()


def test_a_lost_run_tells_from_which_step_it_can_go_on(orphaned, ringside):
    how = f"`ringside resume {orphaned.name}` goes on from step 10."
    assert how not in ringside("show", orphaned.name)[1]
    for process in run_processes(orphaned.id):
        os.kill(process.pid, signal.SIGKILL)
    assert wait_until(lambda: not run_processes(orphaned.id), 5.0)
    assert how in ringside("show", orphaned.name)[1].splitlines()
    assert ringside("watch", orphaned.name)[1].splitlines()[-1] == how

    ringside("stop", orphaned.name)
    assert read_exit(orphaned).state == "lost"
    assert how in ringside("show", orphaned.name)[1].splitlines()
    assert how in run_view(fold_run(orphaned), None).ending.more


def test_training_that_finished_alone_is_said_and_needs_no_resume(orphaned, ringside):
    for process in run_processes(orphaned.id):
        os.kill(process.pid, signal.SIGKILL)
    assert wait_until(lambda: not run_processes(orphaned.id), 5.0)
    orphaned.events.write_text(
        '{"kind": "run_finished", "t": 9.0, "reason": "completed", "total_time_s": 4.0}\n'
    )
    ringside("stop", orphaned.name)
    reason = "Its supervisor ended without an exit record; training had finished all the same."
    assert read_exit(orphaned).reason == reason
    shown = ringside("show", orphaned.name)[1]
    assert reason in shown
    assert "goes on from step" not in shown


def test_resume_closes_the_books_of_a_run_of_which_nothing_is_left(orphaned, ringside, monkeypatch):
    for process in run_processes(orphaned.id):
        os.kill(process.pid, signal.SIGKILL)
    assert wait_until(lambda: not run_processes(orphaned.id), 5.0)
    started = []
    monkeypatch.setattr(local, "start_run", lambda spec, *_: started.append(spec) or orphaned)
    code, _, err = ringside("resume", orphaned.name)
    assert (code, err) == (0, "")
    assert [spec.resume_from for spec in started] == [str(orphaned.checkpoints / "last")]
    assert read_exit(orphaned).state == "lost"
