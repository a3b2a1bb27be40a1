"""The queue with real supervisors: runs take turns by themselves, whoever is killed meanwhile."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time

import msgspec
import pytest

from ringside.errors import LaunchError
from ringside.hardware import Hardware
from ringside.identity import run_processes, wait_until
from ringside.launch import local, queue
from ringside.launch.claims import Claims
from ringside.launch.ladder import stop_ladder
from ringside.launch.occupied import runs_on
from ringside.launch.plan import LaunchPlan
from ringside.launch.queue import holders, places
from ringside.launch.reconcile import reconcile
from ringside.launch.stop import stop_run
from ringside.records import Owner, read_exit, read_owner
from ringside.run import fold_run, running_beside
from ringside.rundir import RunDir, list_run_dirs

# Trains until it is told to end: by a file of the test, or by a stop request.
TRAINER = """
import pathlib, sys, time
run = pathlib.Path(sys.argv[1])
print("ready")
while not any((run / name).exists() for name in ("go", "requests/stop.json")):
    time.sleep(0.02)
"""


@pytest.fixture
def trained(monkeypatch):
    """Runs made by create_run execute TRAINER, without a warm-up of Python's own imports."""

    def plan(_spec, run):
        return LaunchPlan(
            argv=[sys.executable, "-I", "-S", "-u", "-c", TRAINER, str(run.path)],
            environment={"RINGSIDE_RUN": run.id},
            cwd=str(run.path),
        )

    monkeypatch.setattr(local, "make_plan", plan)


@pytest.fixture
def ask(spec, root, trained):
    """Start a run on these GPUs; whatever is left of any is ended after the test."""

    def start(*gpus, wait=True, **details):
        wish = msgspec.structs.replace(spec, device="cuda", gpu_ids=gpus, queue=wait, **details)
        return local.start_run(wish, Hardware(), root)

    yield start
    runs = list_run_dirs(root)
    for run in runs:
        owner = read_owner(run)
        if owner is not None and owner.host == os.uname().nodename:
            stop_ladder([owner.process], run.id, step_s=1.0)


def has_begun(run, timeout_s=10.0):
    return wait_until(lambda: run.console.exists() and run.console.read_text() != "", timeout_s)


def finish(run):
    (run.path / "go").touch()
    assert wait_until(run.exit.exists, 10)
    assert read_exit(run).state == "completed"


def state(run):
    return fold_run(run).state


def line(root):
    return [(place.run_id, place.position) for place in places(Claims(root))]


def test_three_runs_for_one_device_take_turns_in_their_order(ask, root):
    first, second, third = (ask(0) for _ in range(3))
    assert has_begun(first)
    assert [state(run) for run in (first, second, third)] == ["launching", "queued", "queued"]
    assert line(root) == [(second.id, 1), (third.id, 2)]
    waiting = places(Claims(root))[1]
    assert [h.name for h in waiting.waits_for] == [first.name, second.name]
    assert [h.gpu_ids for h in waiting.waits_for] == [(0,), (0,)]

    finish(first)
    assert has_begun(second)
    assert state(third) == "queued"
    assert read_owner(second).started > read_exit(first).finished
    finish(second)
    assert has_begun(third)
    assert line(root) == []
    finish(third)


def test_other_devices_are_free_and_what_waits_for_two_is_not_overtaken(ask, root):
    left, both, right, other = ask(0), ask(0, 1), ask(1), ask(2, 3)
    assert has_begun(left)
    assert has_begun(other)
    # GPU 1 is free, but `both` came first.
    assert [state(run) for run in (both, right)] == ["queued", "queued"]
    finish(left)
    assert has_begun(both)
    assert state(right) == "queued"
    for run in (both, right, other):
        finish(run)


def test_another_order_counts_and_a_pause_lets_nobody_out(ask, root):
    first, second, third = (ask(0) for _ in range(3))
    assert has_begun(first)
    queue.move(third, "first")
    assert line(root) == [(third.id, 1), (second.id, 2)]
    queue.move(third, "down")
    queue.move(second, "down")
    assert line(root) == [(third.id, 1), (second.id, 2)]
    queue.set_paused(root, is_paused=True)
    finish(first)
    assert not has_begun(third, 1.5)
    assert all(place.is_paused for place in places(Claims(root)))
    queue.set_paused(root, is_paused=False)
    assert has_begun(third)
    assert state(second) == "queued"
    with pytest.raises(LaunchError, match=f"{third.name} does not wait"):
        queue.move(third, "up")


