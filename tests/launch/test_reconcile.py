"""No run stays "running" for ever, and no live run is touched."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import msgspec
import pytest

from ringside import identity
from ringside.identity import ProcessIdentity, boot_id, is_alive, run_processes, wait_gone
from ringside.launch import local
from ringside.launch.reconcile import reconcile, reconcile_all
from ringside.launch.stop import stop_run
from ringside.records import Owner, read_exit, read_owner, write_owner

WORKERS = """
import subprocess, sys
command = [sys.executable, "-uc", "import time; print('ready'); time.sleep(120)"]
workers = [subprocess.Popen(command, start_new_session=True) for _ in range(2)]
for worker in workers:
    worker.wait()
"""

GONE = ProcessIdentity(pid=2**22 + 1, create_time=1.0, boot_id=boot_id())


def age(run, seconds):
    """Make all files of the run look `seconds` old."""
    then = time.time() - seconds
    for path in (run.spec, run.owner):
        if path.exists():
            os.utime(path, (then, then))


def own(run, process, **fields):
    run.write(run.owner, Owner(kind="supervisor", process=process, started=5.0, **fields))


def kill_supervisor(run):
    supervisor = read_owner(run).process
    os.kill(supervisor.pid, signal.SIGKILL)
    assert not wait_gone([supervisor], 5.0)


def test_a_killed_supervisor_means_lost_and_nothing_left(make_run, wait_console, root):
    run = make_run(WORKERS)
    local.start(run)
    wait_console(run, "ready", 2)
    assert reconcile_all(root) == []
    kill_supervisor(run)
    assert len(run_processes(run.id)) == 3
    assert [lost.id for lost in reconcile_all(root)] == [run.id]
    assert not run_processes(run.id)
    record = read_exit(run)
    assert (record.state, record.started) == ("lost", read_owner(run).started)
    assert record.reason == (
        "Its supervisor ended without an exit record (killed, perhaps out of memory); "
        "3 leftover processes were ended."
    )
    assert not reconcile(run)


def test_stop_of_a_run_without_supervisor_reconciles_it(make_run, wait_console):
    run = make_run(WORKERS)
    local.start(run)
    wait_console(run, "ready", 2)
    kill_supervisor(run)
    assert stop_run(run, timeout_s=15).state == "lost"
    assert not run_processes(run.id)


def test_a_live_run_is_left_alone_however_silent(make_run):
    run = make_run("")
    own(run, identity.of(os.getpid()))
    age(run, 10**6)
    assert not reconcile(run)
    assert not run.exit.exists()


@pytest.mark.parametrize("fields", [{"create_time": 1.0}, {"boot_id": "before the restart"}])
def test_a_number_used_again_is_lost_and_not_signalled(make_run, fields):
    run = make_run("")
    bystander = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    stale = msgspec.structs.replace(identity.of(bystander.pid), **fields)
    own(run, stale, launcher=stale)
    assert reconcile(run)
    assert read_exit(run).state == "lost"
    assert ("restarted" in read_exit(run).reason) == ("boot_id" in fields)
    assert bystander.poll() is None
    bystander.kill()
    bystander.wait()


def test_processes_of_other_runs_are_not_touched(make_run, wait_console):
    lost, other = make_run(""), make_run(WORKERS)
    local.start(other)
    wait_console(other, "ready", 2)
    own(lost, GONE)
    assert reconcile(lost)
    assert len(run_processes(other.id)) == 3
    assert is_alive(read_owner(other).process)


def test_never_started(make_run):
    run = make_run("")
    assert not reconcile(run)
    age(run, 61)
    assert reconcile(run)
    assert read_exit(run).reason.startswith("It was never started")


def test_a_damaged_owner_gets_a_longer_silence(make_run):
    run = make_run("")
    run.owner.write_text("{")
    age(run, 61)
    assert not reconcile(run)
    age(run, 1000)
    assert reconcile(run)


def test_a_run_of_another_machine_is_judged_by_its_silence(make_run):
    run = make_run("")
    own(run, GONE, host="another-machine")
    assert not reconcile(run)
    age(run, 1000)
    assert reconcile(run)
    assert "another-machine" in read_exit(run).reason


def test_a_terminal_run_lives_while_its_launcher_does(make_run):
    run = make_run("")
    this = identity.of(os.getpid())
    run.write(run.owner, Owner(kind="terminal", process=GONE, launcher=this, started=5.0))
    assert not reconcile(run)
    run.write(run.owner, Owner(kind="terminal", process=GONE, launcher=GONE, started=5.0))
    assert reconcile(run)
    assert read_exit(run).reason.startswith("Its trainer ended without an exit record")


def test_a_folder_without_a_request_is_no_run(root, make_run):
    run = make_run("")
    run.spec.unlink()
    assert reconcile_all(root) == []


def test_one_unreadable_run_does_not_stop_the_others(make_run, root):
    newer, lost = make_run(""), make_run("")
    write_owner(newer, "supervisor")
    newer.owner.write_bytes(newer.owner.read_bytes().replace(b'"format": 1', b'"format": 99'))
    own(lost, GONE)
    assert [run.id for run in reconcile_all(root)] == [lost.id]
    assert reconcile_all(root / "absent") == []
    newer.owner.unlink()


def test_two_at_once_write_one_record(make_run, root):
    run = make_run("")
    own(run, GONE)
    code = (
        "import sys, pathlib; from ringside.launch.reconcile import reconcile_all"
        "; print(len(reconcile_all(pathlib.Path(sys.argv[1]))))"
    )
    command = [sys.executable, "-c", code, str(root)]
    pair = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    assert sorted(one.communicate()[0].strip() for one in pair) == ["0", "1"]
