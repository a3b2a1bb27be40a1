"""From the fields of the form to a request, a plan, and its files."""

from __future__ import annotations

import pytest

from app.views import form
from app.views.data import data_facts, source_choices
from ringside.errors import DataError, SpecError
from ringside.hardware import Hardware
from ringside.launch import local
from ringside.run import fold_run
from ringside.words import say

FILLED = {"source": "products:ci", "preset": "ddp", "model": "resnet10t", "epochs": 2}


def test_empty_fields_take_the_defaults(hardware):
    plan = form.plan({"source": "emoji", "preset": "ddp", "batch": None, "model": ""}, hardware)
    assert plan.spec is not None
    assert (plan.spec.global_batch, plan.spec.num_processes) == (128, 2)
    assert plan.spec.model == "resnet50"
    assert plan.sentence.startswith("2 processes on CPU")
    assert plan.notes


def test_a_refusal_is_the_plan(hardware):
    plan = form.plan(FILLED | {"batch": 33}, hardware)
    assert plan.spec is None
    assert "choose 32 or 34" in plan.sentence


@pytest.mark.parametrize("values", [{}, {"preset": None}, FILLED | {"epochs": 0}])
def test_nonsense_is_a_sentence_too(hardware, values):
    assert form.plan(values, hardware).sentence


def test_whole_numbers_may_come_as_floats():
    assert form.request_of(FILLED | {"batch": 64.0}).batch == 64
    with pytest.raises(SpecError, match="Global batch must be a whole number"):
        form.request_of(FILLED | {"batch": 0.5})


def test_other_settings_one_a_line():
    request = form.request_of(
        FILLED | {"overrides": "optimizer=sgd\n\n warmup_epochs = 1 ", "learning_rate": 0.01}
    )
    assert request.overrides == {
        "optimizer": "sgd",
        "warmup_epochs": "1",
        "learning_rate": "0.01",
    }


def test_a_line_without_a_value_is_refused():
    with pytest.raises(SpecError, match="name=value"):
        form.request_of(FILLED | {"overrides": "sgd"})


def test_one_owner_for_the_learning_rate():
    with pytest.raises(SpecError, match="twice"):
        form.request_of(FILLED | {"overrides": "learning_rate=1", "learning_rate": 0.1})


@pytest.mark.parametrize(
    ("path", "text"),
    [("/data/photos", "/data/photos"), ("emoji", "./emoji"), ("~/x", "~/x"), ("", "folder")],
)
def test_a_folder_is_a_folder(path, text):
    assert form.data_text({"source": "folder", "folder": path}) == text


def test_cards_that_cannot_run_here_say_why(hardware):
    cards = form.strategies(hardware)
    assert [card.name for card in cards.main] == list(form.MAIN_PRESETS)
    assert cards.faults == ()
    refused = {card.name: card.reason for card in cards.more if card.reason}
    assert refused["ddp_fp16"] == "Needs a GPU; this machine has none."
    first_refused = next(i for i, card in enumerate(cards.more) if card.reason)
    assert all(card.reason for card in cards.more[first_refused:])


def test_one_device_leads_on_a_machine_with_one():
    assert form.main_presets(Hardware(num_cores=1))[0] == "single"


def test_preview_shows_what_start_would_do(hardware, runs_root):
    found = form.preview(FILLED, hardware, runs_root)
    assert found.preset_yaml.startswith("format: 1")
    assert 'distributed_type: "MULTI_GPU"' in found.accelerate_yaml
    assert "num_processes: 2" in found.accelerate_yaml
    assert "accelerate.commands.launch" in found.command
    assert ("model", "resnet10t", "form") in found.settings
    assert not list(runs_root.iterdir())


def test_preview_tells_the_form_s_changes_apart_from_the_preset(hardware, runs_root):
    plain = form.preview(FILLED, hardware, runs_root)
    changed = form.preview(
        FILLED | {"overrides": "optimizer=sgd\nmixed_precision=bf16"}, hardware, runs_root
    )
    assert changed.preset_yaml == plain.preset_yaml
    assert ("training.optimizer", "sgd", "form") in changed.settings
    assert 'mixed_precision: "bf16"' in changed.accelerate_yaml
    assert "unchanged" in say("train.preview_preset")


def test_a_changed_form_is_another_run_and_the_same_one_is_not(hardware, runs_root, monkeypatch):
    monkeypatch.setattr(local, "start", lambda run: None)
    filled = FILLED | {"request_id": "one"}
    first = form.start(filled, hardware, runs_root)
    assert form.start(filled, hardware, runs_root).id == first.id
    other = form.start(filled | {"epochs": 3}, hardware, runs_root)
    assert other.id != first.id
    assert fold_run(other).spec.epochs == 3


def test_the_baseline_has_an_epoch_after_warm_up(hardware, runs_root, monkeypatch):
    asked = []
    monkeypatch.setattr(form, "start_run", lambda spec, *_: asked.append(spec))
    form.start_baseline(FILLED | {"epochs": 1, "request_id": "a"}, hardware, runs_root)
    (spec,) = asked
    assert (spec.preset, spec.epochs, spec.num_processes) == ("single", 2, 1)
    assert spec.request_id == "a-baseline"


def test_sources_end_with_the_folder():
    assert source_choices()[-1][1] == "folder"


def test_facts_of_the_data():
    facts = data_facts("products:ci")
    assert facts.facts[:2] == ("960 images", "16 labels")
    assert facts.synthetic
    assert len(facts.pictures) == 8
    assert facts.pictures[0][1].startswith("data:image/png;base64,")
    with pytest.raises(DataError):
        data_facts("no-such-source")
