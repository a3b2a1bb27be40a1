"""A supervisor owns its run to the end, and the exit record tells the truth."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from ringside import identity
from ringside.identity import is_alive, run_processes, wait_until
from ringside.launch import local
from ringside.launch.stop import request_stop, stop_run
from ringside.records import read_owner

WAITS_FOR_STOP = """
import pathlib, sys, time
print("ready")
while not (pathlib.Path(sys.argv[1]) / "requests" / "stop.json").exists():
    time.sleep(0.02)
print("saved")
"""

# Like torch elastic: each worker has a session of its own. These ignore SIGTERM.
STUBBORN_WORKERS = """
import subprocess, sys
code = "import signal, time; signal.signal(15, signal.SIG_IGN); print('ready'); time.sleep(120)"
command = [sys.executable, "-u", "-c", code]
workers = [subprocess.Popen(command, start_new_session=True) for _ in range(2)]
for worker in workers:
    worker.wait()
"""

SLEEPS = "import time; print('ready'); time.sleep(120)"


def test_a_run_that_ends_is_completed(make_run, wait_exit):
    run = make_run("print('hello')")
    local.start(run)
    record = wait_exit(run)
    assert (record.state, record.return_code) == ("completed", 0)
    assert record.started <= record.finished
    assert run.console.read_text() == "hello\n"


def test_owner_names_supervisor_and_launcher(make_run, wait_console):
    run = make_run(SLEEPS)
    local.start(run)
    wait_console(run, "ready")
    owner = read_owner(run)
    assert owner.kind == "supervisor"
    assert is_alive(owner.process)
    assert is_alive(owner.launcher)
    assert owner.launcher in run_processes(run.id)
    # A session of its own each: a signal to one's process group does not reach the other.
    for process in (owner.process, owner.launcher):
        assert os.getsid(process.pid) == process.pid


def test_an_exit_code_is_a_failure_with_a_sentence(make_run, wait_exit):
    run = make_run("import sys; sys.exit(3)")
    local.start(run)
    record = wait_exit(run)
    assert (record.state, record.return_code, record.signal) == ("failed", 3, None)
    assert record.reason == "The launcher ended with exit code 3; see console.log."


def test_a_signal_is_a_failure_with_its_name(make_run, wait_exit):
    run = make_run("import os; os.kill(os.getpid(), 9)")
    local.start(run)
    record = wait_exit(run)
    assert (record.state, record.return_code, record.signal) == ("failed", -9, "SIGKILL")
    assert record.reason.startswith("The launcher was killed by SIGKILL;")


def test_output_that_nobody_reads_does_not_stall(make_run, wait_exit):
    run = make_run("import sys; sys.stderr.write('x' * 3_000_000)")
    local.start(run)
    assert wait_exit(run).state == "completed"
    assert run.console.stat().st_size == 3_000_000


def test_a_stop_request_lets_the_trainer_end_by_itself(make_run, wait_console, wait_exit):
    run = make_run(WAITS_FOR_STOP)
    local.start(run)
    wait_console(run, "ready")
    record = stop_run(run, timeout_s=15)
    assert record == wait_exit(run)
    assert (record.state, record.return_code) == ("stopped", 0)
    assert "saved" in run.console.read_text()


def test_a_signal_to_the_supervisor_is_a_stop_request(make_run, wait_console, wait_exit):
    run = make_run(WAITS_FOR_STOP)
    local.start(run)
    wait_console(run, "ready")
    os.kill(read_owner(run).process.pid, signal.SIGTERM)
    assert wait_exit(run).state == "stopped"
    assert run.requested("stop")


def test_stubborn_workers_are_gone_before_stopped_is_written(
    make_run, wait_console, wait_exit, monkeypatch
):
    monkeypatch.setenv("RINGSIDE_STOP_GRACE_S", "0.3")
    run = make_run(STUBBORN_WORKERS)
    local.start(run)
    wait_console(run, "ready", 2)
    assert len(run_processes(run.id)) == 3
    request_stop(run)
    while run_processes(run.id):
        assert not run.exit.exists()
    record = wait_exit(run)
    assert record.state == "stopped"
    assert record.reason.endswith("did not end in time and was ended.")


def test_orphans_of_a_dead_launcher_are_ended(make_run, wait_console, wait_exit):
    run = make_run(STUBBORN_WORKERS.replace("signal.signal(15, signal.SIG_IGN); ", ""))
    local.start(run)
    wait_console(run, "ready", 2)
    os.kill(read_owner(run).launcher.pid, signal.SIGKILL)
    record = wait_exit(run)
    assert (record.state, record.signal) == ("failed", "SIGKILL")


def test_a_stop_before_the_start_starts_nothing(make_run, wait_exit):
    run = make_run("print('never')")
    request_stop(run)
    local.start(run)
    record = wait_exit(run)
    assert (record.state, record.return_code) == ("stopped", None)
    assert not run.console.exists()


def test_a_launcher_that_cannot_start_is_a_failure(make_run, wait_exit):
    run = make_run("")
    run.plan.write_text('{"argv": ["/no/such/program"], "cwd": "/"}')
    local.start(run)
    record = wait_exit(run)
    assert record.state == "failed"
    assert "/no/such/program" in record.reason


def test_a_damaged_plan_is_a_failure(make_run, wait_exit):
    run = make_run("")
    run.plan.write_text("{")
    local.start(run)
    assert "plan.json is missing or damaged" in wait_exit(run).reason


def test_a_run_is_supervised_once(make_run, wait_exit):
    run = make_run("print('once')")
    local.start(run)
    wait_exit(run)
    command = [sys.executable, "-m", "ringside.launch.supervisor", str(run.path)]
    again = subprocess.run(command, capture_output=True, text=True, check=False)
    assert again.returncode == 1
    assert "has been started already" in again.stderr
    assert run.console.read_text() == "once\n"


def test_the_run_outlives_whoever_started_it(make_run, wait_console):
    run = make_run(SLEEPS)
    code = (
        "import sys, pathlib; from ringside.launch import local; from ringside.rundir import RunDir"
        "; local.start(RunDir(pathlib.Path(sys.argv[1])))"
    )
    subprocess.run([sys.executable, "-c", code, str(run.path)], check=True)
    wait_console(run, "ready")
    assert is_alive(read_owner(run).process)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has child sub-reapers")
def test_orphans_become_children_of_the_supervisor(make_run, wait_console):
    # The launcher stays, its child leaves a grandchild behind and ends.
    run = make_run(
        """
        import subprocess, sys, time
        grandchild = "import os, time; time.sleep(0.3); print('parent', os.getppid());time.sleep(9)"
        child = f"import subprocess, sys; subprocess.Popen([sys.executable, '-uc', {grandchild!r}])"
        subprocess.run([sys.executable, "-c", child])
        time.sleep(60)
        """
    )
    local.start(run)
    supervisor = read_owner(run).process
    wait_console(run, f"parent {supervisor.pid}")
    assert len(identity.descendants(supervisor.pid)) == 2


def test_exit_record_is_tried_again_when_the_disk_is_full(make_run, monkeypatch):
    from ringside import records
    from ringside.errors import RunDirError
    from ringside.rundir import RunDir

    run, fails = make_run(""), [True, True]
    real = RunDir.write

    def write(self, path, value):
        if fails:
            fails.pop()
            raise RunDirError("No space left on device.")
        real(self, path, value)

    monkeypatch.setattr(RunDir, "write", write)
    monkeypatch.setattr(records.time, "sleep", lambda _seconds: None)
    records.write_exit(run, state="completed", reason="Completed.")
    assert records.read_exit(run).state == "completed"


def test_stop_run_answers_none_when_time_is_up(make_run, wait_console):
    run = make_run(SLEEPS)
    local.start(run)
    wait_console(run, "ready")
    assert stop_run(run, timeout_s=0.2) is None
    assert run.requested("stop")
    assert wait_until(lambda: is_alive(read_owner(run).launcher), 0)
