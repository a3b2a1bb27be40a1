"""An address that fills the form: only names that there are get through."""

from __future__ import annotations

import msgspec
import pytest

from app.views.form import plan
from app.views.prefill import prefilled
from ringside.errors import RingsideError
from ringside.spec import DataSpec, RunSpec, TrainingSettings


def test_an_empty_address_fills_nothing(runs_root):
    assert prefilled([("utm", "x")], runs_root) == {}


def test_a_run_and_what_to_do_otherwise(runs, runs_root, hardware):
    run = runs.add("calm-otter", seed=7, epochs=0)
    spec = run.read(run.spec, RunSpec)
    query = [("preset", "ddp_bf16"), ("run", run.id), ("set", "bucket_cap_mb=50")]
    values = prefilled(query, runs_root)
    assert values["preset"] == "ddp_bf16"
    assert (values["source"], values["model"], values["seed"]) == ("products:ci", "resnet10t", 7)
    assert values["overrides"] == "training.bucket_cap_mb=50"
    found = plan(values, hardware).spec
    assert found.training.bucket_cap_mb == 50
    assert found.accelerate.mixed_precision == "bf16"
    assert (found.global_batch, found.num_processes) == (spec.global_batch, 2)


def test_the_batch_is_what_was_asked_for_not_what_accumulation_made_of_it(runs, runs_root):
    run = runs.add("calm-otter", global_batch=256, training=TrainingSettings(accumulation_steps=4))
    assert prefilled([("run", run.id)], runs_root)["batch"] == 64


def test_settings_of_the_runs_own_request_stay(runs, runs_root):
    sources = {"training.compile": "flag", "training.optimizer": "preset", "num_processes": "flag"}
    run = runs.add("calm-otter", training=TrainingSettings(compile=True), sources=sources)
    assert prefilled([("run", run.id)], runs_root)["overrides"] == "training.compile=true"
    query = [("run", run.id), ("set", "compile=false")]
    assert prefilled(query, runs_root)["overrides"] == "training.compile=false"


def test_own_pictures_go_into_their_own_field(runs, runs_root):
    run = runs.add("calm-otter")
    spec = run.read(run.spec, RunSpec)
    data = DataSpec(source="folder", path="/data/photos", separator=";", image_size=64)
    run.write(run.spec, msgspec.structs.replace(spec, data=data))
    values = prefilled([("run", run.id)], runs_root)
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
