"""Marks survive their process; stacks are written when a rank comes no further, and only then."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest

from ringside.marks import ACTIVITIES, LAYOUT, PHASES, Mark, read_marks, unpack
from ringside.rundir import RunDir
from training.control import Control
from training.progress_mark import ProgressMark


@pytest.fixture
def run(tmp_path):
    (tmp_path / "ranks").mkdir()
    return RunDir(tmp_path)


def keep(run: RunDir, rank: int = 0) -> ProgressMark:
    mark = ProgressMark(rank)
    mark.keep(run.ranks / f"rank{rank}.mark")
    return mark


def test_what_is_marked_is_read(run):
    mark = keep(run, 3)
    mark.begin("train", 2)
    mark.step, mark.batch = 2**40, 7
    mark.enter("backward")
    (read,) = read_marks(run)
    assert (read.rank, read.pid, read.phase, read.activity) == (3, os.getpid(), "train", "backward")
    assert (read.epoch, read.step, read.batch) == (2, 2**40, 7)
    assert read.t == pytest.approx(os.stat(run.ranks / "rank3.mark").st_mtime, abs=60)


def test_a_mark_survives_a_kill(run):
    script = """
        import os, signal, sys
        from pathlib import Path
        from training.progress_mark import ProgressMark
        mark = ProgressMark(1)
        mark.keep(Path(sys.argv[1]))
        mark.begin("train", 1)
        mark.step = 41
        mark.enter("data")
        os.kill(os.getpid(), signal.SIGKILL)
    """
    argv = [sys.executable, "-c", dedent(script), str(run.ranks / "rank1.mark")]
    assert subprocess.run(argv, cwd=Path(__file__).parents[2]).returncode == -signal.SIGKILL
    (read,) = read_marks(run)
    assert (read.step, read.activity) == (41, "data")


def test_damaged_marks_are_left_out(run):
    keep(run)
    (run.ranks / "rank1.mark").write_bytes(b"x" * LAYOUT.size)
    (run.ranks / "rank2.mark").write_bytes(b"RSM1")
    assert [mark.rank for mark in read_marks(run)] == [0]
    assert unpack(LAYOUT.pack(b"RSM1", 0, 1, 99, 0, 0, 0, 0, 0.0)) is None


def test_a_place_that_cannot_be_written_stops_nothing(tmp_path):
    mark = ProgressMark(0)
    mark.keep(tmp_path / "absent" / "rank0.mark")
    mark.enter("data")


def test_positions_grow_in_the_order_of_the_work():
    def mark(phase, activity, epoch=1, step=1, batch=1):
        return Mark(
            rank=0, pid=1, phase=phase, activity=activity, epoch=epoch, step=step, batch=batch, t=0
        ).position

    order = [
        mark("start", "begin", epoch=0, step=0), mark("setup", "exchange", epoch=0, step=0),
        mark("train", "data"), mark("train", "backward"), mark("train", "data", batch=2),
        mark("train", "optimizer", batch=2), mark("train", "exchange", batch=2),
        mark("train", "data", step=2), mark("evaluate", "data", step=2),
        mark("save", "save", step=2), mark("train", "begin", epoch=2, step=2),
        mark("train", "finished", epoch=2, step=9),
    ]  # fmt: skip
    assert order == sorted(order)
    assert len(set(order)) == len(order)


def test_an_exchange_is_marked_and_left_again(run):
    control = Control(0, 1)
    control.mark = keep(run)
    came_on = []
    control.came_on = lambda: came_on.append(read_marks(run)[0].activity)
    control.mark.enter("optimizer")
    control.exchange([1.0])
    assert came_on == ["optimizer"]
    assert {"exchange", "finished"} <= set(ACTIVITIES)
    assert "train" in PHASES


STUCK = """
    import ctypes, os, sys, threading, time
    from pathlib import Path
    from training.watchdog import StackFile
    watch = StackFile(Path(sys.argv[1]), 0.4)
    def looks():
        while True:
            time.sleep(0.05)
            watch.look()
    threading.Thread(target=looks, name="looks", daemon=True).start()
    def waits_for_ever():
        time.sleep(0.8)
    def holds_the_lock_for_ever():
        ctypes.PyDLL(None).usleep(800_000)
    how = sys.argv[2]
    holds_the_lock_for_ever() if how == "hangs in C" else waits_for_ever()
    if how == "comes on":
        watch.put_off()
    if how == "ends":
        watch.end()
    if how == "aborts":
        os.abort()
    os._exit(0)
"""


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        ("hangs", "in waits_for_ever"),
        ("hangs in C", "in holds_the_lock_for_ever"),
        ("comes on", ""),
        ("ends", None),
        ("aborts", "Aborted"),
    ],
)
def test_stacks_are_left_by_a_rank_that_comes_no_further(tmp_path, how, expected):
    path = tmp_path / "rank0.stack.txt"
    argv = [sys.executable, "-c", dedent(STUCK), str(path), how]
    subprocess.run(argv, cwd=Path(__file__).parents[2], check=how != "aborts")
    if expected is None:
        assert not path.exists()
    else:
        text = path.read_text()
        assert expected in text
        assert bool(expected) == bool(text)
        # faulthandler's own, which crashes at times, only where no thread can tell.
        assert ("Timeout (" in text) == (how == "hangs in C")


BUSY = """
    import sys, threading, time
    from pathlib import Path
    from training import watchdog
    from training.progress_mark import ProgressMark
    watchdog.MARGIN_S, watchdog.POLL_S = 0.0, 0.05
    mark = ProgressMark(0)
    told = []
    def prepares_batches():
        time.sleep(3)
    def does_something_else():
        time.sleep(3)
    for name, work in (("input", prepares_batches), ("pages", does_something_else)):
        threading.Thread(target=work, name=name, daemon=True).start()
    watch = watchdog.Watchdog(mark, Path(sys.argv[1]), 0.4, told.append)
    mark.begin(sys.argv[2], 1)
    def stands_still():
        time.sleep(0.8)
    def comes_on():
        for _ in range(8):
            time.sleep(0.1)
            mark.enter("data")
    comes_on()
    mark.enter(sys.argv[3])
    assert told == []
    stands_still()
    watch.end()
    print([error.__notes__[0] for error in told])
"""


@pytest.mark.parametrize(
    ("phase", "activity", "is_ended"),
    [
        ("train", "forward", True),
        ("data", "begin", False),
        ("compile", "forward", False),
        ("train", "save", False),
    ],
)
def test_only_a_training_step_that_stands_still_is_given_up(tmp_path, phase, activity, is_ended):
    stacks = str(tmp_path / "rank0.stack.txt")
    argv = [sys.executable, "-c", dedent(BUSY), stacks, phase, activity]
    done = subprocess.run(argv, cwd=Path(__file__).parents[2], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert ("stands_still" in done.stdout) == is_ended
    # Where batches are prepared ahead, training only waits for the thread that hangs.
    assert ("prepares_batches" in done.stdout) == is_ended
    assert "does_something_else" not in done.stdout
