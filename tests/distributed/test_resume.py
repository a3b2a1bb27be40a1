"""A run that was interrupted ends where the uninterrupted one ends, to the last bit."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
import torch
from safetensors.torch import load_file

from ringside.errors import SpecError
from ringside.hardware import read_hardware
from ringside.launch.local import create_run, start, start_run
from ringside.request import continue_run
from ringside.rundir import RunDir
from ringside.spec import RunSpec

from tests.distributed.conftest import wait_for_end  # isort: skip

pytestmark = pytest.mark.distributed


def weights_of(run: RunDir) -> dict[str, torch.Tensor]:
    return load_file(run.checkpoints / "last/model.safetensors")


@pytest.mark.parametrize("preset", ["ddp", "fsdp"])
def test_resumed_equals_uninterrupted(preset, interrupted_run, finished_run, root):
    whole = finished_run(preset)
    spec = continue_run(interrupted_run(preset), read_hardware())
    resumed = start_run(spec, read_hardware(), root)
    record = wait_for_end(resumed)
    assert record.state == "completed", record.failure
    assert [row.epoch for row in record.epochs] == [2]
    assert record.epochs[0].train_loss == whole.epochs[1].train_loss
    assert record.epochs[0].auc_macro == whole.epochs[1].auc_macro
    expected = weights_of(RunDir(Path(whole.path)))
    for name, tensor in weights_of(resumed).items():
        assert torch.equal(tensor, expected[name]), name


def test_local_sgd_goes_on_exactly_and_saves_change_nothing(finished_run, root, make_request):
    """Each rank has moments of its own, and 10 steps an epoch are no multiple of 8."""
    expected = finished_run("local_sgd")
    assert expected.state == "completed", expected.failure
    assert expected.started.steps_per_epoch % expected.spec.training.local_sgd_steps
    saving = make_request("local_sgd", overrides={"save_every_steps": "4"})
    first = create_run(saving, read_hardware(), root)
    first.request("stop-after-epoch")
    start(first)
    assert wait_for_end(first).state == "stopped"
    resumed = start_run(continue_run(first, read_hardware()), read_hardware(), root)
    record = wait_for_end(resumed)
    assert record.state == "completed", record.failure
    saved = torch.load(first.checkpoints / "last/training.pt", weights_only=True)
    one, other = (share["optimizer"]["state"]["fc.weight"] for share in saved["of_each_rank"])
    assert not torch.equal(one["exp_avg"], other["exp_avg"])
    assert record.epochs[0].auc_macro == expected.epochs[1].auc_macro
    weights = weights_of(RunDir(Path(expected.path)))
    for name, tensor in weights_of(resumed).items():
        assert torch.equal(tensor, weights[name]), name


def as_another(preset: str, first: RunDir, make_request: Callable[..., RunSpec]) -> RunSpec:
    """The spec of a preset that goes on from another one's checkpoint."""
    resume_from = continue_run(first, read_hardware()).resume_from
    return msgspec.structs.replace(make_request(preset), resume_from=resume_from)


def test_another_strategy_takes_it_up_with_a_note(interrupted_run, root, make_request):
    spec = as_another("fsdp", interrupted_run("ddp"), make_request)
    record = wait_for_end(start_run(spec, read_hardware(), root))
    assert record.state == "completed", record.failure
    assert [row.epoch for row in record.epochs] == [2]
    notes = [warning.message for warning in record.warnings if warning.code == "resume"]
    assert notes == ["Not as before: strategy: ddp, now fsdp."]


def test_a_damaged_checkpoint_is_a_sentence(interrupted_run, root, make_request):
    whole = interrupted_run("ddp")
    first = RunDir(shutil.copytree(whole.path, root / whole.id))
    (first.checkpoints / "last/training.pt").write_bytes(b"half")
    spec = as_another("single", first, make_request)
    record = wait_for_end(start_run(spec, read_hardware(), root))
    assert record.state == "failed"
    assert "cannot be resumed from: training.pt is damaged" in record.failure.sentence
    assert record.exit.failure.checkpoint is None
    assert "ringside resume" not in record.exit.failure.advice
    (first.checkpoints / "last/training.pt").unlink()
    with pytest.raises(SpecError, match=r"has weights but no training\.pt.*--weights "):
        continue_run(first, read_hardware())
    shutil.rmtree(first.checkpoints / "last")
    with pytest.raises(Exception, match="no checkpoint to resume from"):
        continue_run(first, read_hardware())
