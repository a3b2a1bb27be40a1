"""A number is not a process: identity, aliveness, families, and the ladder that ends them."""

from __future__ import annotations

import os
import subprocess
import sys

import msgspec
import pytest

from ringside import identity
from ringside.errors import LaunchError
from ringside.identity import (
    RUN_TOKEN,
    descendants,
    is_alive,
    run_processes,
    signal_process,
    wait_gone,
)
from ringside.launch.ladder import stop_grace_s, stop_ladder

SLEEP = [sys.executable, "-c", "import time; time.sleep(60)"]


@pytest.fixture
def sleeper():
    process = subprocess.Popen(SLEEP, env=os.environ | {RUN_TOKEN: "20260101-000000-calm-fox"})
    yield process
    process.kill()
    process.wait()


def changed(pid, **fields):
    return msgspec.structs.replace(identity.of(pid), **fields)


def test_this_process_is_alive():
    assert is_alive(identity.of(os.getpid()))


def test_no_such_process():
    with pytest.raises(ProcessLookupError):
        identity.of(2**22 + 1)


@pytest.mark.parametrize("fields", [{"create_time": 1.0}, {"boot_id": "another boot"}])
def test_a_stale_identity_is_never_signalled(sleeper, fields):
    stale = changed(sleeper.pid, **fields)
    assert not is_alive(stale)
    signal_process(stale, 9)
    assert stop_ladder([stale], "20260101-000000-no-run", known=[stale], step_s=0.1) == set()
    assert sleeper.poll() is None


def test_a_zombie_is_not_alive(sleeper):
    this = identity.of(sleeper.pid)
    sleeper.kill()
    assert wait_gone([this], 5.0) == set()
    assert identity.of(sleeper.pid) == this


def test_the_token_finds_processes_but_not_the_caller(sleeper, monkeypatch):
    monkeypatch.setenv(RUN_TOKEN, "20260101-000000-calm-fox")
    assert identity.wait_until(lambda: run_processes("20260101-000000-calm-fox"), 5.0)
    assert run_processes("20260101-000000-calm-fox") == {identity.of(sleeper.pid)}
    assert run_processes("20260101-000000-calm") == set()


def test_descendants_include_grandchildren():
    code = f"import subprocess; subprocess.run({SLEEP!r})"
    child = subprocess.Popen([sys.executable, "-c", code])
    assert identity.wait_until(lambda: len(descendants(child.pid)) == 1, 5.0)
    family = {identity.of(child.pid)} | descendants(child.pid)
    assert family <= descendants(os.getpid())
    assert stop_ladder([identity.of(child.pid)], "20260101-000000-no-run", step_s=1.0) == set()
    assert not family & descendants(os.getpid())
    child.wait()


def test_descendants_of_nobody():
    assert descendants(2**22 + 1) == set()


def test_the_ladder_ends_stubborn_workers_in_other_sessions():
    ignore = "import signal, time; signal.signal(15, signal.SIG_IGN); print(); time.sleep(60)"
    code = f"""
import subprocess, sys
worker = subprocess.Popen([sys.executable, "-uc", {ignore!r}], start_new_session=True)
worker.wait()
"""
    launcher = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    launcher.stdout.readline()
    family = descendants(launcher.pid)
    assert len(family) == 1
    root = identity.of(launcher.pid)
    assert stop_ladder([root], "20260101-000000-no-run", step_s=0.3) == set()
    assert not any(is_alive(member) for member in family | {root})
    launcher.wait()
    launcher.stdout.close()


def test_the_ladder_spares_another_run_started_inside_and_all_below_it():
    """A worker of the run, another run's process, and below that one without any token."""
    inner = f"import subprocess; subprocess.run({SLEEP!r}, env={{}})"
    code = f"""
import os, subprocess, sys
other = os.environ | {{{RUN_TOKEN!r}: "20260102-000000-other-run"}}
subprocess.Popen({SLEEP!r})
subprocess.run([sys.executable, "-c", {inner!r}], env=other)
"""
    this_run = "20260101-000000-calm-fox"
    launcher = subprocess.Popen(
        [sys.executable, "-c", code], env=os.environ | {RUN_TOKEN: this_run}
    )
    root = identity.of(launcher.pid)
    assert identity.wait_until(lambda: len(descendants(launcher.pid)) == 3, 10.0)
    everything = descendants(launcher.pid)
    assert identity.wait_until(
        lambda: len(identity.marked_processes().get("20260102-000000-other-run", ())) == 1, 5.0
    )
    (other,) = identity.marked_processes()["20260102-000000-other-run"]
    spared = {other} | descendants(other.pid)
    assert len(spared) == 2
    try:
        assert stop_ladder([root], this_run, known=everything, step_s=1.0) == set()
        assert identity.alive(everything | {root}) == spared
    finally:
        for process in everything:
            signal_process(process, 9)
        launcher.wait()


CLIMBS = """
import os, subprocess, sys
from ringside import identity
from ringside.launch.ladder import stop_ladder

child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
this = identity.of(os.getpid())
print(stop_ladder([this], "20260101-000000-no-run", known=[this], step_s=5), child.wait())
"""


def test_the_ladder_spares_the_caller_and_ends_its_children():
    """In a process of its own: the children of this one belong to the tests."""
    found = subprocess.run([sys.executable, "-c", CLIMBS], capture_output=True, text=True)
    assert (found.stdout, found.stderr) == ("set() -15\n", "")


def test_the_grace_can_be_set(monkeypatch):
    assert stop_grace_s() == 20
    monkeypatch.setenv("RINGSIDE_STOP_GRACE_S", "2.5")
    assert stop_grace_s() == 2.5


@pytest.mark.parametrize("text", ["soon", "-1", "nan", "inf", ""])
def test_a_grace_that_is_no_time_is_refused(monkeypatch, text):
    monkeypatch.setenv("RINGSIDE_STOP_GRACE_S", text)
    with pytest.raises(LaunchError, match="RINGSIDE_STOP_GRACE_S"):
        stop_grace_s()