def test_a_waiting_run_is_stopped_at_once_and_never_starts(ask, root):
    first, second = ask(0), ask(0)
    assert has_begun(first)
    began = time.monotonic()
    record = stop_run(second, timeout_s=5)
    assert time.monotonic() - began < 2
    assert (record.state, record.reason) == ("stopped", "Stopped on request before it started.")
    third = ask(0)
    second_stop = threading.Timer(
        0.2, lambda: os.kill(read_owner(third).process.pid, signal.SIGTERM)
    )
    second_stop.start()
    assert wait_until(third.exit.exists, 5)
    assert read_exit(third).reason == "Stopped on request before it started."
    assert not second.console.exists()
    assert not third.console.exists()
    assert state(first) == "launching"


def test_a_killed_supervisor_in_the_queue_keeps_nobody_from_its_turn(ask, root):
    first, second, third = (ask(0) for _ in range(3))
    assert has_begun(first)
    os.kill(read_owner(second).process.pid, signal.SIGKILL)
    assert wait_until(lambda: line(root) == [(third.id, 1)], 5)
    finish(first)
    assert has_begun(third)
    assert wait_until(second.exit.exists, 5)
    record = read_exit(second)
    assert record.state == "lost"
    assert record.reason == "Its supervisor ended while it waited in the queue."


def test_a_killed_supervisor_of_the_holder_frees_its_device(ask):
    first, second = ask(0), ask(0)
    assert has_begun(first)
    os.kill(read_owner(first).process.pid, signal.SIGKILL)
    # The trainer lives on without its owner. The run that waits for its device closes the books.
    assert has_begun(second, 20)
    assert not run_processes(first.id)
    assert read_exit(first).state == "lost"
    assert "1 leftover process was ended" in read_exit(first).reason


def test_a_waiting_run_outlives_whoever_started_it(ask, spec, root, tmp_path):
    first = ask(0)
    assert has_begun(first)
    file = tmp_path / "spec.json"
    wish = msgspec.structs.replace(spec, device="cuda", gpu_ids=(0,), queue=True)
    file.write_bytes(msgspec.json.encode(wish))
    code = """
import os, pathlib, sys, msgspec
from ringside.hardware import Hardware
from ringside.launch import local
from ringside.spec import RunSpec
spec = msgspec.json.decode(pathlib.Path(sys.argv[1]).read_bytes(), type=RunSpec)
run = local.create_run(spec, Hardware(), pathlib.Path(sys.argv[2]))
plan = msgspec.json.decode((pathlib.Path(sys.argv[3]) / "plan.json").read_bytes())
plan["argv"][-1] = str(run.path)
run.write(run.plan, plan | {"environment": {"RINGSIDE_RUN": run.id}})
local.start(run)
os.kill(os.getpid(), 9)
"""
    argv = [sys.executable, "-c", code, str(file), str(root), str(first.path)]
    assert subprocess.run(argv, check=False).returncode == -9
    second = next(run for run in list_run_dirs(root) if run.id != first.id)
    assert state(second) == "queued"
    finish(first)
    assert has_begun(second)
    finish(second)


def test_gpus_that_a_run_holds_are_refused_unless_asked(ask, spec, root):
    first, second = ask(0, 1), ask(1)
    assert has_begun(first)
    with pytest.raises(LaunchError) as refusal:
        ask(0, 2, wait=False)
    assert str(refusal.value) == (
        f"GPU 0 is used by the run {first.name}: wait for it with --queue, choose others with "
        "--gpus, or share with --beside."
    )
    wish = msgspec.structs.replace(spec, device="cuda", gpu_ids=(1,))
    assert [(h.name, h.gpu_ids, h.state) for h in holders(root, wish)] == [
        (first.name, (0, 1), "running"), (second.name, (1,), "queued"),
    ]  # fmt: skip
    beside = ask(0, wait=False, beside=True)
    assert has_begun(beside)
    finish(first)
    assert has_begun(second)
    finish(second)
    finish(beside)
    # What only waits is in the way too: else those who do not wait would go before it for ever.
    queue.set_paused(root, is_paused=True)
    third = ask(3)
    with pytest.raises(LaunchError, match=f"The run {third.name} waits in the queue for GPU 3"):
        ask(3, wait=False)


