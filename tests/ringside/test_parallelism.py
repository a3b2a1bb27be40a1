"""Requests that spread one model: defaults, refusals, and what they are compared with."""

from __future__ import annotations

import msgspec
import pytest

from ringside.compare import compare
from ringside.errors import RingsideError
from ringside.hardware import Gpu, Hardware
from ringside.presets import BUILT_IN, Library, accelerate_config, render
from ringside.request import RunRequest, continue_run, resolve
from ringside.run import fold_run
from ringside.sentences import plan_sentence
from ringside.spec import RunSpec
from ringside.speedup import baseline_of, scaling_of, speedup


def machine(num_gpus: int = 0) -> Hardware:
    gpus = tuple(
        Gpu(index=i, name="A100", uuid=str(i), memory_total_bytes=2**34, memory_used_bytes=0)
        for i in range(num_gpus)
    )
    return Hardware(gpus=gpus, num_cores=2, memory_bytes=2**34)


def spec_of(preset: str, num_gpus: int = 0, **fields: object) -> RunSpec:
    return resolve(RunRequest(preset=preset, **fields), machine(num_gpus))


# --- what is planned --------------------------------------------------------------------------


def test_a_pipeline_has_one_process_for_each_stage():
    spec = spec_of("model_parallel")
    assert (spec.strategy, spec.num_processes, spec.num_devices) == ("model_parallel", 2, 2)
    assert (spec.global_batch, spec.loader_batch, spec.micro_batch) == (128, 128, 32)
    assert (spec.num_readers, spec.num_micro_steps) == (1, 4)
    assert accelerate_config(spec.accelerate, 2)["distributed_type"] == "MULTI_GPU"
    assert "pipeline, fp32, global batch 128 = 32 x 4 x 1" in plan_sentence(spec)


@pytest.mark.parametrize(("processes", "gpus"), [(None, 4), (1, 4), (2, 2), (3, 3)])
def test_data_parallel_is_one_process_with_many_gpus(processes, gpus):
    """A plain launch has one process, which says nothing about the GPUs."""
    spec = spec_of("data_parallel", 4, processes=processes)
    assert (spec.strategy, spec.num_processes, spec.num_devices) == ("data_parallel", 1, gpus)
    assert spec.gpu_ids == tuple(range(gpus))
    assert (spec.global_batch, spec.micro_batch) == (128 * gpus, 128)
    assert spec.loader_batch == spec.global_batch
    assert "nn.DataParallel, fp32" in plan_sentence(spec)
    assert f"= 128 x {gpus} x 1" in plan_sentence(spec)


def test_accumulation_multiplies_the_batch_here_too():
    """The micro-batches of a pipeline divide a batch, accumulation multiplies it."""
    spec = spec_of("model_parallel", batch=64, overrides={"accumulation_steps": "2"})
    assert (spec.global_batch, spec.loader_batch, spec.micro_batch) == (128, 64, 16)
    assert spec.learning_rate == pytest.approx(0.002 * 2**0.5)


def test_the_files_for_the_launcher_say_the_number_of_processes():
    library = Library()
    assert "num_processes: 1\n" in render(library.get("data_parallel"))
    assert "num_processes: 2\n" in render(library.get("model_parallel"))


def test_single_comes_first_in_the_library():
    names = [preset.name for preset in Library() if preset.origin == BUILT_IN]
    assert names[:3] == ["single", "data_parallel", "ddp"]
    assert names.index("local_sgd") < names.index("model_parallel") < names.index("fsdp")


