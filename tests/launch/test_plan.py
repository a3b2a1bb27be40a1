"""The plan is what is executed: argument list, environment delta, working folder."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from ringside.launch import local
from ringside.launch.plan import _child_finds_ours, import_environment, make_plan, quoted_command
from ringside.rundir import RunDir
from ringside.spec import AccelerateSettings

PACKAGES = Path(local.__file__).resolve().parents[2]
WHERE = "import training, ringside; print(list(training.__path__)[0])"


@pytest.fixture
def run(root):
    return RunDir(root / "20260101-000000-calm-fox")


@pytest.fixture
def foreign(tmp_path):
    """A user's working folder with packages of our names in it."""
    for name in ("training", "ringside"):
        folder = tmp_path / "project" / name
        folder.mkdir(parents=True)
        (folder / "__init__.py").write_text("")
        (folder / "train.py").write_text("print('not ours')")
    return tmp_path / "project"


def test_argv_of_several_processes(spec, run):
    assert make_plan(spec, run).argv == [
        *(sys.executable, "-m", "accelerate.commands.launch"),
        *("--config_file", str(run.path / "accelerate.yaml")),
        *("--log_dir", str(run.path / "logs"), "--tee", "3"),
        *("-m", "training.train", "--run-dir", str(run.path)),
    ]


def test_one_process_has_its_log_in_the_console(spec, run):
    alone = AccelerateSettings(distributed_type="NO", num_processes=1)
    single = msgspec.structs.replace(spec, num_processes=1, accelerate=alone)
    assert "--log_dir" not in make_plan(single, run).argv


def test_torch_elastic_gets_a_folder_for_one_process_too(spec, run):
    """Else it makes one among the temporary files, which a killed run leaves behind."""
    one = msgspec.structs.replace(spec, num_processes=1)
    assert str(run.logs) in make_plan(one, run).argv


def test_environment_on_cpu(spec, run):
    spec = msgspec.structs.replace(
        spec, threads_per_device=2, environment={"GLOO_SOCKET_IFNAME": "lo", "RINGSIDE_RUN": "x"}
    )
    environment = make_plan(spec, run).environment
    environment.pop("PYTHONPATH", None)
    assert environment == {
        "GLOO_SOCKET_IFNAME": "lo",
        "OMP_NUM_THREADS": "2",
        "PYTHONSAFEPATH": "1",
        "PYTHONUNBUFFERED": "1",
        "RINGSIDE_RUN": run.id,
    }


def test_environment_on_gpus(spec, run):
    spec = msgspec.structs.replace(spec, device="cuda", gpu_ids=(2, 5))
    environment = make_plan(spec, run).environment
    assert environment["CUDA_VISIBLE_DEVICES"] == "2,5"
    assert environment["CUDA_DEVICE_ORDER"] == "PCI_BUS_ID"
    assert "OMP_NUM_THREADS" not in environment


def test_a_plan_starts_and_writes_nothing(spec, run):
    make_plan(spec, run)
    assert not run.path.exists()


def test_the_quoted_command_survives_a_shell(spec, run):
    plan = make_plan(spec, run)
    words = shlex.split(quoted_command(plan))
    assert words == ["env", *(f"{k}={v}" for k, v in plan.environment.items()), *plan.argv]


def test_a_plan_reads_back(spec, run, hardware):
    run = local.create_run(spec, hardware, run.path.parent)
    from ringside.launch.supervisor import read_plan

    assert read_plan(run) == make_plan(spec, run)


@pytest.mark.parametrize("python_path", [None, "project", ":"])
def test_the_users_own_training_folder_is_never_run(foreign, monkeypatch, python_path):
    _child_finds_ours.cache_clear()
    monkeypatch.chdir(foreign)
    if python_path is None:
        monkeypatch.delenv("PYTHONPATH", raising=False)
    else:
        monkeypatch.setenv("PYTHONPATH", str(foreign) if python_path == "project" else python_path)
    command = [sys.executable, "-c", WHERE]
    found = subprocess.run(
        command, env=os.environ | import_environment(), cwd=foreign, capture_output=True, text=True
    )
    assert found.stdout.strip() == str(PACKAGES / "training"), found.stderr


def test_without_protection_it_would_be(foreign):
    found = subprocess.run(
        [sys.executable, "-c", WHERE], cwd=foreign, capture_output=True, text=True
    )
    assert found.stdout.strip() == str(foreign / "training")


def test_python_path_is_left_alone_where_it_is_not_needed(monkeypatch):
    _child_finds_ours.cache_clear()
    monkeypatch.setenv("PYTHONPATH", str(PACKAGES))
    assert import_environment() == {"PYTHONSAFEPATH": "1"}
