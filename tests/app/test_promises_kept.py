"""What people were promised about runs and pages: see docs/promises.md for all of it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from app.page import open_server
from ringside.hardware import Hardware
from ringside.identity import wait_until
from ringside.launch.local import create_run
from ringside.launch.plan import LaunchPlan
from ringside.records import read_exit
from ringside.rundir import list_run_dirs
from ringside.shelf.notes import read_notes
from tests.app.caller import Caller
from tests.app.serving import free_port

FOLDER = Path(__file__).parents[2]

# A page in a process of its own that starts a run, as the button does, and is then killed.
PAGE = """
import pathlib, sys
from app.page import open_server
from ringside.launch import local
from ringside.rundir import list_run_dirs
root = pathlib.Path(sys.argv[1])
server = open_server(runs_root=root, port=int(sys.argv[2]))
local.start(list_run_dirs(root)[0])
print("serving", flush=True)
sys.stdin.read()
"""

# Says how far it is, much and on standard error too, until somebody lets it fail.
TRAINER = """
import pathlib, sys, time
here = pathlib.Path(sys.argv[1])
for step in range(2000):
    (here / "step").write_text(str(step))
    sys.stderr.write("x" * 20_000)
    if (here / "fail").exists():
        sys.exit(7)
    time.sleep(0.02)
"""


def fake_run(root, make_spec, trainer):
    """A run whose launcher is the given program."""
    run = create_run(make_spec("ddp"), Hardware(num_cores=2), root)
    (run.path / "trainer.py").write_text(trainer)
    plan = run.read(run.plan, LaunchPlan)
    argv = [sys.executable, str(run.path / "trainer.py"), str(run.path)]
    run.write(run.plan, LaunchPlan(argv=argv, environment=plan.environment, cwd=plan.cwd))
    return run


def polled(server, run_id, seen="{}"):
    """What the Runs page shows of a run, by element id."""
    return Caller(server).found("poll_run", run_id=run_id, seen=seen)


def test_a_killed_server_and_lost_readers_cost_a_run_nothing(tmp_path, make_spec):
    """Steps go on, more than 1 MB of errors is read by nobody, the exit code is on record."""
    root = tmp_path / "runs"
    run = fake_run(root, make_spec, TRAINER)
    with subprocess.Popen(
        [sys.executable, "-c", PAGE, str(root), str(free_port())],
        cwd=FOLDER, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    ) as page:  # fmt: skip
        assert page.stdout.readline() == "serving\n"
        assert wait_until((run.path / "step").exists, 20)
        page.kill()
    before = int((run.path / "step").read_text() or 0)
    assert wait_until(lambda: run.console.stat().st_size > 1_200_000, 30)
    assert int((run.path / "step").read_text() or 0) > before
    (run.path / "fail").touch()
    assert wait_until(run.exit.exists, 20)
    assert read_exit(run).return_code == 7
    server = open_server(runs_root=root)
    try:
        shown = polled(server, run.id)
    finally:
        server.close()
    assert "exit code 7" in str(shown)


def test_two_servers_of_one_folder_agree(tmp_path, runs_at, told):
    """What is done on one page is on the other; the token of one server is nothing to the other."""
    root = tmp_path / "runs"
    root.mkdir()
    run = runs_at(root).add("done-dove", epochs=2, ended="completed")
    first, second = open_server(runs_root=root), open_server(runs_root=root)
    try:
        assert first.url != second.url
        one, two = Caller(first), Caller(second)
        held = one.found("open_runs")["notes-held"]
        deed = {"run_id": run.id, "notes_held": held, "field_tags": "kept", "field_note": "why"}
        two.call("save_notes", token=first.settings.token, **deed)
        assert told.pop().startswith("This page is older than the server")
        two.call("save_notes", token=second.settings.token, **deed)
        assert read_notes(run).tags == ("kept",)
        assert "why" in str(polled(first, run.id))
        deed = {"run_id": run.id, "delete_asked": run.id}
        two.call("delete_run", token=second.settings.token, **deed)
        assert wait_until(lambda: run.name not in str(polled(first, "")), 10)
        assert "No run" in polled(first, run.id)["notice"]
        one.call("delete_run", token=first.settings.token, **deed)
        assert told
    finally:
        first.close()
        second.close()


def test_fifty_runs_are_one_list_and_a_small_poll(tmp_path, runs_at):
    root = tmp_path / "runs"
    root.mkdir()
    made = runs_at(root)
    names = [f"run-{a}{b}" for a in "ab" for b in "abcdefghijklmnopqrstuvwxy"]
    for name in names:
        made.add(name, epochs=3, ended="completed")
    newest = list_run_dirs(root)[0]
    server = open_server(runs_root=root)
    try:
        caller = Caller(server)
        shown = polled(server, newest.id)
        assert [name for name in names if name not in shown["run-list"]] == []
        again = caller.call("poll_run", run_id=newest.id, seen=shown["seen"])
        assert len(again.content) < 3000
    finally:
        server.close()


def test_a_reader_that_goes_away_disturbs_nobody(tmp_path, runs_at):
    """Streams that are cut off in the middle; the page answers others all the while."""
    root = tmp_path / "runs"
    root.mkdir()
    run = runs_at(root).add("live-lark", epochs=2)
    server = open_server(runs_root=root)
    try:
        with httpx.Client(base_url=server.url, timeout=5) as client:
            for number in range(20):
                with client.stream("GET", f"/gradio_api/heartbeat/gone{number}") as stream:
                    next(stream.iter_lines())
        assert "live-lark" in str(polled(server, run.id))
    finally:
        server.close()


@pytest.fixture
def odd_install(tmp_path):
    """The packages below a folder with a space, quotes, a dollar sign and other letters."""
    folder = tmp_path / 'Lea\'s "install" $HOME äöü 訓練'
    folder.mkdir()
    for name in ("ringside", "app", "training", "accelerate_configs"):
        shutil.copytree(FOLDER / name, folder / name, ignore=shutil.ignore_patterns("*.pyc"))
    return folder


def test_any_folder_may_hold_the_program_and_the_runs(odd_install, tmp_path, make_spec):
    root = odd_install / "runs"
    run = fake_run(root, make_spec, "import ringside; print(ringside.__file__)")
    environment = os.environ | {"PYTHONPATH": str(odd_install), "RINGSIDE_RUNS": str(root)}
    start = (
        "import sys, pathlib; from ringside.launch import local; from ringside.rundir import RunDir"
        "; local.start(RunDir(pathlib.Path(sys.argv[1])))"
    )
    for argv in (["-c", start, str(run.path)], ["-m", "app", "list", "--json"]):
        done = subprocess.run(
            [sys.executable, *argv], env=environment, cwd=tmp_path, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
    assert [row["id"] for row in json.loads(done.stdout)] == [run.id]
    assert wait_until(run.exit.exists, 20)
    assert read_exit(run).state == "completed"
    assert run.console.read_text().strip() == str(odd_install / "ringside" / "__init__.py")
    argv = ["-m", "app", "run", "ddp", "--data", "products:ci", "--processes", "2", "--dry-run"]
    done = subprocess.run(
        [sys.executable, *argv], env=environment, cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert "accelerate.commands.launch" in done.stdout
