"""A run that somebody launched in a terminal: no supervisor, rank 0 is the owner."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from textwrap import dedent

import pytest

from ringside import identity
from ringside.errors import RunDirError
from ringside.identity import is_alive, wait_until
from ringside.launch import stop
from ringside.launch.reconcile import reconcile
from ringside.launch.stop import request_stop, stop_in_background, stop_run
from ringside.records import _is_launcher, read_exit, read_owner, write_owner

# A launcher with rank 0 below it, in a session of its own as torch elastic does it.
RANK_0 = """
    import pathlib, signal, sys, time
    from ringside.records import write_exit, write_owner
    from ringside.rundir import RunDir
    run = RunDir(pathlib.Path(sys.argv[1]))
    if sys.argv[2] == "stubborn":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    write_owner(run, "terminal")
    while sys.argv[2] == "stubborn" or not run.requested("stop"):
        time.sleep(0.02)
    write_exit(run, state="stopped", reason="Saved.", return_code=0)
"""


@pytest.fixture
def launch(make_run, tmp_path):
    """Start a stand-in for `accelerate launch` with a rank 0 that is polite or stubborn."""
    started = []

    def start(manner):
        run = make_run("")
        rank = run.path / "rank.py"
        rank.write_text(dedent(RANK_0))
        script = tmp_path / "accelerate"
        script.write_text(
            "import subprocess, sys; "
            "subprocess.run([sys.executable, *sys.argv[2:]], start_new_session=True)"
        )
        words = [sys.executable, str(script), "launch", str(rank), str(run.path), manner]
        started.append(subprocess.Popen(words))
        assert wait_until(run.owner.exists, 10.0)
        return run, started[-1]

    yield start
    for process in started:
        process.wait(timeout=10)


def test_rank_0_names_its_launcher(launch):
    run, launcher = launch("polite")
    owner = read_owner(run)
    assert owner.kind == "terminal"
    assert owner.launcher == identity.of(launcher.pid)
    assert owner.process.pid != launcher.pid
    request_stop(run)


def test_a_polite_trainer_closes_its_own_books(launch):
    run, _launcher = launch("polite")
    record = stop_run(run, timeout_s=20)
    assert (record.state, record.reason) == ("stopped", "Saved.")


def test_a_stubborn_trainer_is_ended_from_outside(launch, monkeypatch):
    monkeypatch.setenv("RINGSIDE_STOP_GRACE_S", "0.2")
    run, _launcher = launch("stubborn")
    owner = read_owner(run)
    assert stop_run(run, timeout_s=0.1) is None
    assert is_alive(owner.process)
    record = stop_run(run, timeout_s=5)
    assert record.state == "stopped"
    assert record.started == owner.started
    assert not is_alive(owner.process)
    assert not is_alive(owner.launcher)


def test_what_goes_wrong_in_the_background_is_a_line_of_the_log(launch, monkeypatch, capfd):
    monkeypatch.setenv("RINGSIDE_STOP_GRACE_S", "0.1")
    run, _launcher = launch("stubborn")
    survivor = read_owner(run).process
    with monkeypatch.context() as patch:
        patch.setattr(stop, "stop_ladder", lambda *_, **__: {survivor})
        stop_in_background(run)
        assert wait_until(run.supervisor_log.exists, 10.0)
    assert wait_until(lambda: run.supervisor_log.read_text().endswith("\n"), 5.0)
    (line,) = run.supervisor_log.read_text().splitlines()
    assert line.endswith(
        f"The stop failed: Could not end 1 process (pid {survivor.pid}) of {run.id}."
    )
    assert not run.exit.exists()
    assert capfd.readouterr().err == ""
    assert stop_run(run, timeout_s=5).state == "stopped"


def test_nobody_else_closes_the_books_during_a_stop(launch, monkeypatch):
    """A page sees the owner die before the stop is written down, and must not call it lost."""
    monkeypatch.setenv("RINGSIDE_STOP_GRACE_S", "0.1")
    run, _launcher = launch("stubborn")
    closed, ladder = [], stop.stop_ladder
    page = threading.Thread(target=lambda: closed.append(reconcile(run)))

    def end_while_a_page_looks(*roots, **known):
        survivors = ladder(*roots, **known)
        page.start()
        page.join(timeout=1.0)
        return survivors

    monkeypatch.setattr(stop, "stop_ladder", end_while_a_page_looks)
    record = stop_run(run, timeout_s=5)
    page.join(timeout=10)
    assert closed == [False]
    assert record.state == read_exit(run).state == "stopped"


def test_stop_of_a_finished_run_returns_its_record(launch):
    run, _launcher = launch("polite")
    record = stop_run(run, timeout_s=20)
    assert stop_run(run, timeout_s=0) == record == read_exit(run)


def test_a_trainer_without_launcher_has_none(make_run):
    run = make_run("")
    owner = write_owner(run, "terminal")
    assert owner.launcher is None
    assert owner.process.pid == os.getpid()
    run.owner.unlink()


@pytest.mark.parametrize(
    ("argv", "launcher"),
    [
        (["/v/bin/python", "/v/bin/accelerate", "launch", "-m", "training.train"], True),
        (["/v/bin/python", "-m", "accelerate.commands.launch", "x"], True),
        (["/v/bin/python", "-m", "torch.distributed.run", "x"], True),
        (["/v/bin/python", "/v/bin/torchrun", "x"], True),
        (["/v/bin/python", "/v/bin/accelerate-launch", "x"], True),
        (["bash", "-c", "accelerate launch x"], False),
        (["/v/bin/python", "/v/bin/accelerate", "config"], False),
        ([], False),
    ],
)
def test_what_a_launcher_looks_like(argv, launcher):
    assert _is_launcher(argv) is launcher


def test_a_newer_format_is_refused(make_run):
    run = make_run("")
    run.exit.write_text(
        '{"format": 99, "state": "stopped", "reason": "", "started": 0, "finished": 0}'
    )
    with pytest.raises(RunDirError, match="update Ringside"):
        read_exit(run)
