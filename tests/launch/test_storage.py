"""Storage that fails: a full disk, a folder that cannot be written, a file system without locks."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import filelock
import msgspec
import pytest

from app import cli
from app.views.desk import Desk
from ringside.errors import LaunchError, RingsideError, RunDirError
from ringside.events import EventWriter, PhaseStarted, Warned, decode_lines
from ringside.identity import wait_until
from ringside.launch import local, locks
from ringside.launch.reconcile import reconcile_all
from ringside.launch.stop import request_stop, stop_run
from ringside.records import RankError, read_exit
from ringside.run import fold_run
from ringside.rundir import read_new_lines
from ringside.shelf.deleting import move_aside
from ringside.shelf.notes import edit_notes, read_notes
from ringside.spec import RunSpec

SLEEPS = "import time; print('ready', flush=True); time.sleep(120)"

# Fills the disk to the last byte, as a checkpoint would, then says why it cannot go on.
FILLS_THE_DISK = """
import pathlib, sys
from ringside.records import RankError
from ringside.rundir import RunDir
run = RunDir(pathlib.Path(sys.argv[1]))
try:
    with (run.checkpoints / "model").open("wb", buffering=0) as stream:
        while True:
            stream.write(bytes(4096))
except OSError as error:
    word = RankError(rank=0, t=1.0, sentence="The disk is full.", cause="disk_full")
    run.write_last_words(run.ranks / "rank0.error.json", word)
