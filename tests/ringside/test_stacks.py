"""What a rank's stacks say, read from dumps that CPython really wrote."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from textwrap import dedent

import pytest

from ringside.identity import wait_until
from ringside.rundir import RunDir
from ringside.stacks import (
    INSISTENT_SIGNAL,
    SIGNAL,
    Frame,
    RankStacks,
    ThreadStack,
    doing,
    groups,
    parse_stacks,
    read_stacks,
    stacks_path,
)

CLONE = Path(__file__).parents[2]

PREPARED = """
    import ctypes, sys, threading, time
    from pathlib import Path
    from training.asked_stacks import AskedStacks
    asked = AskedStacks(Path(sys.argv[1]))
    def waits_beside():
        time.sleep(60)
    threading.Thread(target=waits_beside, name="beside", daemon=True).start()
    def adds():
        while True:
            sum(range(10))
    def trains():
        time.sleep(60)
    # ctypes.PyDLL keeps Python's lock during the call, as C code that hangs may do; the second
    # lock of a mutex never returns, and no signal ends it.
    def hangs_in_c():
        lib, mutex = ctypes.PyDLL(None), ctypes.create_string_buffer(64)
        time.sleep(0.2)
        lib.pthread_mutex_lock(mutex)
        lib.pthread_mutex_lock(mutex)
    print("ready", flush=True)
    globals()[sys.argv[2]]()
"""


@pytest.fixture
def run(tmp_path):
    (tmp_path / "ranks").mkdir()
    return RunDir(tmp_path)


@contextmanager
def prepared(path: Path, does: str):
    argv = [sys.executable, "-c", dedent(PREPARED), str(path), does]
    with subprocess.Popen(argv, cwd=CLONE, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout.readline() == b"ready\n"
            yield process
        finally:
            process.kill()


def ask(process: subprocess.Popen, path: Path, number: signal.Signals = SIGNAL) -> str:
    before = path.stat().st_size
    process.send_signal(number)
    assert wait_until(lambda: path.stat().st_size > before, 5.0)
    time.sleep(0.2)
    return path.read_text()


def functions_of(thread: ThreadStack) -> list[str]:
    return [frame.function for frame in thread.frames]


def test_a_process_whose_main_thread_waits_answers(run):
    path = stacks_path(run, 0)
    with prepared(path, "trains") as process:
        assert wait_until(lambda: "in trains" in ask(process, path), 5.0)
        once = parse_stacks(ask(process, path))
        twice = parse_stacks(ask(process, path))
    assert once == twice  # of two dumps the newer
    assert [(thread.name, thread.is_main) for thread in once] == [
        ("beside", False), ("MainThread", True),
    ]  # fmt: skip
    assert "waits_beside" in functions_of(once[0])
    assert functions_of(once[1]) == ["trains", "<module>"]
    (stored,) = read_stacks(run)
    assert (stored.rank, stored.threads) == (0, once)


def test_a_process_that_holds_python_s_lock_answers_who_insists(run):
    path = stacks_path(run, 0)
    with prepared(path, "hangs_in_c") as process:
        time.sleep(0.5)
        process.send_signal(SIGNAL)
        time.sleep(0.5)
        assert not path.stat().st_size, "no thread can run Python there"
        ask(process, path, INSISTENT_SIGNAL)
    (stored,) = read_stacks(run)
    functions = [functions_of(thread) for thread in stored.threads]
    assert any("waits_beside" in names for names in functions)
    assert functions[-1] == ["hangs_in_c", "<module>"]


def test_who_is_asked_often_goes_on(run):
    """faulthandler's own thread, among threads that run Python, ends CPython 3.12 in seconds."""
    path = stacks_path(run, 0)
    with prepared(path, "adds") as process:
        until = time.monotonic() + 3.0
        while time.monotonic() < until:
            process.send_signal(SIGNAL)
            time.sleep(0.001)
        assert process.poll() is None
        text = ask(process, path)
        assert "in adds" in text
        assert "[MainThread]" in text, "faulthandler does not know Python's names"


def test_the_file_is_bounded_and_an_empty_one_is_removed(tmp_path):
    code = """
        import os, sys
        from pathlib import Path
        from training import asked_stacks
        asked_stacks.MAX_BYTES = 1000
        path = Path(sys.argv[1])
        asked = asked_stacks.AskedStacks(path)
        for _ in range(50):
            before = path.stat().st_size
            os.kill(os.getpid(), asked_stacks.SIGNAL)
            while path.stat().st_size == before:
                pass
            asked.tidy()
            assert path.stat().st_size < 2500
        os.truncate(path, 0)
        asked.end()
        assert not path.exists()
    """
    argv = [sys.executable, "-c", dedent(code), str(tmp_path / "x")]
    subprocess.run(argv, cwd=CLONE, check=True)


def test_who_asks_while_the_run_ends_does_not_end_it(tmp_path):
    code = """
        import os, sys
        from pathlib import Path
        from training import asked_stacks
        asked = asked_stacks.AskedStacks(Path(sys.argv[1]))
        asked.end()
        os.kill(os.getpid(), asked_stacks.SIGNAL)
        os.kill(os.getpid(), asked_stacks.INSISTENT_SIGNAL)
    """
    argv = [sys.executable, "-c", dedent(code), str(tmp_path / "x")]
    subprocess.run(argv, cwd=CLONE, check=True)


