"""What users meet: a broken image, a taken port, a Stop, the wrong file."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from PIL import Image

from ringside.hardware import read_hardware
from ringside.identity import run_processes
from ringside.launch.local import create_run, start_run
from ringside.launch.stop import stop_run
from ringside.presets import built_in_folder
from ringside.run import RunRecord, fold_run, list_runs
from ringside.rundir import RunDir

from tests.distributed.conftest import wait_for_end  # isort: skip

pytestmark = pytest.mark.distributed
REPOSITORY = built_in_folder().parent


@pytest.fixture
def start(root, make_request):
    """Start a run in this test's own folder."""

    def run(preset: str, **fields: object) -> RunDir:
        return start_run(make_request(preset, **fields), read_hardware(), root)

    return run


def wait_until_training(run: RunDir) -> RunRecord:
    deadline = time.monotonic() + 90
    while time.monotonic() < deadline:
        record = fold_run(run)
        assert not record.final, run.console.read_text()[-2000:]
        if record.windows:
            return record
        time.sleep(0.1)
    pytest.fail("the run never trained")


def launch(*words: str, config: Path, cwd: Path = REPOSITORY) -> subprocess.CompletedProcess[str]:
    """A user's own `accelerate launch`, from a checkout."""
    argv = [sys.executable, "-m", "accelerate.commands.launch", "--config_file", str(config)]
    argv += ["-m", "training.train", *words]
    return subprocess.run(argv, cwd=cwd, capture_output=True, text=True, timeout=180)


SMALL = ("--data", "products:ci", "--model", "test_resnet", "--epochs", "1", "--batch", "64")


def test_a_plain_launch_makes_the_same_run_directory(root):
    done = launch("--preset", "ddp", *SMALL, config=built_in_folder() / "ddp.yaml")
    assert done.returncode == 0, done.stderr[-2000:]
    (summary,) = list_runs(root)
    record = fold_run(RunDir(root / summary.id))
    assert (record.state, record.owner.kind) == ("completed", "terminal")
    assert record.observed.num_processes == 2
    assert record.epochs[0].num_evaluated == 320
    assert {"spec.json", "plan.json", "hardware.json", "accelerate.yaml"} <= {
        path.name for path in Path(record.path).iterdir()
    }


def test_a_plain_launch_with_another_presets_file_is_refused(root):
    done = launch("--preset", "fsdp", *SMALL, config=built_in_folder() / "single.yaml")
    assert done.returncode != 0
    assert "use --config_file accelerate_configs/fsdp.yaml" in done.stderr
    assert list_runs(root) == []


def test_two_processes_that_do_not_join_are_refused(root, make_request):
    """Without this check each would train alone and both would look fine."""
    run = create_run(make_request("ddp"), read_hardware(), root)
    argv = [sys.executable, "-m", "training.train", "--run-dir", str(run.path)]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=120, cwd=REPOSITORY)
    assert done.returncode == 2
    assert "2 processes were asked for and 1 joined" in done.stderr
    assert "Traceback" not in done.stderr
    assert fold_run(run).epochs == []


@pytest.fixture
def photos(tmp_path):
    """Forty pictures of two classes; `dog/3.jpg` of the training part is cut short."""
    folder = tmp_path / "photos with 'quotes' and spaces"
    for split, count in (("train", 16), ("val", 4)):
        for label in ("cat", "dog"):
            (folder / split / label).mkdir(parents=True)
            for i in range(count):
                image = Image.effect_noise((64, 64), 50 + i).convert("RGB")
                image.save(folder / split / label / f"{i}.jpg")
    broken = folder / "train/dog/3.jpg"
    broken.write_bytes(broken.read_bytes()[:400])
    return folder


def test_a_truncated_image_is_named_with_its_rank(start, photos):
    record = wait_for_end(start("ddp", data=str(photos), image_size=32, batch=16))
    assert record.state == "failed"
    assert "3.jpg" in record.failure.sentence
    assert record.failure.rank in (0, 1)
    assert record.failure.traceback is None
    assert f"{record.failure.sentence}" in record.exit.reason


def test_bad_files_can_be_left_out_and_that_is_recorded(photos, root):
    argv = [sys.executable, "-m", "app", "run", "ddp", "--data", str(photos), "--skip-bad"]
    argv += ["--image-size", "32", "--batch", "16", "--epochs", "1", "--model", "test_resnet"]
    done = subprocess.run(
        [*argv, "--follow"], capture_output=True, text=True, timeout=120, cwd=REPOSITORY
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "left out: train/dog/3.jpg" in done.stdout
    record = fold_run(RunDir(root / list_runs(root)[0].id))
    assert record.spec.data.skip == ("train/dog/3.jpg",)
    assert record.started.num_train == 31


def test_stop_ends_a_run_with_a_checkpoint(start):
    run = start("fsdp", epochs=500)
    wait_until_training(run)
    ended = stop_run(run, timeout_s=60)
    record = fold_run(run)
    assert (ended.state, record.state) == ("stopped", "stopped")
    assert record.stop_agreed is not None
    assert (run.checkpoints / "last/model.safetensors").exists()
    assert run_processes(run.id) == set()


def test_a_folder_of_the_users_own_called_training_is_not_run(tmp_path, root):
    """A plain launch elsewhere than in a checkout finds the installed trainer."""
    (tmp_path / "mine/training").mkdir(parents=True)
    (tmp_path / "mine/training/__init__.py").write_text("")
    (tmp_path / "mine/training/train.py").write_text("raise SystemExit('the wrong trainer ran')")
    config = tmp_path / "accelerate.yaml"
    config.write_text(built_in_folder().joinpath("single.yaml").read_text())
    argv = [sys.executable, "-m", "app", "run", "single", *SMALL, "--follow"]
    done = subprocess.run(
        argv, cwd=tmp_path / "mine", capture_output=True, text=True, timeout=120,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert list_runs(root)[0].state == "completed"