sys.exit(1)
"""


def mount(*words):
    done = subprocess.run(["mount", *words], capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"nothing can be mounted here: {done.stderr.strip()}")


def unmount(path):
    for _ in range(100):
        if subprocess.run(["umount", path], capture_output=True, check=False).returncode == 0:
            return
        time.sleep(0.1)
    subprocess.run(["umount", "-l", path], check=False)


@pytest.fixture
def root(tmp_path):
    """A runs folder on a disk of its own, of 2 MB."""
    folder = tmp_path / "small disk"
    folder.mkdir()
    mount("-t", "tmpfs", "-o", "size=2m", "tmpfs", str(folder))
    runs = folder / "runs"
    runs.mkdir()
    yield runs
    unmount(folder)


def fill(root):
    """Leave not one byte."""
    with (root.parent / "ballast").open("wb", buffering=0) as stream, suppress(OSError):
        while True:
            stream.write(bytes(4096))


def free(root):
    (root.parent / "ballast").unlink()


@pytest.fixture
def read_only(root, runs_at_root):
    """A folder with one finished run that nobody can write, not even root."""
    mount("--bind", str(root), str(root))
    mount("-o", "remount,bind,ro", str(root))
    yield runs_at_root
    unmount(root)


@pytest.fixture
def runs_at_root(root, make_run, wait_exit):
    run = make_run("print('hello')")
    local.start(run)
    wait_exit(run)
    return run


@pytest.fixture
def ringside(capsys, monkeypatch, root):
    """The command in this process: exit code and what it says about a mistake."""
    monkeypatch.setenv("RINGSIDE_RUNS", str(root))

    def run(*argv):
        with pytest.raises(SystemExit) as left:
            cli.main(list(argv))
        out, err = capsys.readouterr()
        return left.value.code, out, err

    return run


# --- a full disk ------------------------------------------------------------------------------


def test_nothing_starts_on_a_full_disk_and_the_sentence_says_why(root, spec, hardware):
    fill(root)
    with pytest.raises(RunDirError, match="No space left on device"):
        local.create_run(spec, hardware, root)
    assert not [folder for folder in root.iterdir() if (folder / "spec.json").exists()]
    assert Desk(root).rows() == []
    free(root)
    assert local.create_run(spec, hardware, root).spec.exists()


def test_why_a_run_ended_is_on_record_though_the_disk_is_full(make_run, wait_exit, monkeypatch):
    """The rank finds the disk full: the space that was set aside holds its word and the end."""
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))
    run = make_run(FILLS_THE_DISK)
    local.start(run)
    assert wait_until(run.exit.exists, 60)
    record = read_exit(run)
    assert record.state == "failed"
    assert record.failure.cause == "disk_full"
    assert record.reason == "Rank 0: The disk is full."
    assert run.read(run.ranks / "rank0.error.json", RankError) is not None
    assert not run.reserve.exists()


def test_a_run_can_be_stopped_though_the_disk_is_full(root, make_run, wait_console, monkeypatch):
    monkeypatch.setenv("RINGSIDE_STOP_GRACE_S", "0.3")
    run = make_run(SLEEPS)
    local.start(run)
    wait_console(run, "ready")
    fill(root)
    record = stop_run(run, timeout_s=30)
    assert not run.requested("stop")
    assert record is not None
    assert record.state == "stopped"


def test_without_a_supervisor_the_stop_says_that_it_cannot_be_asked_for(root, make_run):
    run = make_run(SLEEPS)
    fill(root)
    with pytest.raises(RunDirError, match=r"cannot be written: No space left on device"):
        request_stop(run)


def test_notes_and_deleting_on_a_full_disk(root, runs_at_root):
    run = runs_at_root
    edit_notes(run, add=["kept"])
    fill(root)
    with pytest.raises(RunDirError, match="No space left on device"):
        edit_notes(run, add=["lost"])
    assert read_notes(run).tags == ("kept",)
    # Deleting is what makes room again, so it has to work.
    move_aside(root, run)
    assert not run.path.exists()


def test_a_line_that_a_full_disk_cut_off_costs_only_itself(root):
    path = root / "events.jsonl"
    writer = EventWriter(path)
    writer.write(PhaseStarted(phase="train", epoch=1))
    fill(root)
    errors = []
    for n in range(200):
        try:
            writer.write(Warned(code="x", message=f"{n} " + "x" * 500))
        except OSError as error:
            errors.append(error.errno)
    free(root)
    writer.write(PhaseStarted(phase="evaluate", epoch=1))
    writer.close()
    assert len(errors) > 100
    assert set(errors) == {errno.ENOSPC}
    found = decode_lines(path.read_bytes())
    assert (found[0].phase, found[-1].phase) == ("train", "evaluate")
    assert sum(isinstance(event, Warned) for event in found) == 200 - len(errors)


# --- a folder that cannot be written ----------------------------------------------------------


def test_a_folder_that_cannot_be_written_is_still_read(read_only, root, ringside):
    run = read_only
    assert reconcile_all(root) == []
    assert [row.id for row in Desk(root).rows()] == [run.id]
    assert fold_run(run).state == "completed"
    for argv in (["list", "--json"], ["show", run.id, "--json"], ["doctor", run.id, "--json"]):
        code, out, err = ringside(*argv)
        assert (code, err) == (0, "")
        assert run.id in out


@pytest.mark.parametrize(
    "argv",
    [
        ["run", "ddp", "--data", "emoji", "--model", "resnet10t", "--processes", "2"],
        ["tag", "last", "x"], ["note", "last", "x"], ["delete", "ID", "--yes"],
    ],
    ids=lambda argv: argv[0],
)  # fmt: skip
def test_what_would_write_there_is_refused_in_a_sentence(read_only, ringside, argv):
    before = sorted(read_only.path.rglob("*"))
    code, _, err = ringside(*(word.replace("ID", read_only.id) for word in argv))
    assert code == 2
    assert "Read-only file system" in err
    assert "Traceback" not in err
    assert len(err.strip().splitlines()) == 1
    assert sorted(read_only.path.rglob("*")) == before


# --- a network file system --------------------------------------------------------------------


@pytest.fixture
def shared(tmp_path):
    """A runs folder on an ordinary disk; what fails is made to."""
    return tmp_path / "shared"


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.ESTALE, errno.EIO, errno.EACCES])
def test_a_lock_that_cannot_be_had_is_a_sentence(shared, spec, hardware, monkeypatch, number):
    def fail(*_args, **_kwargs):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(filelock.FileLock, "acquire", fail)
    with pytest.raises(RingsideError, match=os.strerror(number)):
        local.create_run(spec, hardware, shared)
    assert not list(shared.glob("2*"))


def test_a_lock_that_is_not_free_is_a_sentence(shared):
    waits = locks.queue_lock(shared, timeout_s=0.1)
    with locks.locked(shared, "queue"), pytest.raises(LaunchError, match="try again later"), waits:
        pytest.fail("two held it")


def test_stale_handles_cost_one_look_and_nothing_else(shared, spec, hardware, monkeypatch):
    """The server that shares the folder was restarted: every read fails once, then works."""
    run = local.create_run(spec, hardware, shared)
    EventWriter(run.events).write(PhaseStarted(phase="train", epoch=1))
    desk = Desk(shared)
    whole = fold_run(run)
    real, stale = Path.read_bytes, set()

    def read_bytes(path):
        if path not in stale:
            stale.add(path)
            raise OSError(errno.ESTALE, os.strerror(errno.ESTALE))
        return real(path)

    monkeypatch.setattr(Path, "read_bytes", read_bytes)
    assert run.read(run.spec, type(spec)) is None
    assert run.read(run.spec, type(spec)) == spec
    for _ in range(6):
        desk.rows()
    assert [row.id for row in desk.rows()] == [run.id]
    monkeypatch.setattr(Path, "read_bytes", real)
    assert fold_run(run) == whole


def test_events_that_cannot_be_read_now_are_read_later(shared, monkeypatch):
    shared.mkdir()
    path = shared / "events.jsonl"
    EventWriter(path).write(PhaseStarted(phase="train", epoch=1))
    real = Path.open

    def fail(self, *args, **kwargs):
        raise OSError(errno.ESTALE, os.strerror(errno.ESTALE))

    monkeypatch.setattr(Path, "open", fail)
    assert read_new_lines(path, 0) == (b"", 0)
    monkeypatch.setattr(Path, "open", real)
    assert read_new_lines(path, 0)[1] == path.stat().st_size


AWAY = """
import errno, os, sys, time
from ringside.launch import supervisor
begin = time.monotonic()

def broken(call):
    def answer(path=".", *rest, **options):
        if 1.5 < time.monotonic() - begin < 3.5 and str(path).startswith(sys.argv[1]):
            raise OSError(errno.EIO, "Input/output error", str(path))
        return call(path, *rest, **options)
    return answer

os.stat, os.scandir = broken(os.stat), broken(os.scandir)
sys.exit(supervisor.main(sys.argv[1:]))
"""


def test_a_folder_that_does_not_answer_for_a_while_ends_no_run(make_run):
    """Neither one that trains nor one that waits."""
    trains = make_run("import time; time.sleep(4.5); print('done')")
    waits = make_run("print('done')")
    waits.write(waits.spec, msgspec.structs.replace(waits.read(waits.spec, RunSpec), queue=True))
    argv = [sys.executable, "-c", AWAY]
    with (
        subprocess.Popen([*argv, str(trains.path)], stderr=subprocess.PIPE) as first,
        subprocess.Popen([*argv, str(waits.path)], stderr=subprocess.PIPE) as second,
    ):
        assert [first.communicate(timeout=30)[1], second.communicate(timeout=30)[1]] == [b"", b""]
    assert [read_exit(run).reason for run in (trains, waits)] == ["Completed.", "Completed."]