def test_a_forked_worker_that_lives_on_does_not_hold_up_the_end(tmp_path):
    """It has the pipe open too."""
    code = """
        import os, signal, sys, time
        from pathlib import Path
        from training.asked_stacks import AskedStacks
        asked = AskedStacks(Path(sys.argv[1]))
        worker = os.fork()
        if not worker:
            time.sleep(60)
            os._exit(0)
        begin = time.monotonic()
        asked.end()
        os.kill(worker, signal.SIGKILL)
        assert time.monotonic() - begin < 5
    """
    argv = [sys.executable, "-c", dedent(code), str(tmp_path / "x")]
    subprocess.run(argv, cwd=CLONE, check=True, timeout=30)


def test_the_watchdog_s_own_stacks_count_where_nobody_asked(run):
    text = 'Current thread 0x01 (most recent call first):\n  File "a.py", line 3 in <module>\n'
    (run.ranks / "rank3.stack.txt").write_text("Timeout (0:00:05)!\n" + text)
    (run.ranks / "rankx.stacks.txt").write_text(text)
    (run.ranks / "rank1.stacks.txt").write_text("nothing that looks like a stack")
    (found,) = read_stacks(run)
    assert (found.rank, found.main.frames) == (
        3,
        (Frame(file="a.py", line=3, function="<module>"),),
    )


def test_a_deep_main_thread_is_known_by_its_name():
    """Only its innermost calls are told, so it does not end in those of a main thread."""
    text = (
        'Thread 0x1 [MainThread] (most recent call first):\n  File "a.py", line 3 in deep\n  ...\n'
    )
    (twice,) = parse_stacks(text + text)
    assert twice.is_main


def test_a_file_whose_name_is_no_utf_8_is_told_too():
    code = """
        import threading, time
        from training.thread_stacks import thread_stacks
        called = dict(time=time)
        exec(compile("def waits(): time.sleep(5)", "/home/m\\udcfcller/a.py", "exec"), called)
        threading.Thread(target=called["waits"], daemon=True).start()
        time.sleep(0.2)
        assert b"/home/m\\\\udcfcller/a.py" in thread_stacks(), thread_stacks()
    """
    subprocess.run([sys.executable, "-c", dedent(code)], cwd=CLONE, check=True)


def test_names_of_threads_and_unknown_lines_are_read():
    """As CPython 3.13 and later write them."""
    text = 'Thread 0x7f [pt_autograd_0] (most recent call first):\n  File "a b.py", line ??? in f\n'
    (thread,) = parse_stacks(text)
    assert thread == ThreadStack(
        ident="0x7f", name="pt_autograd_0", frames=(Frame(file="a b.py", line=None, function="f"),)
    )


TORCH = "/venv/site-packages/torch/"


@pytest.mark.parametrize(
    ("frames", "words"),
    [
        ([("distributed/distributed_c10d.py", "all_gather")], "waits in all_gather"),
        ([("distributed/c10d_logger.py", "wrapper"), ("distributed/distributed_c10d.py",
          "broadcast_object_list")], "waits in broadcast"),
        ([("autograd/graph.py", "_engine_run_backward")], "is in backward"),
        ([("cuda/__init__.py", "synchronize")], "waits for the GPU"),
        ([("cuda/__init__.py", "is_available")], None),
        ([("utils/data/dataloader.py", "_try_get_data")], "waits for data"),
        ([("nn/functional.py", "all_reduce")], None),
    ],
)  # fmt: skip
def test_what_a_rank_does_follows_from_its_innermost_calls(frames, words):
    frames = [Frame(file=TORCH + file, line=1, function=name) for file, name in frames]
    assert doing(frames) == words


def stack_of(rank: int, *frames: tuple[str, int, str]) -> RankStacks:
    frames = tuple(Frame(file=file, line=line, function=name) for file, line, name in frames)
    return RankStacks(rank=rank, threads=(ThreadStack(ident="0", frames=frames, is_main=True),))


def test_ranks_that_stand_alike_stand_together_and_the_odd_one_first():
    waits = (TORCH + "distributed/distributed_c10d.py", 9, "all_gather")
    control, loop = ("/x/training/control.py", 85, "gather"), ("/x/training/loop.py", 7, "step")
    odd = stack_of(2, ("/x/ringside/data/products/render.py", 5, "_draw"), loop)
    alike = [stack_of(rank, waits, control, loop) for rank in (0, 1, 3)]
    silent = RankStacks(rank=4, problem="it does not answer")
    found = groups([*alike[:2], odd, alike[2], silent])
    assert [group.ranks for group in found] == [(2,), (4,), (0, 1, 3)]
    assert found[2].doing == "waits in all_gather"
    assert [frame.function for frame in found[2].own] == ["gather", "step"]
    assert found[2].innermost.text == "torch/distributed/distributed_c10d.py:9 all_gather"
    assert [frame.function for frame in found[0].own] == ["_draw", "step"]
