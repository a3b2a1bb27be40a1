"""What only GPUs can show: nn.DataParallel, and a pipeline through NCCL."""

from __future__ import annotations

from pathlib import Path

import pytest
import timm
from safetensors.torch import load_file

from ringside.hardware import read_hardware
from ringside.launch.local import start_run
from ringside.request import continue_run
from ringside.speedup import baseline_of

from tests.distributed.conftest import wait_for_end  # isort: skip

pytestmark = [
    pytest.mark.distributed,
    pytest.mark.skipif(len(read_hardware().gpus) < 2, reason="needs two GPUs"),
]


def same_training(a, b):
    """TF32 and the order of additions on a GPU leave more than rounding of the last bit."""
    assert b.train_loss == pytest.approx(a.train_loss, rel=2e-2)
    assert b.num_evaluated == a.num_evaluated == 320


def test_data_parallel_is_one_process_on_two_gpus(finished_run):
    record = finished_run("data_parallel")
    assert record.state == "completed", record.failure
    observed = record.observed
    assert (observed.strategy, observed.num_processes, observed.num_devices) == (
        "data_parallel", 1, 2,
    )  # fmt: skip
    assert (observed.mixed_precision, observed.backend) == ("no", None)
    first, last = record.epochs
    assert last.train_loss < first.train_loss
    assert first.num_evaluated == last.num_evaluated == 320
    weights = load_file(Path(record.path) / "checkpoints/last/model.safetensors")
    model = timm.create_model(record.spec.model, num_classes=16)
    model.load_state_dict(weights, strict=True)


def test_every_copy_computes_in_the_precision_asked_for(make_request, session_root):
    """Read back from all copies: autocast's type does not pass into their threads by itself."""
    spec = make_request("data_parallel", epochs=1, overrides={"mixed_precision": "bf16"})
    record = wait_for_end(start_run(spec, read_hardware(), session_root))
    assert record.state == "completed", record.failure
    assert record.observed.mixed_precision == "bf16"


@pytest.mark.parametrize("preset", ["data_parallel", "model_parallel"])
def test_it_goes_on_from_its_checkpoint(preset, interrupted_run, finished_run, session_root):
    spec = continue_run(interrupted_run(preset), read_hardware())
    record = wait_for_end(start_run(spec, read_hardware(), session_root))
    assert record.state == "completed", record.failure
    same_training(finished_run(preset).epochs[1], record.epochs[0])


def test_a_pipeline_through_nccl_trains_like_one_gpu(finished_run, session_root):
    piped = finished_run("model_parallel")
    assert piped.state == "completed", piped.failure
    assert (piped.observed.strategy, piped.observed.backend) == ("model_parallel", "nccl")
    assert piped.observed.sent_bytes_per_step == 2 * 4 * 16 * 32 * 8 * 8 * 4
    spec = baseline_of(piped.spec)
    alone = wait_for_end(start_run(spec, read_hardware(), session_root))
    assert alone.state == "completed", alone.failure
    for a, b in zip(alone.epochs, piped.epochs, strict=True):
        same_training(a, b)
