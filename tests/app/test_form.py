"""From the fields of the form to a request, a plan, and its files."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from app.commands import running
from app.views import fields, figures, form
from app.views.before import look_before
from app.views.data import data_facts, source_choices
from ringside.data import check_data, parse_data
from ringside.data.sources import hub
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
    assert fields.request_of(FILLED | {"batch": 64.0}).batch == 64
    with pytest.raises(SpecError, match="Global batch must be a whole number"):
        fields.request_of(FILLED | {"batch": 0.5})


@pytest.mark.parametrize(
    ("name", "value"),
    [("epochs", "many"), ("seed", float("nan")), ("batch", float("inf")), ("processes", [1]),
     ("learning_rate", "fast"), ("gpus", ["x"]), ("gpus", [1e400]), ("preset", ["ddp"])],
)  # fmt: skip
def test_a_value_of_no_kind_is_refused_by_the_name_of_its_field(hardware, runs_root, name, value):
    """An address or a stranger may send anything into any field."""
    said = form.plan(FILLED | {name: value}, hardware)
    assert said.spec is None
    before = look_before(FILLED | {name: value}, hardware, runs_root, lambda _: None)
    assert said.sentence in [item.sentence for item in before.found.errors]
    assert say(f"field.{name}") in said.sentence or name == "preset"


def test_other_settings_one_a_line():
    request = fields.request_of(
        FILLED | {"overrides": "optimizer=sgd\n\n warmup_epochs = 1 ", "learning_rate": 0.01}
    )
    assert request.overrides == {
        "optimizer": "sgd",
        "warmup_epochs": "1",
        "learning_rate": "0.01",
    }


def test_a_line_without_a_value_is_refused():
    with pytest.raises(SpecError, match="name=value"):
        fields.request_of(FILLED | {"overrides": "sgd"})


def test_one_owner_for_the_learning_rate():
    with pytest.raises(SpecError, match="twice"):
        fields.request_of(FILLED | {"overrides": "learning_rate=1", "learning_rate": 0.1})


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("/data/photos", "/data/photos"),
        ("emoji", "./emoji"),
        ("~/x", "~/x"),
        ("", "folder"),
        ("hf:owner/name@main", "hf:owner/name@main"),
    ],
)
def test_a_folder_is_a_folder(path, text):
    assert fields.data_text({"source": "folder", "folder": path}) == text


def test_a_data_set_of_the_hub_is_pinned_and_not_downloaded(monkeypatch):
    monkeypatch.setattr(hub, "commit_of", lambda repository, revision: "0123456789" * 4)
    spec = fields.data_spec({"source": "folder", "folder": "hf:owner/name@main"})
    assert (spec.repository, spec.revision) == ("owner/name", "0123456789" * 4)
    facts = data_facts(spec)
    assert facts.facts == ("hf:owner/name", "commit 01234567")
    assert "Nothing is downloaded yet" in facts.notes[0]
    assert facts.pictures == ()


def test_parquet_files_are_not_read_for_a_look(tmp_path):
    """Their pictures would be copied at every change of the form: the footers say how many."""
    rows = {"image": [{"bytes": b"no picture", "path": None}] * 3, "label": ["a", "b", "a"]}
    pq.write_table(pa.table(rows), tmp_path / "train-0.parquet")
    size = figures.size((tmp_path / "train-0.parquet").stat().st_size)
    facts = data_facts(parse_data(str(tmp_path)))
    assert facts.facts == (str(tmp_path), f"3 rows in 1 file, {size}")
    assert facts.notes[0].startswith("Nothing is read yet")
    assert facts.pictures == ()


@pytest.mark.parametrize(
    ("values", "own"),
    [
        ({"source": "folder", "folder": "/d"}, True),
        ({"source": "folder", "folder": ""}, True),
        ({"source": "hf:a/b"}, True),
        ({"source": "/d/table.csv"}, True),
        ({"source": "products:ci"}, False),
        ({"source": "emoji", "folder": "/d"}, False),
    ],
)
def test_the_separator_counts_for_one_s_own_data_only(values, own):
    request = fields.request_of(values | {"separator": "newline", "preset": "ddp"})
    assert fields.is_own(values) == own
    assert request.separator == ("newline" if own else None)


@pytest.fixture
def troubled(tmp_path):
    """A table with line breaks between labels, 40 pictures, one of them empty, and one absent."""
    rows = ["file_name,labels"]
    for i in range(40):
        Image.new("RGB", (16, 16), (6 * i, 20, 90)).save(tmp_path / f"{i:02}.png")
        rows.append(f'{i:02}.png,"a{i % 2}; x\nb"')
    (tmp_path / "07.png").write_bytes(b"")
    rows.append('gone.png,"a0; x"')
    (tmp_path / "metadata.csv").write_text("\n".join(rows) + "\n")
    values = FILLED | {"source": "folder", "folder": str(tmp_path), "batch": 8}
    return values | {"separator": "newline", "image_size": 32}


def test_leaving_bad_files_out_is_what_skip_bad_does(hardware, troubled, capsys, tmp_path):
    report = check_data(fields.data_spec(troubled))
    assert [one.name for one in report.classes] == ["a0; x", "a1; x", "b"]
    stopped = form.plan(troubled, hardware, lambda _: report)
    assert stopped.spec.data.skip == ()
    before = look_before(troubled, hardware, tmp_path / "runs", lambda _: report)
    assert [(one.code, one.level) for one in before.found.warnings] == [("data", "warning")]
    with pytest.raises(SpecError, match=r"07\.png"):
        before.require()
    left = form.plan(troubled | {"bad_files": "skip"}, hardware, lambda _: report)
    assert left.spec == running.without_bad_files(stopped.spec)
    assert left.spec.data.skip == ("07.png", "gone.png")
    assert any(note.startswith("2 bad files left out") for note in left.notes)
    skipped = troubled | {"bad_files": "skip"}
    assert not look_before(skipped, hardware, tmp_path / "runs", lambda _: report).found.warnings
    table = form.settings_table(left.spec)
    assert ("data.skip", "2 files", "form") in table
    assert ("data.separator", "line break", "form") in table
    assert "07.png" in capsys.readouterr().out


def test_left_out_files_are_not_opened(troubled):
    spec = fields.data_spec(troubled)
    with pytest.raises(DataError, match=r"gone\.png"):
        data_facts(spec)
    assert data_facts(spec, ("07.png", "gone.png")).facts[0] == "39 images"


def test_nothing_is_left_out_that_no_check_has_named(hardware, troubled):
    plan = form.plan(troubled | {"bad_files": "skip"}, hardware, lambda _: None)
    assert plan.spec is None
    assert "check them first" in plan.sentence


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
    filled = FILLED | {"request_id": "one", "when_busy": "queue"}
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
    facts = data_facts(parse_data("products:ci"))
    assert facts.facts[:2] == ("960 images", "16 labels")
    assert facts.synthetic
    assert len(facts.pictures) == 8
    assert facts.pictures[0][1].startswith("data:image/png;base64,")
    with pytest.raises(DataError):
        fields.data_spec({"source": "no-such-source"})
