"""Every preset that names the CPU really runs here, as what it says it is."""

from __future__ import annotations

from pathlib import Path

import pytest
import timm
from safetensors.torch import load_file

from ringside.data import open_data, read_classes
from ringside.hardware import read_hardware
from ringside.launch.local import start_run
from ringside.presets import Library

from tests.distributed.conftest import wait_for_end  # isort: skip

pytestmark = pytest.mark.distributed

EXPECTED = {
    "single": {"num_processes": 1, "strategy": "single", "mixed_precision": "no"},
    "ddp": {"strategy": "ddp", "mixed_precision": "no", "comm_hook": "no"},
    "ddp_accum4": {"strategy": "ddp", "mixed_precision": "no"},
    "ddp_accum8": {"strategy": "ddp", "mixed_precision": "no"},
    "ddp_bf16": {"strategy": "ddp", "mixed_precision": "bf16", "reduce_dtype": "fp32"},
    "ddp_bf16_compiled": {"strategy": "ddp", "mixed_precision": "bf16", "compiled": True},
    "ddp_bf16_compress": {
        "strategy": "ddp",
        "mixed_precision": "bf16",
        "comm_hook": "bf16",
        "reduce_dtype": "bf16",
    },
    "ddp_tuned": {
        "strategy": "ddp",
        "static_graph": True,
        "gradient_as_bucket_view": True,
        "reduce_dtype": "fp32",
    },
    "ddp_powersgd": {"strategy": "ddp", "comm_hook": "power_sgd"},
    "local_sgd": {"strategy": "local_sgd", "comm_hook": "no", "reduce_dtype": None},
    "model_parallel": {"strategy": "model_parallel", "comm_hook": "no", "reduce_dtype": None},
    "fsdp": {"strategy": "fsdp", "mixed_precision": "no", "reduce_dtype": "fp32"},
    "fsdp_bf16": {"strategy": "fsdp", "mixed_precision": "bf16", "reduce_dtype": "bf16"},
}
BYTES = {"fp32": 4, "bf16": 2}


def test_every_cpu_preset_of_the_library_is_launched_here():
    on_cpu = {preset.name for preset in Library() if "cpu" in preset.about.devices}
    assert on_cpu == set(EXPECTED)


@pytest.mark.parametrize("preset", EXPECTED)
def test_the_preset_runs_as_what_it_says(preset, finished_run):
    record = finished_run(preset)
    assert record.state == "completed", record.failure
    observed = record.observed
    expected = {"num_processes": 2, "device": "cpu", "threads": 1, **EXPECTED[preset]}
    assert {name: getattr(observed, name) for name in expected} == expected
    assert observed.backend == (None if preset == "single" else "gloo")
    if observed.reduce_dtype in BYTES:
        size = BYTES[observed.reduce_dtype]
        assert observed.reduced_bytes_per_step == size * observed.num_parameters


def test_powersgd_sends_a_small_part_and_local_sgd_an_eighth(finished_run):
    power, local = finished_run("ddp_powersgd").observed, finished_run("local_sgd").observed
    whole = 4 * power.num_parameters
    assert 0 < power.reduced_bytes_per_step < 0.1 * whole
    # Weights and BatchNorm statistics, every eighth step.
    assert whole / 8 < local.reduced_bytes_per_step < 1.05 * whole / 8


@pytest.mark.parametrize("preset", ["ddp_tuned"])
def test_settings_that_only_move_bytes_train_like_ddp(preset, finished_run):
    for a, b in zip(finished_run("ddp").epochs, finished_run(preset).epochs, strict=True):
        assert b.train_loss == pytest.approx(a.train_loss, rel=1e-4)
        assert b.auc_macro == pytest.approx(a.auc_macro, abs=2e-3)


@pytest.mark.parametrize("preset", EXPECTED)
def test_it_learns_and_is_evaluated_on_every_sample(preset, finished_run):
    first, last = finished_run(preset).epochs
    assert last.train_loss < first.train_loss
    assert last.auc_macro > 0.6
    assert first.num_evaluated == last.num_evaluated == 320
    assert first.samples_per_s == pytest.approx(first.num_samples / first.epoch_time_s)


@pytest.mark.parametrize(("preset", "k"), [("ddp_accum4", 4), ("ddp_accum8", 8)])
def test_accumulation_multiplies_the_global_batch(preset, k, finished_run):
    record = finished_run(preset)
    assert record.spec.global_batch == 64 * k
    assert record.spec.micro_batch == 32
    assert record.started.steps_per_epoch == 640 // (64 * k)
    assert record.epochs[0].num_samples == 640 // (64 * k) * 64 * k


@pytest.mark.parametrize("preset", ["ddp_bf16_compiled", "fsdp", "single"])
def test_the_checkpoint_loads_into_plain_timm(preset, finished_run):
    record = finished_run(preset)
    folder = Path(record.path) / record.best_checkpoint
    classes = read_classes(folder / "classes.json")
    assert classes == open_data(record.spec.data).classes
    model = timm.create_model(record.spec.model, num_classes=len(classes))
    model.load_state_dict(load_file(folder / "model.safetensors"), strict=True)


def test_fsdp_trains_like_ddp(finished_run):
    """Same samples, same start, fp32: sharding must not change what is learned."""
    ddp, fsdp = finished_run("ddp").epochs, finished_run("fsdp").epochs
    for a, b in zip(ddp, fsdp, strict=True):
        assert b.train_loss == pytest.approx(a.train_loss, rel=1e-4)
        assert b.auc_macro == pytest.approx(a.auc_macro, abs=2e-3)


def test_each_rank_leaves_its_own_step_times(finished_run):
    folder = Path(finished_run("ddp").path) / "ranks"
    assert {path.name for path in folder.glob("*.jsonl")} == {"rank0.jsonl", "rank1.jsonl"}


def test_windows_show_the_slowest_and_the_fastest_rank(finished_run):
    for window in finished_run("ddp").windows:
        for part in ("step", "data", "forward", "backward", "optimizer"):
            assert 0 <= getattr(window, f"{part}_ms_min") <= getattr(window, f"{part}_ms")


@pytest.mark.parametrize("preset", ["ddp", "fsdp"])
def test_one_process_is_enough_for_every_strategy(preset, make_request, session_root):
    """A machine with one device; the strategy is still the one that was asked for."""
    spec = make_request(preset, processes=1, epochs=1)
    record = wait_for_end(start_run(spec, read_hardware(), session_root))
    assert record.state == "completed", record.failure
    assert (record.observed.strategy, record.observed.num_processes) == (preset, 1)
