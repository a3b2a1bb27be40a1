"""An address that fills the form: only names that there are get through."""

from __future__ import annotations

import msgspec
import pytest

from app.views.form import plan
from app.views.prefill import prefilled
from ringside.errors import RingsideError
from ringside.hardware import Gpu, Hardware
from ringside.request import RunRequest, resolve
from ringside.spec import DataSpec, RunSpec, TrainingSettings


def test_an_empty_address_fills_nothing(runs_root):
    assert prefilled([("utm", "x")], runs_root).values == {}


def test_a_run_and_what_to_do_otherwise(runs, runs_root, hardware):
    run = runs.add("calm-otter", seed=7, epochs=0)
    spec = run.read(run.spec, RunSpec)
    query = [("preset", "ddp_bf16"), ("run", run.id), ("set", "bucket_cap_mb=50")]
    values = prefilled(query, runs_root).values
    assert values["preset"] == "ddp_bf16"
    assert (values["source"], values["model"], values["seed"]) == ("products:ci", "resnet10t", 7)
    assert values["overrides"] == "training.bucket_cap_mb=50"
    found = plan(values, hardware).spec
    assert found.training.bucket_cap_mb == 50
    assert found.accelerate.mixed_precision == "bf16"
    assert (found.global_batch, found.num_processes) == (spec.global_batch, 2)


def test_the_batch_is_what_was_asked_for_not_what_accumulation_made_of_it(runs, runs_root):
    run = runs.add("calm-otter", global_batch=256, training=TrainingSettings(accumulation_steps=4))
    assert prefilled([("run", run.id)], runs_root).values["batch"] == 64


def test_settings_of_the_runs_own_request_stay(runs, runs_root):
    run = runs.add("calm-otter", training=TrainingSettings(compile=True))
    assert prefilled([("run", run.id)], runs_root).values["overrides"] == "training.compile=true"
    query = [("run", run.id), ("set", "compile=false")]
    assert prefilled(query, runs_root).values["overrides"] == "training.compile=false"


def test_own_pictures_go_into_their_own_field(runs, runs_root):
    run = runs.add("calm-otter")
    spec = run.read(run.spec, RunSpec)
    data = DataSpec(source="folder", path="/data/photos", separator=";", image_size=64)
    run.write(run.spec, msgspec.structs.replace(spec, data=data))
    values = prefilled([("run", run.id)], runs_root).values
    assert (values["source"], values["folder"]) == ("folder", "/data/photos")
    assert (values["separator"], values["image_size"]) == ("semicolon", 64)


@pytest.mark.parametrize(
    "query",
    [("preset", "../../etc"), ("run", "../secret"), ("run", "calm"), ("set", "no_such=1"),
     ("set", "nothing"), ("set", "x" * 5000)],
)  # fmt: skip
def test_anything_else_is_refused_in_a_sentence(runs, runs_root, query):
    runs.add("calm-otter")
    with pytest.raises(RingsideError) as refused:
        prefilled([query], runs_root)
    assert len(str(refused.value)) < 1000


REQUESTS = [
    {"preset": "ddp", "batch": 96, "seed": 3, "profile": 2, "time_limit_s": 5400, "retries": 1,
     "overrides": {"mixed_precision": "bf16", "learning_rate": "0.01", "trackers": ""}},
    {"preset": "fsdp", "overrides": {"fsdp_reshard_after_forward": "false", "clip_norm": "0"}},
    {"preset": "ddp_accum4", "batch": 32, "keep_global_batch": True, "beside": True,
     "overrides": {"environment.GLOO_SOCKET_IFNAME": "lo", "optimizer": "sgd",
                   "ema_decay": "0.99"}},
    {"preset": "single", "data": "products:ci", "image_size": 48, "model": "resnet18",
     "overrides": {"best_by": "val_loss", "early_stop_epochs": "2", "channels_last": "false"}},
]  # fmt: skip


@pytest.mark.parametrize("asked", REQUESTS, ids=lambda asked: asked["preset"])
def test_a_cloned_run_asks_for_the_same(runs, runs_root, hardware, asked):
    """The form filled from a run resolves to that run, setting by setting."""
    spec = resolve(RunRequest(**asked), hardware)
    run = runs.add("calm-otter")
    run.write(run.spec, spec)
    found = prefilled([("run", run.id)], runs_root, hardware)
    again = plan(found.values, hardware).spec
    assert found.lost == []
    assert msgspec.structs.replace(again, sources={}) == msgspec.structs.replace(spec, sources={})


def test_precision_and_rate_go_into_their_own_fields(runs, runs_root, hardware):
    asked = RunRequest(preset="ddp", overrides={"mixed_precision": "bf16", "learning_rate": "0.5"})
    run = runs.add("calm-otter")
    run.write(run.spec, resolve(asked, hardware))
    values = prefilled([("run", run.id)], runs_root).values
    assert (values["precision"], values["learning_rate"]) == ("bf16", 0.5)
    assert "overrides" not in values


TWO_GPUS = Hardware(
    gpus=tuple(
        Gpu(index=i, name="H200", uuid=f"GPU-{i}", memory_total_bytes=10**11, memory_used_bytes=0)
        for i in range(2)
    ),
    num_cores=16,
)


def test_gpus_are_the_same_by_number_and_absent_ones_are_said(runs, runs_root):
    run = runs.add("calm-otter", device="cuda", gpu_ids=(1, 0))
    found = prefilled([("run", run.id)], runs_root, TWO_GPUS)
    assert found.values["gpus"] == [1, 0]
    assert found.lost == []
    run = runs.add("pale-fox", device="cuda", gpu_ids=(0, 5))
    found = prefilled([("run", run.id)], runs_root, TWO_GPUS)
    assert "gpus" not in found.values
    assert "GPU 0, 5" in found.lost[0]


def test_what_the_form_cannot_hold_is_said(runs, runs_root, hardware):
    data = DataSpec(source="folder", path="/d", skip=("a.png", "b.png"))
    run = runs.add("calm-otter", data=data, resume_from="/runs/x/checkpoints/last", preset="gone",
                   device="cuda", gpu_ids=(0, 1))  # fmt: skip
    lost = " ".join(prefilled([("run", run.id)], runs_root, hardware).lost)
    for words in ("2 files left out", "/runs/x/checkpoints/last", "gone", "another kind of device"):
        assert words in lost
