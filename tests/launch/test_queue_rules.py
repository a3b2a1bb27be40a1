"""Whose turn it is: never two on one device, in the order that people see."""

from __future__ import annotations

import random
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringside.errors import LaunchError
from ringside.launch import queue, queue_order
from ringside.launch.claims import CPU, Claim
from ringside.launch.queue import blockers, is_next, line_of
from ringside.launch.queue_order import Order, change_order, moved, read_order

GPUS = st.sets(st.integers(0, 3), min_size=1).map(frozenset)


def claim(number: int, devices=frozenset({0}), state="queued", since=None) -> Claim:
    run_id = f"20260101-{number:06d}-calm-fox"
    return Claim(run_id, "here", devices, state, number if since is None else since)


def run_out(wanted, order, ends):
    """Serve all claims as their supervisors do: whoever may start does; now and then one ends.

    Returns the ids in the order in which they started, and asserts that no device has two holders.
    """
    waiting = {c.run_id: c for c in wanted}
    holding: dict[str, Claim] = {}
    started = []
    while waiting or holding:
        claims = [*waiting.values(), *holding.values()]
        ready = [run_id for run_id in waiting if is_next(run_id, claims, order)]
        assert ready or holding, "nobody holds anything and nobody may start"
        if ready and (not holding or ends.random() < 0.7):
            run_id = ends.choice(ready)
            mine = waiting.pop(run_id)
            assert not any(other.devices & mine.devices for other in holding.values())
            holding[run_id] = Claim(run_id, "here", mine.devices, "running", mine.since)
            started.append(run_id)
        else:
            holding.pop(ends.choice(sorted(holding)))
    return started


@given(st.lists(GPUS, min_size=1, max_size=8), st.randoms(use_true_random=False), st.data())
def test_no_device_has_two_holders_and_nobody_is_overtaken_on_a_device(wanted, ends, data):
    claims = [claim(number, devices) for number, devices in enumerate(wanted)]
    moved_ids = data.draw(st.permutations([c.run_id for c in claims]))
    order = Order(runs=tuple(moved_ids[: data.draw(st.integers(0, len(moved_ids)))]))
    line = line_of(claims, order.runs)
    started = run_out(claims, order, ends)
    assert sorted(started) == sorted(c.run_id for c in claims)
    for place, first in enumerate(line):
        for later in line[place + 1 :]:
            if first.devices & later.devices:
                assert started.index(first.run_id) < started.index(later.run_id)


@given(st.lists(st.integers(0, 30), unique=True, min_size=1), st.data())
def test_a_move_moves_one_run_and_loses_none(numbers, data):
    line = [str(number) for number in numbers]
    who = data.draw(st.sampled_from(line))
    for direction, at in (
        ("first", 0),
        ("up", max(0, line.index(who) - 1)),
        ("down", min(len(line) - 1, line.index(who) + 1)),
    ):
        after = moved(line, who, direction)
        assert after.index(who) == at
        rest = [other for other in line if other != who]
        assert [other for other in after if other != who] == rest


def test_runs_stand_as_they_came_and_moved_ones_before_them():
    first, second, third = claim(1), claim(2), claim(3)
    names = [c.run_id for c in line_of([third, first, second])]
    assert names == [first.run_id, second.run_id, third.run_id]
    line = line_of([third, first, second], [second.run_id, "gone", first.run_id])
    assert [c.run_id for c in line] == [second.run_id, first.run_id, third.run_id]


def test_a_later_run_passes_on_other_devices_only():
    holder = claim(0, frozenset({0}), "running")
    both, free, wants_one = claim(1, frozenset({0, 1})), claim(2, frozenset({2})), claim(3, {1})
    claims = [holder, both, free, claim(3, frozenset({1}))]
    assert blockers(both.run_id, claims) == [holder]
    assert blockers(free.run_id, claims) == []
    # GPU 1 is free, but the run before it waits for it: it is not overtaken for ever.
    assert blockers(wants_one.run_id, claims) == [both]
    assert is_next(free.run_id, claims, Order())
    assert not is_next(wants_one.run_id, claims, Order())


def test_a_pause_holds_all_and_a_stopped_run_holds_its_place_no_more():
    claims = [claim(1, frozenset({CPU}), "stopping"), claim(2, frozenset({CPU}))]
    assert not is_next(claims[0].run_id, claims, Order())
    assert not is_next(claims[1].run_id, claims, Order(is_paused=True))


def test_many_people_who_change_the_order_at_once_all_get_their_way(tmp_path):
    ids = [f"{number}" for number in range(12)]
    start = threading.Barrier(len(ids))

    def add(run_id):
        start.wait()
        change_order(tmp_path, "here", lambda o: Order(runs=(*o.runs, run_id)))

    threads = [threading.Thread(target=add, args=(run_id,)) for run_id in ids]
    random.Random(0).shuffle(threads)
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(read_order(tmp_path, "here").runs) == sorted(ids)
    assert read_order(tmp_path, "there") == Order()


def test_a_machine_may_be_called_anything(tmp_path):
    change_order(tmp_path, "../../etc/my machine", lambda o: Order(is_paused=True))
    assert [path.parent.name for path in tmp_path.rglob("*.json")] == [".queue"]
    assert read_order(tmp_path, "../../etc/my machine").is_paused


def test_a_damaged_order_is_no_order_and_a_newer_one_is_refused(tmp_path):
    queue.set_paused(tmp_path, is_paused=True)
    path = next(tmp_path.rglob("*.json"))
    path.write_bytes(b'{"runs": 3')
    assert not queue.is_paused(tmp_path)
    path.write_bytes(b'{"format": 99}')
    with pytest.raises(Exception, match="update Ringside"):
        queue.is_paused(tmp_path)


def test_what_does_not_wait_cannot_be_moved(tmp_path):
    from ringside.rundir import create_run_dir

    run = create_run_dir(tmp_path)
    with pytest.raises(LaunchError, match=f"{run.name} does not wait in the queue"):
        queue.move(run, "up")
    assert queue_order.read_order(tmp_path, "here") == Order()