# --- what is refused --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("preset", "num_gpus", "fields", "message"),
    [
        ("data_parallel", 0, {}, "data_parallel needs a GPU and this machine has no GPU"),
        ("data_parallel", 1, {}, "at least two GPUs and the run has 1"),
        ("data_parallel", 2, {"processes": 3}, "3 processes .* this machine has 2 GPUs"),
        ("data_parallel", 2, {"batch": 63}, "63 cannot be split over 2 GPUs; choose 62 or 64"),
        ("data_parallel", 2, {"overrides": {"compile": "true"}}, "compile needs one device or DDP"),
        ("single", 0, {"overrides": {"parallelism": "data_parallel"}}, "at least two GPUs.* has 0"),
        ("ddp", 2, {"overrides": {"parallelism": "data_parallel"}}, "needs distributed_type NO"),
        ("fsdp", 2, {"overrides": {"parallelism": "pipeline"}}, "needs distributed_type MULTI_GPU"),
        ("model_parallel", 1, {}, "at least two devices and the run has 1"),
        ("model_parallel", 2, {"batch": 30}, "30 cannot be split over 4 micro-batches; .*28 or 32"),
        ("model_parallel", 2, {"batch": 2}, "2 cannot be split over 4 micro-batches; choose 4"),
        ("model_parallel", 2, {"overrides": {"mixed_precision": "fp16"}}, "fp16 does not work"),
        ("model_parallel", 2, {"overrides": {"ema_decay": "0.9"}}, "ema_decay .* model_parallel"),
        ("model_parallel", 2, {"overrides": {"mixup": "0.2"}}, "mixup does not work with"),
        ("model_parallel", 2, {"overrides": {"freeze": "backbone"}}, "freeze does not work with"),
        ("model_parallel", 2, {"overrides": {"comm_hook": "bf16"}}, "comm_hook bf16 needs DDP"),
        ("model_parallel", 2, {"overrides": {"local_sgd_steps": "4"}}, "local_sgd_steps needs"),
    ],
)
def test_what_cannot_work_is_refused_in_a_sentence(preset, num_gpus, fields, message):
    with pytest.raises(RingsideError, match=message):
        spec_of(preset, num_gpus, **fields)


# --- what it is compared with -----------------------------------------------------------------


def test_the_baseline_of_a_pipeline_accumulates_its_micro_batches():
    """BatchNorm then sees the same images at once, and both do the same work in a step."""
    spec = spec_of("model_parallel", 2, batch=256)
    baseline = baseline_of(spec)
    assert (baseline.preset, baseline.strategy, baseline.num_processes) == ("single", "single", 1)
    assert baseline.training.accumulation_steps == 4
    assert baseline.training.parallelism == "no"
    assert (baseline.global_batch, baseline.micro_batch) == (256, 64)
    assert baseline.learning_rate == spec.learning_rate
    assert scaling_of(spec, baseline) == "strong"
    without = msgspec.structs.replace(
        baseline, training=msgspec.structs.replace(baseline.training, accumulation_steps=1)
    )
    assert scaling_of(spec, without) is None


def test_the_baseline_of_data_parallel_has_one_gpus_share():
    baseline = baseline_of(spec := spec_of("data_parallel", 4))
    assert (baseline.strategy, baseline.global_batch, baseline.gpu_ids) == ("single", 128, (0,))
    assert scaling_of(spec, baseline) == "weak"


def test_efficiency_and_device_hours_count_gpus_not_processes(root, write_run):
    """One process with four GPUs: 128 images in 0.1 s against 4 x 128 in 0.2 s."""
    spec = spec_of("data_parallel", 4)
    base = write_run(baseline_of(spec), "20260102-000000-calm-fox", step_s=0.1)
    run = fold_run(write_run(spec, "20260103-000000-swift-hare", step_s=0.2))
    gain = speedup(run, fold_run(base))
    assert gain.value == pytest.approx(2.0)
    assert gain.efficiency_ratio == pytest.approx(0.5)
    (row,) = compare(root, [run]).runs
    assert (row.num_processes, row.num_devices) == (1, 4)
    assert row.device_hours == pytest.approx(4 * run.total_time_s / 3600)


@pytest.mark.parametrize(("processes", "devices"), [(None, 3), (2, 2)])
def test_a_continued_run_keeps_its_gpus_unless_others_are_asked_for(
    processes, devices, write_run, leave_checkpoint
):
    spec = spec_of("data_parallel", 4, processes=3, batch=48)
    run = write_run(spec, "20260102-000000-calm-fox", epochs=1)
    leave_checkpoint(run, epoch=2)
    again = continue_run(run, machine(4), processes=processes)
    assert (again.num_processes, again.num_devices) == (1, devices)
    assert again.accelerate.num_processes == 1
    assert again.micro_batch == 48 // devices
