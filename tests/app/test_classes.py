"""Scores by class on the page and in the terminal, and what `label` and `export` refuse at once."""

from __future__ import annotations

import json
import re

import pytest
from msgspec import structs

from app.commands import models
from app.page.draw.classes import class_cards
from app.views.classes import COLUMNS, class_tables
from app.views.desk import Desk
from ringside.checkpoints import THRESHOLDS
from ringside.class_scores import ClassTables, EpochClasses, write_class_scores
from ringside.run import fold_run
from ringside.scores import ClassScores

RUN = "20260101-000000-calm-fox"


def one(name: str, auc: float | None) -> ClassScores:
    return ClassScores(
        name=name, support=29, auc=auc, average_precision=auc, f1=0.25, true_positives=7,
        false_positives=8, false_negatives=22, true_negatives=283, threshold_tuned=auc,
        f1_tuned=auc,
    )  # fmt: skip


def epoch(number: int, task: str = "multi_label") -> EpochClasses:
    rows = (one("<b>bold</b>", 0.875), one("never", None))
    return EpochClasses(epoch=number, task=task, num_evaluated=320, threshold=0.5, classes=rows)


@pytest.fixture
def run(make_spec, write_run):
    """A finished run whose best epoch is not its last."""
    written = write_run(make_spec("single"), RUN)
    write_class_scores(written, ClassTables(last=epoch(3), best=epoch(2)))
    return written


def test_the_last_and_the_best_epoch_are_shown(run):
    last, best = class_tables(fold_run(run))
    assert last.title == "last epoch 3, 320 images, counts at 0.5"
    assert best.title == "best epoch 2, 320 images, counts at 0.5"
    bold, never = last.rows
    assert len(bold) == len(COLUMNS)
    assert [cell.text for cell in bold[1:]] == [
        "0.875", "0.875", "0.250", "7", "8", "22", "283", "0.875", "0.875",
    ]  # fmt: skip
    assert (never[1].text, never[1].value) == ("–", None)
    assert "tuning: never" in last.notes[0]
    assert "on new ones F1 will be lower" in last.notes[1]


def test_a_class_that_was_never_trained_is_named_with_the_reason(run, ringside):
    untrained = structs.replace(one("rare", None), num_trained=0)
    scored = structs.replace(epoch(3), classes=(*epoch(3).classes, untrained))
    write_class_scores(run, ClassTables(last=scored))
    (table,) = class_tables(fold_run(run))
    assert table.notes[0].startswith("Never trained, because no training image has it")
    assert table.notes[0].endswith(": rare")
    assert table.notes[1].endswith("tuning: never")
    assert f"\n{table.notes[0]}\n" in ringside("show", "calm-fox", "--classes")[1]


def test_one_epoch_that_is_both_is_shown_once(run):
    write_class_scores(run, ClassTables(last=epoch(3), best=epoch(3)))
    assert len(class_tables(fold_run(run))) == 1


def test_one_class_per_image_is_counted_by_the_most_probable(run):
    write_class_scores(run, ClassTables(last=epoch(3, "single_label")))
    (table,) = class_tables(fold_run(run))
    assert table.title.endswith("counts of the most probable class")
    assert len(table.notes) == 1


def test_before_the_first_evaluation_there_is_nothing(make_spec, write_run, root):
    written = write_run(make_spec("single"), RUN)
    assert Desk(root).look(written.id)[0].classes == ()
    assert class_cards(()) == ""


def test_the_page_escapes_names_and_can_sort(run, root):
    html = class_cards(Desk(root).look(run.id)[0].classes)
    assert "<b>bold" not in html
    assert "&lt;b&gt;bold&lt;/b&gt;" in html
    assert html.count("<table") == 2
    assert re.findall(r'data-value="([\d.]*)">[\d.–]+</td>', html)[0] == "0.875"
    assert 'data-value="">–' in html


def test_show_prints_classes_when_asked_and_else_how(ringside, run):
    code, out, _ = ringside("show", "calm-fox")
    assert code == 0
    assert "2 classes one by one: ringside show calm-fox --classes" in out
    assert "counts at 0.5" not in out
    _, out, _ = ringside("show", "calm-fox", "--classes")
    assert out.index("last epoch 3") < out.index("best epoch 2")
    assert re.search(r"^never +– +– +0\.250 +7 +8 +22 +283 +– +–$", out, re.MULTILINE)


def test_show_as_json_has_the_file(ringside, run):
    found = json.loads(ringside("show", "calm-fox", "--json")[1])["class_scores"]
    assert found == json.loads(run.class_scores.read_bytes())


@pytest.fixture
def model(tmp_path, monkeypatch):
    """A folder that looks like a model; nothing may load it."""
    monkeypatch.setattr(models, "_in_torch", lambda *_: pytest.fail("torch was not needed"))
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "model.safetensors").touch()
    about = {"model": "m", "classes": ["a"], "task": "single_label", "image_size": 32}
    (folder / "about.json").write_text(json.dumps(about))
    return folder


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--threshold", "2"], "a number from 0 to 1 or `tuned`, not 2"),
        (["--threshold", "tuned"], "chooses one class"),
        (["--top", "0"], "--top must be at least 1"),
        (["--checkpoint", "worst"], "worst"),
    ],
)
def test_a_mistake_is_refused_before_torch_is_loaded(ringside, model, options, sentence):
    code, _, err = ringside("label", str(model), "a.jpg", *options)
    assert code == 2
    assert sentence in err


def test_export_overwrites_nothing_and_names_its_folder(ringside, model, tmp_path):
    code, _, err = ringside("export", str(model), "--out", str(tmp_path))
    assert (code, "choose another folder with --out" in err) == (2, True)
    code, _, err = ringside("export", "/nowhere/at/all")
    assert (code, "neither a run nor a folder" in err) == (2, True)


def test_what_torch_gets_and_says_is_passed_on(ringside, model, monkeypatch):
    calls = []
    monkeypatch.setattr(models, "_in_torch", lambda *call: calls.append(call) or 1)
    code, _, _ = ringside("label", str(model), "-a.jpg", "b.jpg", "--top", "2", "--json")
    assert code == 2  # a name that begins with a dash needs --
    code, _, _ = ringside("label", "--top", "2", "--json", "--", str(model), "-a.jpg", "b.jpg")
    assert code == 1
    words = ["--json", "--top", "2", "--", str(model), "-a.jpg", "b.jpg"]
    assert calls == [("training.label", words)]
    ringside("export", str(model), "--format", "onnx")
    words = [str(model), "--format", "onnx", "--out", "model-best-onnx"]
    assert calls[1] == ("training.export", words)


def test_the_threshold_file_is_optional(ringside, model, monkeypatch):
    monkeypatch.setattr(models, "_in_torch", lambda *_: 0)
    assert ringside("label", str(model), "a.jpg")[0] == 0
    (model / THRESHOLDS).write_text("{")
    assert "does not describe a model" in ringside("label", str(model), "a.jpg")[2]
