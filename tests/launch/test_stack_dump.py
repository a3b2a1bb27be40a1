"""Who asks a rank for its stacks: first its threads, then, where none can answer, C."""

from __future__ import annotations

import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from textwrap import dedent

import pytest

from ringside import identity
from ringside.launch import stack_dump
from ringside.rundir import RunDir
from ringside.stacks import stacks_path

CLONE = Path(__file__).parents[2]

RANK = """
    import ctypes, sys, time
    from pathlib import Path
    from training.asked_stacks import AskedStacks
    from training.progress_mark import ProgressMark
    ranks = Path(sys.argv[1])
    asked = AskedStacks(ranks / "rank0.stacks.txt")
    mark = ProgressMark(0)
    mark.keep(ranks / "rank0.mark")
    print("ready", flush=True)
    def waits():
        time.sleep(60)
    # ctypes.PyDLL keeps Python's lock, and the second lock of a mutex never returns.
    def hangs_in_c():
        lib, mutex = ctypes.PyDLL(None), ctypes.create_string_buffer(64)
        lib.pthread_mutex_lock(mutex)
        lib.pthread_mutex_lock(mutex)
    globals()[sys.argv[2]]()
"""


@pytest.fixture
def run(tmp_path):
    (tmp_path / "ranks").mkdir()
    return RunDir(tmp_path)


@pytest.fixture
def rank(run, monkeypatch):
    """`with rank("waits") as process`: one that is known as the run's only rank."""

    @contextmanager
    def start(does: str):
        argv = [sys.executable, "-c", dedent(RANK), str(run.ranks), does]
        with subprocess.Popen(argv, cwd=CLONE, stdout=subprocess.PIPE) as process:
            monkeypatch.setattr(stack_dump, "require_live", lambda _run: None)
            known = {identity.of(process.pid)}
            monkeypatch.setattr(stack_dump, "processes_of", lambda _run: known)
            try:
                assert process.stdout.readline() == b"ready\n"
                yield process
            finally:
                process.kill()

    return start


def functions_of(run: RunDir) -> list[str]:
    (found,) = stack_dump.dump_stacks(run)
    return [frame.function for frame in found.main.frames] if found.main else []


@pytest.mark.parametrize(
    ("does", "name"), [("waits", "MainThread"), ("hangs_in_c", None)], ids=["python", "C"]
)
def test_a_rank_answers_one_way_or_the_other(run, rank, does, name):
    """faulthandler, the other way, does not know Python's names of threads."""
    with rank(does):
        assert identity.wait_until(lambda: does in functions_of(run), 15.0)
        (found,) = stack_dump.dump_stacks(run)
    assert (found.problem, found.main.name) == (None, name)


def test_a_stopped_rank_is_not_insisted_on(run, rank, monkeypatch):
    """Its threads may run Python when it goes on, and faulthandler would read them."""
    monkeypatch.setattr(stack_dump, "PATIENCE_S", 0.5)
    path = stacks_path(run, 0)
    with rank("waits") as process:
        process.send_signal(signal.SIGSTOP)
        (found,) = stack_dump.dump_stacks(run, wait_s=1.0)
        assert found.problem is not None
        process.send_signal(signal.SIGCONT)
        # What was asked meanwhile is answered now, by a thread.
        assert identity.wait_until(lambda: "[MainThread]" in path.read_text(), 5.0)
    assert "Current thread" not in path.read_text()