def test_starts_at_the_same_moment_never_share_a_gpu(ask, root):
    started, refused = [], []

    def press():
        try:
            started.append(ask(0, wait=False))
        except LaunchError:
            refused.append(1)

    threads = [threading.Thread(target=press) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(started), len(refused)) == (1, 5)
    assert len(list_run_dirs(root)) == 1


def test_a_form_that_is_sent_twice_waits_once(ask, root):
    first = ask(0)
    again = [ask(0, request_id="a-form") for _ in range(2)]
    assert again[0].path == again[1].path
    assert len(list_run_dirs(root)) == 2
    assert state(first) == "launching"


def test_on_a_cpu_runs_wait_for_each_other_or_stand_beside(spec, root, ask, hardware):
    wait = msgspec.structs.replace(spec, queue=True)
    first, second = (local.start_run(wait, hardware, root) for _ in range(2))
    assert has_begun(first)
    beside = local.start_run(spec, hardware, root)
    assert has_begun(beside)
    assert state(second) == "queued"
    # What waits uses no core.
    assert set(running_beside(root, spec, 2)) == set(runs_on(root, hardware))
    assert set(runs_on(root, hardware)) == {first.name, beside.name}
    finish(first)
    assert not has_begun(second, 1.5)
    finish(beside)
    assert has_begun(second)


def test_each_machine_has_a_queue_of_its_own(ask, root):
    here = ask(0)
    assert has_begun(here)
    there = [ask(0) for _ in range(2)]
    for number, run in enumerate(there):
        owner = read_owner(run)
        os.kill(owner.process.pid, signal.SIGKILL)
        moved = msgspec.structs.replace(owner, host="elsewhere", waiting=number > 0)
        run.write(run.owner, moved)
    waiting = ask(0)
    assert line(root) == [(there[1].id, 1), (waiting.id, 1)]
    assert [p.waits_for[0].name for p in places(Claims(root))] == [there[0].name, here.name]
    assert [p.host for p in places(Claims(root))] == ["elsewhere", os.uname().nodename]
    finish(here)
    assert has_begun(waiting)


@pytest.mark.parametrize(
    ("boot", "reason"),
    [
        ("before", "The machine was restarted while it waited in the queue."),
        (None, "Its supervisor ended while it waited in the queue."),
    ],
)
def test_a_run_that_nobody_lets_wait_any_more_is_lost(make_run, boot, reason):
    run = make_run("")
    process = local._spawn_supervisor(RunDir(run.path))
    assert wait_until(run.exit.exists, 20)
    process.wait()
    run.exit.unlink()
    owner = run.read(run.owner, Owner)
    changed = msgspec.structs.replace(
        owner, waiting=True, process=msgspec.structs.replace(
            owner.process, boot_id=boot or owner.process.boot_id
        ),
    )  # fmt: skip
    run.write(run.owner, changed)
    assert reconcile(run)
    assert read_exit(run).reason == reason


def test_a_run_that_nobody_took_is_in_nobodys_way_for_ever(ask, spec, root):
    wish = msgspec.structs.replace(spec, device="cuda", gpu_ids=(0,))
    never = local.create_run(wish, Hardware(), root)
    with pytest.raises(LaunchError, match=never.name):
        ask(0, wait=False)
    waiting = ask(0)
    assert state(waiting) == "queued"
    before = time.time() - 120
    os.utime(never.spec, (before, before))
    assert has_begun(waiting)
    # It may have become old between two looks of the one that waits; then the next one closes it.
    assert never.exit.exists() or reconcile(never)
    assert read_exit(never).reason.startswith("It was never started")
