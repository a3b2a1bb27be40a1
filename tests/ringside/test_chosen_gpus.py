"""GPUs by physical index, and what else a launch may be asked for."""

from __future__ import annotations

import msgspec
import pytest

from ringside.errors import SpecError
from ringside.hardware import Gpu, Hardware
from ringside.request import RunRequest, continue_run, resolve
from ringside.rundir import create_run_dir

FOUR = Hardware(
    gpus=tuple(
        Gpu(index=i, name="H200", uuid=f"GPU-{i}", memory_total_bytes=1, memory_used_bytes=0)
        for i in range(4)
    ),
    num_cores=8,
)


def request(preset="ddp", **details):
    return RunRequest(preset=preset, data="products:ci", model="test_resnet", **details)


def test_chosen_gpus_train_in_the_order_of_choosing():
    spec = resolve(request(gpus=(3, 1)), FOUR)
    assert (spec.gpu_ids, spec.num_processes, spec.sources["gpu_ids"]) == ((3, 1), 2, "flag")
    assert spec.sources["num_processes"] == "flag"
    assert spec.global_batch == 2 * 128
    single = resolve(request("single", gpus=(2,)), FOUR)
    assert (single.gpu_ids, single.num_processes) == ((2,), 1)


@pytest.mark.parametrize("gpus", [(1, 2), (3, 1, 0)])
def test_data_parallel_has_one_process_for_the_chosen_gpus(gpus):
    spec = resolve(request("data_parallel", gpus=gpus), FOUR)
    assert (spec.gpu_ids, spec.num_processes, spec.num_devices) == (gpus, 1, len(gpus))
    assert spec.global_batch == len(gpus) * 128


@pytest.mark.parametrize(
    ("preset", "details", "sentence"),
    [
        ("ddp", {"gpus": (0, 7)}, "There is no GPU 7 here; choose from 0, 1, 2, 3."),
        ("ddp", {"gpus": ()}, "No GPU was chosen; choose from 0, 1, 2, 3."),
        ("ddp", {"gpus": (1, 1)}, "GPU 1 was chosen twice; name each GPU once."),
        ("ddp", {"gpus": (0, 1), "processes": 3}, "3 processes were asked for and 2 GPUs chosen"),
        ("single", {"gpus": (0, 1)}, "This preset trains on one GPU, and 2 were chosen"),
        ("data_parallel", {"gpus": (2,)}, "at least two GPUs and the run has 1"),
        ("ddp", {"queue": True, "beside": True}, "either waits in the queue or starts beside"),
        ("ddp", {"time_limit_s": 0}, "The time limit 0 s is out of range"),
        ("ddp", {"retries": 2}, "tried again at most 1 time, not 2"),
    ],
)
def test_what_cannot_be_is_one_sentence(preset, details, sentence):
    with pytest.raises(SpecError) as refusal:
        resolve(request(preset, **details), FOUR)
    assert sentence in str(refusal.value)


def test_a_mask_of_the_shell_is_named():
    masked = msgspec.structs.replace(FOUR, gpus=FOUR.gpus[:1], visible_devices="0")
    with pytest.raises(SpecError, match=r"no GPU 2 here \(CUDA_VISIBLE_DEVICES is 0\)"):
        resolve(request(gpus=(2,)), masked)
    with pytest.raises(SpecError, match="this machine has none"):
        resolve(request(gpus=(0,)), Hardware(num_cores=2))


def test_a_run_that_goes_on_keeps_its_gpus_or_takes_others(tmp_path):
    asked = resolve(request(gpus=(2, 3), queue=True, time_limit_s=60, retries=1), FOUR)
    run = create_run_dir(tmp_path)
    tried = msgspec.structs.replace(asked, retry_of="20260101-000000-calm-fox", retries=0)
    run.write(run.spec, tried)
    last = run.checkpoints / "last"
    last.mkdir()
    (last / "training.pt").touch()
    about = {"model": "test_resnet", "classes": ["a"], "task": "single_label", "image_size": 64}
    (last / "about.json").write_bytes(msgspec.json.encode(about))

    kept = continue_run(run, FOUR)
    assert (kept.gpu_ids, kept.queue, kept.retry_of) == ((2, 3), False, None)
    assert (kept.time_limit_s, kept.retries) == (60, 1)
    other = continue_run(run, FOUR, gpus=(0, 1), queue=True)
    assert (other.gpu_ids, other.queue) == ((0, 1), True)
    # A machine without those two has others.
    fewer = msgspec.structs.replace(FOUR, gpus=FOUR.gpus[:2])
    assert continue_run(run, fewer).gpu_ids == (0, 1)
    with pytest.raises(SpecError, match="There is no GPU 9"):
        continue_run(run, FOUR, gpus=(0, 9))
    with pytest.raises(SpecError, match="either waits"):
        continue_run(run, FOUR, queue=True, beside=True)
