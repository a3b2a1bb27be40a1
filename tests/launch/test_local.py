"""Create and start: what lies in a new run directory, and pressing Start twice."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import msgspec
import pytest

from ringside import yaml_text
from ringside.errors import LaunchError, RunDirError
from ringside.hardware import Hardware
from ringside.identity import run_processes
from ringside.launch import local
from ringside.launch.plan import LaunchPlan
from ringside.records import read_exit, read_owner
from ringside.rundir import RunDir, list_run_dirs
from ringside.spec import RunSpec


@pytest.fixture
def requested(spec):
    return msgspec.structs.replace(spec, request_id="a-form-that-was-sent")


@pytest.fixture
def harmless(monkeypatch):
    """Runs made by create_run execute this instead of a training."""

    def plan(_spec, run):
        return LaunchPlan(argv=[sys.executable, "-c", "print('ran')"], cwd=str(run.path))

    monkeypatch.setattr(local, "make_plan", plan)


def test_a_new_run_directory_holds_the_whole_request(spec, hardware, root):
    run = local.create_run(spec, hardware, root)
    assert run.read(run.spec, RunSpec) == spec
    assert run.read(run.hardware, Hardware) == hardware
    config = yaml_text.load_text(run.accelerate.read_bytes(), origin="accelerate.yaml").value
    assert (config["num_processes"], config["distributed_type"]) == (2, "MULTI_GPU")
    assert str(run.path) in run.read(run.plan, LaunchPlan).argv
    assert not run.owner.exists()


def test_start_runs_it_to_the_end(spec, hardware, root, harmless, wait_exit):
    run = local.start_run(spec, hardware, root)
    assert wait_exit(run).state == "completed"


def test_without_a_request_id_each_is_a_run_of_its_own(spec, hardware, root):
    first, second = (local.create_run(spec, hardware, root) for _ in range(2))
    assert first.path != second.path


def test_start_in_two_threads_is_one_run(requested, hardware, root, harmless, wait_exit):
    with ThreadPoolExecutor(8) as pool:
        runs = list(pool.map(lambda _i: local.start_run(requested, hardware, root), range(8)))
    assert {run.path for run in runs} == {run.path for run in list_run_dirs(root)}
    assert len({run.path for run in runs}) == 1
    wait_exit(runs[0])
    assert runs[0].console.read_text() == "ran\n"
    assert (runs[0].path / "supervisor.log").read_text() == ""


def test_start_in_two_processes_is_one_run(requested, hardware, root, tmp_path):
    spec_file = tmp_path / "spec.json"
    spec_file.write_bytes(msgspec.json.encode(requested))
    code = """
import sys, pathlib, msgspec
from ringside.hardware import Hardware
from ringside.launch.local import create_run
from ringside.spec import RunSpec
spec = msgspec.json.decode(pathlib.Path(sys.argv[1]).read_bytes(), type=RunSpec)
print(create_run(spec, Hardware(), pathlib.Path(sys.argv[2])).id)
"""
    command = [sys.executable, "-c", code, str(spec_file), str(root)]
    presses = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    ids = {press.communicate()[0].strip() for press in presses}
    assert ids == {run.id for run in list_run_dirs(root)}
    assert len(ids) == 1


def test_started_again_later_it_is_left_alone(requested, hardware, root, harmless, wait_exit):
    run = local.start_run(requested, hardware, root)
    record = wait_exit(run)
    assert local.start_run(requested, hardware, root).path == run.path
    assert read_exit(run) == record


@pytest.mark.parametrize("request_id", [None, "a-form"])
def test_a_runs_root_that_cannot_be_written(spec, hardware, tmp_path, request_id):
    # Below a regular file nobody can make a folder, root included.
    (tmp_path / "file").write_text("")
    spec = msgspec.structs.replace(spec, request_id=request_id)
    with pytest.raises(RunDirError, match="Set RINGSIDE_RUNS to a folder that you may write"):
        local.create_run(spec, hardware, tmp_path / "file" / "runs")


def test_a_supervisor_that_dies_is_named_with_its_log(make_run, monkeypatch):
    monkeypatch.setenv("RINGSIDE_STOP_GRACE_S", "soon")
    run = make_run("print('never')")
    with pytest.raises(LaunchError, match=r"(?s)RINGSIDE_STOP_GRACE_S.*supervisor.log"):
        local.start(run)


def test_a_vanished_run_cannot_be_started(root):
    with pytest.raises(LaunchError, match="No supervisor can be started"):
        local.start(RunDir(root / "20260101-000000-calm-fox"))


def test_the_token_of_a_surrounding_run_is_not_inherited(make_run, monkeypatch, wait_console):
    outer = "20260101-000000-calm-fox"
    monkeypatch.setenv("RINGSIDE_RUN", outer)
    run = make_run("import os, time; print(os.environ['RINGSIDE_RUN']); time.sleep(60)")
    local.start(run)
    wait_console(run, run.id)
    assert read_owner(run).process not in run_processes(outer)
