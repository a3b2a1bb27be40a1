"""A pipeline trains, scores, saves and goes on as one device that accumulates its micro-batches."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
import timm
import torch
from safetensors.torch import load_file

from ringside import yaml_text
from ringside.hardware import read_hardware
from ringside.launch.local import start_run
from ringside.launch.stop import stop_run
from ringside.presets import accelerate_config
from ringside.request import continue_run
from ringside.run import RunRecord, fold_run
from ringside.rundir import RunDir
from ringside.spec import AccelerateSettings
from ringside.speedup import baseline_of, speedup

from tests.distributed.conftest import wait_for_end  # isort: skip
from tests.distributed.test_things_go_wrong import wait_until_training  # isort: skip

pytestmark = pytest.mark.distributed
SCRIPT = Path(__file__).parent / "pipeline_against_whole.py"
PRESET = "model_parallel"


def weights_of(run: RunDir | RunRecord) -> dict[str, torch.Tensor]:
    return load_file(Path(run.path) / "checkpoints/last/model.safetensors")


def relative(a: torch.Tensor, b: torch.Tensor) -> float:
    return float((a.double() - b.double()).norm() / b.double().norm().clamp_min(1e-12))


@pytest.fixture(scope="module")
def baseline(finished_run, session_root) -> RunRecord:
    """One device with accumulation in the place of micro-batches: what the comparison asks for."""
    spec = baseline_of(finished_run(PRESET).spec)
    assert (spec.training.accumulation_steps, spec.micro_batch) == (4, 16)
    return wait_for_end(start_run(spec, read_hardware(), session_root))


@pytest.fixture
def interrupted(interrupted_run) -> RunDir:
    """The same run, told to stop after its first epoch."""
    return interrupted_run(PRESET)


@pytest.fixture(scope="module")
def differences(tmp_path_factory) -> dict[str, dict[str, float]]:
    """What three stages differ in from the whole model, in one process group."""
    folder = tmp_path_factory.mktemp("pipeline")
    config, out = folder / "accelerate.yaml", folder / "out.json"
    settings = AccelerateSettings(distributed_type="MULTI_GPU")
    config.write_text(yaml_text.dump(accelerate_config(settings, 3)))
    launch = [sys.executable, "-m", "accelerate.commands.launch", "--config_file", str(config)]
    done = subprocess.run(
        [*launch, str(SCRIPT), str(out)], timeout=180, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(out.read_text())


@pytest.mark.parametrize("variant", ["channels_last", "contiguous"])
def test_three_stages_compute_what_the_whole_model_does(variant, differences):
    """Losses, gradients, the norm over all stages, weights, and logits of five images."""
    assert set(differences[variant]) >= {"loss", "gradients", "norm", "weights", "logits"}
    assert {k: v for k, v in differences[variant].items() if not v < 1e-5} == {}


def test_sixteen_bit_rounds_at_the_same_places(differences):
    """What crosses a border is no rounding of its own: the first gradients are equal."""
    assert differences["bf16"]["first_gradients"] < 1e-6
    assert differences["bf16"]["first_loss"] < 1e-6


def test_it_trains_and_scores_like_one_device_that_accumulates(finished_run, baseline):
    piped = finished_run(PRESET)
    assert (piped.state, baseline.state) == ("completed", "completed"), piped.failure
    for a, b in zip(baseline.epochs, piped.epochs, strict=True):
        assert b.train_loss == pytest.approx(a.train_loss, rel=1e-5)
        assert b.num_evaluated == a.num_evaluated == 320
        assert b.auc_macro == pytest.approx(a.auc_macro, abs=1e-9)
        assert b.f1_micro == pytest.approx(a.f1_micro, abs=1e-12)
        assert b.val_loss == pytest.approx(a.val_loss, rel=1e-5)
    one, many = weights_of(baseline), weights_of(piped)
    assert {name: relative(many[name], one[name]) for name in one if
            not relative(many[name], one[name]) < 1e-5} == {}  # fmt: skip
    timm.create_model("test_resnet", num_classes=16).load_state_dict(many, strict=True)


def test_its_speed_is_compared_at_equal_work_per_step(finished_run, baseline):
    gain = speedup(finished_run(PRESET), baseline)
    assert gain.scaling == "strong"
    assert gain.efficiency_ratio == pytest.approx(gain.value / 2)


def test_what_crosses_the_border_is_counted(finished_run):
    """Four micro-batches of 16 images leave the stem as [32, 8, 8] in fp32, and come back."""
    observed = finished_run(PRESET).observed
    assert observed.sent_bytes_per_step == 2 * 4 * 16 * 32 * 8 * 8 * 4
    assert observed.reduced_bytes_per_step is None
    assert sum(observed.stage_parameters) == observed.num_parameters
    assert (len(observed.stage_parameters), observed.pipeline_micro_batches) == (2, 4)


def test_only_the_first_stage_waits_for_pictures(finished_run):
    ranks = Path(finished_run(PRESET).path) / "ranks"
    first, second = (
        [msgspec.json.decode(line)["data_ms"] for line in path.read_bytes().splitlines()]
        for path in (ranks / "rank0.jsonl", ranks / "rank1.jsonl")
    )
    assert max(second) < min(first)


def test_resumed_equals_uninterrupted(interrupted, finished_run, session_root):
    whole = finished_run(PRESET)
    resumed = start_run(continue_run(interrupted, read_hardware()), read_hardware(), session_root)
    record = wait_for_end(resumed)
    assert record.state == "completed", record.failure
    assert record.epochs[0].train_loss == whole.epochs[1].train_loss
    assert record.epochs[0].auc_macro == whole.epochs[1].auc_macro
    expected = weights_of(whole)
    for name, tensor in weights_of(resumed).items():
        assert torch.equal(tensor, expected[name]), name


def test_one_device_takes_it_up(interrupted, finished_run, session_root):
    """Weights and optimizer carry timm's names, so another strategy goes on as this one does."""
    spec = continue_run(interrupted, read_hardware())
    spec = msgspec.structs.replace(baseline_of(spec), resume_from=spec.resume_from)
    record = wait_for_end(start_run(spec, read_hardware(), session_root))
    assert record.state == "completed", record.failure
    whole = finished_run(PRESET)
    assert record.epochs[0].train_loss == pytest.approx(whole.epochs[1].train_loss, rel=1e-5)
    expected, found = weights_of(whole), weights_of(record)
    assert max(relative(found[name], expected[name]) for name in expected) < 1e-5


def test_stop_ends_both_stages_at_one_step_with_a_checkpoint(make_request, session_root):
    run = start_run(make_request(PRESET, epochs=500), read_hardware(), session_root)
    wait_until_training(run)
    assert stop_run(run, timeout_s=60).state == "stopped"
    record = fold_run(run)
    assert record.stop_agreed is not None
    assert set(weights_of(run)) == set(timm.create_model("test_resnet").state_dict())
