"""A run that stands still is noticed long before its timeout, and says so when it comes on."""

from __future__ import annotations

import statistics
import time
from pathlib import Path

import msgspec
import pytest

from ringside.events import Evaluated, EventWriter, WindowTimed
from ringside.hang import MAX_PAST, Hang, Standstill, read_hang
from ringside.identity import wait_until
from ringside.launch import hang_watch, local
from ringside.launch.hang_watch import HangWatch
from ringside.launch.pace import FIRST_STEPS_S, FLOOR_S, SCORING_FLOOR_S, TIMES, Pace
from ringside.marks import Mark, read_marks
from ringside.run import fold_run
from ringside.stacks import read_stacks
from tests.launch.marking import leave_marks

CLONE = str(Path(hang_watch.__file__).parents[2])


@pytest.fixture
def run(make_run):
    return make_run("")


def stands(rank=0, phase="train", activity="data", step=41) -> Mark:
    return Mark(rank=rank, pid=2**22 + 1, phase=phase, activity=activity, epoch=1, step=step,
                batch=1, t=100.0)  # fmt: skip


def window(step_ms: float, **fields) -> WindowTimed:
    names = ("samples_per_s", "train_loss", "learning_rate", "data_ms", "forward_ms",
             "backward_ms", "optimizer_ms", "step_ms_min", "data_ms_min")  # fmt: skip
    values = dict.fromkeys(names, 1.0)
    return WindowTimed(epoch=1, step=1, num_steps=1, step_ms=step_ms, **values, **fields)


class Clock:
    """Stands for `time.monotonic` of the watch; looks once a second on the way."""

    def __init__(self, monkeypatch, watch_of) -> None:
        self.now = 1000.0
        monkeypatch.setattr(hang_watch.time, "monotonic", lambda: self.now)
        self.watch = watch_of()

    def after(self, seconds: float) -> bool:
        """Whether the run hangs, so many seconds later."""
        for _ in range(round(seconds)):
            self.now += 1.0
            self.watch.look()
        return self.watch.hang.now is not None


@pytest.fixture
def clock(run, monkeypatch):
    return Clock(monkeypatch, lambda: HangWatch(run, set))


def test_the_limit_is_ten_times_what_most_steps_take(run):
    times = [1000.0 * (1 + number % 7) for number in range(100)]
    events = EventWriter(run.events)
    for step_ms in times:
        events.write(window(step_ms))
    events.write(window(1e9, profiled=True))  # the profiler's own time
    pace = Pace(run)
    pace.refresh()
    assert pace.p95_step_ms == statistics.quantiles(times, n=20, method="inclusive")[-1]
    assert pace.step_limit_s == TIMES * pace.p95_step_ms / 1000


def test_short_steps_have_a_floor_and_first_steps_more_time(run):
    pace, events = Pace(run), EventWriter(run.events)
    assert pace.step_limit_s == FIRST_STEPS_S
    for _ in range(3):
        events.write(window(12.0))
    pace.refresh()
    assert pace.step_limit_s == FLOOR_S


def test_standing_still_is_noticed_and_kept_as_a_note(run, clock):
    events = EventWriter(run.events)
    for _ in range(5):
        events.write(window(100.0))
    leave_marks(run, stands(0, activity="backward"), stands(1))
    assert not clock.after(FLOOR_S)
    assert clock.after(2)
    hang = read_hang(run)
    assert hang.now.p95_step_ms == 100.0
    assert (hang.now.step, hang.now.limit_s, hang.now.until) == (41, FLOOR_S, None)
    assert [(mark.rank, mark.activity) for mark in hang.now.marks] == [(0, "backward"), (1, "data")]
    assert clock.after(100)  # noted once
    assert fold_run(run).hang.now == hang.now
    leave_marks(run, stands(1, activity="forward"))
    assert not clock.after(1)
    (note,) = read_hang(run).past
    assert note.since == hang.now.since
    assert note.until is not None


@pytest.mark.parametrize(
    "mark",
    [
        stands(phase="start", activity="begin"), stands(phase="data", activity="begin"),
        stands(phase="setup", activity="exchange"), stands(phase="compile", activity="forward"),
        stands(phase="save", activity="begin"), stands(phase="profile", activity="begin"),
        stands(activity="save"), stands(activity="profile"),
        stands(phase="evaluate", activity="exchange"),
    ],
)  # fmt: skip
def test_what_takes_the_time_it_needs_is_no_standstill(run, clock, mark):
    leave_marks(run, mark, stands(1))
    assert not clock.after(3 * FIRST_STEPS_S)
    assert not run.hang.exists()


@pytest.mark.parametrize("phase", ["train", "evaluate"])
def test_ranks_that_have_finished_stand_still_by_right(run, clock, phase):
    """What they leave takes its time: connections, loader workers, a tracker's upload."""
    EventWriter(run.events).write(
        Evaluated(epoch=1, num_evaluated=1, evaluation_time_s=1.0, val_loss=1.0, auc_macro=None,
                  num_auc_classes=0, num_classes=1, f1_macro=0, f1_micro=0, map_macro=None)
    )  # fmt: skip
    leave_marks(run, stands(0, phase, "finished"), stands(1, phase, "finished"))
    assert not clock.after(2 * FIRST_STEPS_S)
    assert not run.hang.exists()
    leave_marks(run, stands(1, phase, "forward" if phase == "train" else "evaluate"))
    assert clock.after(FIRST_STEPS_S + 2)


