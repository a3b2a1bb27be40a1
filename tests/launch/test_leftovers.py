"""Processes of runs that have ended: only ours, only of ended runs, and gone after Clean up."""

from __future__ import annotations

import os
import subprocess
import sys

import msgspec
import pytest

from ringside.identity import ProcessIdentity, boot_id, marked_processes
from ringside.records import read_exit, read_owner, write_owner
from ringside.shelf.leftovers import end_leftovers, find_leftovers

RUN, OTHER = "20260101-000000-calm-fox", "20260102-000000-swift-hare"
STUBBORN = (
    "import signal, sys; signal.signal(signal.SIGTERM, signal.SIG_IGN); "
    "print('up', flush=True); sys.stdin.read()"
)


@pytest.fixture
def start():
    """Processes with a run's token that do not go when asked politely."""
    started = []

    def begin(token: str) -> subprocess.Popen[bytes]:
        child = subprocess.Popen(
            [sys.executable, "-c", STUBBORN], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            env=os.environ | {"RINGSIDE_RUN": token}, start_new_session=True,
        )  # fmt: skip
        assert child.stdout.readline() == b"up\n"
        started.append(child)
        return child

    yield begin
    for child in started:
        child.kill()
        child.wait()


@pytest.fixture
def quick_ladder(monkeypatch):
    from ringside.launch import ladder

    monkeypatch.setattr(ladder.stop_ladder, "__kwdefaults__", {"known": (), "step_s": 0.3})


def test_only_processes_of_ended_runs_here_are_listed(make_spec, write_run, root, start):
    write_run(make_spec("ddp"), RUN)
    live = write_run(make_spec("ddp"), OTHER, state=None)
    write_owner(live, "supervisor")
    left = start(RUN)
    start(OTHER)
    start("20250101-000000-other-folder")
    start("../../etc")
    found = find_leftovers(root)
    assert [(one.run, one.state, one.pid) for one in found] == [(RUN, "completed", left.pid)]
    assert "SIG_IGN" in found[0].command
    assert found[0].memory_bytes > 0
    assert {RUN, OTHER} <= set(marked_processes())


def test_clean_up_ends_them_and_nothing_else(make_spec, write_run, root, start, quick_ladder):
    write_run(make_spec("ddp"), RUN)
    live = write_run(make_spec("ddp"), OTHER, state=None)
    write_owner(live, "supervisor")
    left, other = start(RUN), start(OTHER)
    assert end_leftovers(root) == []
    assert left.wait(5) == -9
    assert other.poll() is None


def test_of_an_abandoned_run_the_books_are_closed_too(
    make_spec, write_run, root, start, quick_ladder
):
    run = write_run(make_spec("ddp"), RUN, state=None)
    write_owner(run, "supervisor")
    gone = ProcessIdentity(pid=2**22 + 1, create_time=1.0, boot_id=boot_id())
    run.write(run.owner, msgspec.structs.replace(read_owner(run), process=gone))
    left = start(RUN)
    assert [one.state for one in find_leftovers(root)] == ["lost"]
    assert end_leftovers(root) == []
    assert left.wait(5) == -9
    assert read_exit(run).state == "lost"


def test_a_lost_run_that_trains_on_is_listed_however_new_its_last_event(
    make_spec, write_run, root, start
):
    import time

    run = write_run(make_spec("ddp"), RUN, state=None)
    write_owner(run, "supervisor")
    gone = ProcessIdentity(pid=2**22 + 1, create_time=1.0, boot_id=boot_id())
    run.write(run.owner, msgspec.structs.replace(read_owner(run), process=gone))
    with run.events.open("a") as events:
        events.write(f'{{"kind": "phase_started", "t": {time.time()}, "phase": "train"}}\n')
    left = start(RUN)
    assert [(one.state, one.pid) for one in find_leftovers(root)] == [("lost", left.pid)]


def test_a_process_may_outlive_its_record_by_a_moment(make_spec, write_run, root, start):
    import time

    run = write_run(make_spec("ddp"), RUN)
    start(RUN)
    run.exit.write_text(run.exit.read_text().replace("2000.0", str(time.time())))
    assert find_leftovers(root) == []


def test_a_server_that_was_started_inside_a_run_does_not_end_its_own_family(
    make_spec, write_run, root, start, monkeypatch
):
    write_run(make_spec("ddp"), RUN)
    start(RUN)
    monkeypatch.setenv("RINGSIDE_RUN", RUN)
    assert find_leftovers(root) == []


def test_a_run_that_fails_does_not_stop_the_others(
    make_spec, write_run, root, start, quick_ladder, monkeypatch
):
    from ringside.errors import LaunchError
    from ringside.shelf import leftovers

    run_lock = leftovers.run_lock

    def held(run):
        if run.id == RUN:
            raise LaunchError("Another Ringside has held the lock.")
        return run_lock(run)

    monkeypatch.setattr(leftovers, "run_lock", held)
    for run_id in (RUN, OTHER):
        write_run(make_spec("ddp"), run_id)
    stays, goes = start(RUN), start(OTHER)
    with pytest.raises(LaunchError, match="held the lock"):
        end_leftovers(root)
    assert goes.wait(5) == -9
    assert stays.poll() is None
