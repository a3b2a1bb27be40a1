"""A waiting run's own look at the queue: what it costs, and what must not keep it from its turn."""

from __future__ import annotations

import json
import os
import shutil
import time

import msgspec
import pytest

from ringside.errors import LaunchError
from ringside.hardware import Hardware
from ringside.identity import is_alive, wait_until
from ringside.launch import local, queue, turn
from ringside.launch.claims import Claims
from ringside.launch.locks import queue_lock
from ringside.launch.queue_order import Order, change_order
from ringside.launch.turn import Turn
from ringside.records import read_owner, write_owner
from ringside.rundir import RunDir, create_run_dir


@pytest.fixture
def ask(spec, root):
    """A run that this very process owns: it waits, or holds its device, as told."""

    def ask(*, waits: bool, gpu: int = 0) -> RunDir:
        run = create_run_dir(root)
        run.write(run.spec, msgspec.structs.replace(
            spec, device="cuda", gpu_ids=(gpu,), num_processes=1, queue=waits))  # fmt: skip
        write_owner(run, "supervisor", waiting=waits)
        return run

    return ask


@pytest.fixture
def looks(monkeypatch):
    """Turns look as often as they are asked."""
    monkeypatch.setattr(turn, "LOOK_S", 0.0)


def test_a_look_at_a_long_queue_costs_as_much_as_at_a_short_one(ask, looks):
    ask(waits=False)
    waiting = [Turn(ask(waits=True)) for _ in range(40)]

    def cost() -> float:
        begin = time.process_time()
        assert not waiting[-1].take()
        return time.process_time() - begin

    whole = cost()
    assert min(cost() for _ in range(5)) < whole / 8


def test_what_changes_is_seen_though_one_look_is_at_one_run(ask, looks, root):
    holder, first, second = ask(waits=False), ask(waits=True), ask(waits=True)
    turns = {run.id: Turn(run) for run in (first, second)}
    assert not any(one.take() for one in turns.values())
    queue.move(second, "first")
    assert not any(one.take() for one in turns.values())
    holder.write(holder.exit, {})
    assert not turns[first.id].take()
    queue.set_paused(root, is_paused=True)
    assert not turns[second.id].take()
    queue.set_paused(root, is_paused=False)
    assert turns[second.id].take()
    assert not read_owner(second).waiting
    assert not turns[first.id].take()
    shutil.rmtree(second.path)
    assert turns[first.id].take()


def test_a_run_of_a_newer_ringside_holds_up_nobody(ask, looks, root, spec):
    newer, mine = ask(waits=False), ask(waits=True)
    owner = json.loads(newer.owner.read_bytes()) | {"format": 99}
    newer.owner.write_text(json.dumps(owner))
    assert [claim.run_id for claim in Claims(root).read()] == [mine.id]
    queue.refuse_held(root, msgspec.structs.replace(spec, device="cuda", gpu_ids=(1,)))
    assert Turn(mine).take()


def test_a_run_that_another_user_never_started_holds_nothing_for_ever(ask, spec, root, monkeypatch):
    theirs = ask(waits=False)
    theirs.owner.unlink()
    wish = msgspec.structs.replace(spec, device="cuda", gpu_ids=(0,))
    with pytest.raises(LaunchError, match=theirs.name):
        queue.refuse_held(root, wish)
    monkeypatch.setattr(os, "getuid", lambda: 4242)  # neither its owner nor root
    before = time.time() - 120
    os.utime(theirs.spec, (before, before))
    queue.refuse_held(root, wish)


def test_a_folder_of_several_people_stays_one(root):
    """Where a group may write, it may also take turns; the usual umask would keep it out."""
    root.mkdir(parents=True)
    root.chmod(0o2770)
    before = os.umask(0o022)
    try:
        with queue_lock(root):
            pass
        change_order(root, "here", lambda order: Order(is_paused=True))
    finally:
        os.umask(before)
    for folder in (root / ".locks", root / ".queue"):
        assert oct(folder.stat().st_mode & 0o7777) == "0o2770"
    assert oct((root / ".locks" / "queue.lock").stat().st_mode & 0o777) == "0o660"


def test_a_waiting_run_whose_folder_was_removed_ends(spec, root, ask):
    ask(waits=False)
    wish = msgspec.structs.replace(spec, device="cuda", gpu_ids=(0,), queue=True)
    run = local.start_run(wish, Hardware(), root)
    process = read_owner(run).process
    shutil.rmtree(run.path)
    assert wait_until(lambda: not is_alive(process), 15)
    assert not run.path.exists()