def test_scoring_stands_still_when_it_takes_ten_times_as_long_as_before(run, clock):
    EventWriter(run.events).write(
        Evaluated(epoch=1, num_evaluated=1, evaluation_time_s=9.0, val_loss=1.0, auc_macro=None,
                  num_auc_classes=0, num_classes=1, f1_macro=0, f1_micro=0, map_macro=None)
    )  # fmt: skip
    leave_marks(run, stands(0, "evaluate", "exchange"), stands(1, "evaluate"))
    assert not clock.after(max(SCORING_FLOOR_S, 90))
    assert clock.after(2)


def test_it_is_said_before_the_ranks_end_themselves(run, spec, monkeypatch):
    """With a timeout shorter than the limit, at half of it."""
    settings = msgspec.structs.replace(spec.training, timeout_s=12)
    run.write(run.spec, msgspec.structs.replace(spec, training=settings))
    clock = Clock(monkeypatch, lambda: HangWatch(run, set))
    leave_marks(run, stands())
    assert not clock.after(5)
    assert clock.after(2)


def test_a_watch_that_was_stopped_itself_knows_nothing_of_that_time(run, clock):
    leave_marks(run, stands())
    assert not clock.after(FIRST_STEPS_S - 5)
    clock.now += 1000
    assert not clock.after(5)
    assert not clock.after(FIRST_STEPS_S - 10)
    assert clock.after(10)


def test_a_watch_that_breaks_touches_nothing(run, clock, monkeypatch, capsys):
    monkeypatch.setattr(hang_watch, "read_marks", lambda _run: 1 / 0)
    assert not clock.after(3)
    assert capsys.readouterr().err.count("ZeroDivisionError") == 1


def test_of_many_standstills_the_newest_are_kept():
    hang = Hang()
    for step in range(MAX_PAST + 5):
        hang = hang.begun(Standstill(since=1.0, limit_s=20.0, step=step, epoch=1, marks=())).ended(
            2.0
        )
    assert [one.step for one in hang.past] == list(range(5, MAX_PAST + 5))
    assert hang.ended(3.0) == hang


TRAINER = """
    import ctypes, os, sys, time
    from pathlib import Path
    sys.path.insert(0, {root!r})
    from training.asked_stacks import AskedStacks
    from training.progress_mark import ProgressMark
    ranks = Path(sys.argv[1]) / "ranks"
    asked = AskedStacks(ranks / "rank0.stacks.txt")
    mark = ProgressMark(0)
    mark.keep(ranks / "rank0.mark")
    mark.begin("train", 1)
    mark.step = 7
    def waits_for_its_images():
        mark.enter("data")
        {waits}
    waits_for_its_images()
    mark.enter("forward")
    time.sleep(1.5)
    mark.enter("finished")
"""


@pytest.mark.parametrize(
    ("waits", "by_python"),
    [
        ("time.sleep(4.5)", True),
        # Holds Python's lock in a call that no signal ends: the supervisor has to insist.
        (
            "lib, mutex = ctypes.PyDLL(None), ctypes.create_string_buffer(64)\n        "
            "lib.pthread_mutex_lock(mutex)\n        "
            "lib.pthread_mutex_timedlock(mutex, (ctypes.c_long * 2)(int(time.time()) + 7, 0))",
            False,
        ),
    ],
    ids=["waits", "holds the lock"],
)
def test_the_supervisor_has_the_stacks_of_a_rank_that_stands_still(
    make_run, spec, wait_exit, waits, by_python
):
    run = make_run(TRAINER.format(root=CLONE, waits=waits))
    settings = msgspec.structs.replace(spec.training, timeout_s=5)
    run.write(run.spec, msgspec.structs.replace(spec, training=settings))
    local.start(run)
    assert wait_until(run.hang.exists, 20.0), run.console.read_text()
    standstill = fold_run(run).hang.now
    assert (standstill.step, standstill.stacks_t is None) == (7, False)
    # The main thread comes last.
    assert wait_until(lambda: any(one.main for one in read_stacks(run)), 5.0)
    (stacks,) = read_stacks(run)
    assert "waits_for_its_images" in [frame.function for frame in stacks.main.frames]
    # faulthandler does not know Python's names.
    assert (stacks.main.name == "MainThread") == by_python
    assert wait_exit(run).state == "completed"
    hang = read_hang(run)
    assert hang.now is None
    assert 4.0 < hang.past[0].lasted_s(time.time()) < 9.0
    assert read_marks(run)[0].activity == "finished"


UNPREPARED = """
    import os, sys, time
    from pathlib import Path
    sys.path.insert(0, {root!r})
    from training.progress_mark import ProgressMark
    mark = ProgressMark(0)
    mark.keep(Path(sys.argv[1]) / "ranks" / "rank0.mark")
    mark.begin("train", 1)
    time.sleep(4.5)
    mark.enter("finished")
"""


def test_a_process_that_the_signal_would_end_is_not_asked(make_run, spec, wait_exit):
    run = make_run(UNPREPARED.format(root=CLONE))
    settings = msgspec.structs.replace(spec.training, timeout_s=5)
    run.write(run.spec, msgspec.structs.replace(spec, training=settings))
    local.start(run)
    assert wait_exit(run).state == "completed"
    (note,) = read_hang(run).past
    assert note.stacks_t is None
