"""Trying a checkpoint: which guesses are shown, what is refused, what is left behind."""

from __future__ import annotations

import io
import json
import re
import tempfile

import pytest
from PIL import Image

from app.page.draw.trying import sample_cards, trial_panel, try_heading, use_elsewhere
from app.views import guesses, trials
from app.views.guesses import MAX_GUESSES, NUM_GUESSES, Guess, chosen
from app.views.run import Checkpoint
from app.views.samples import SampleShelf, SampleState, take
from app.views.trials import Picture, Trials, TrialState, Tried, checkpoint_of, try_pictures
from ringside.checkpoints import About, Thresholds
from ringside.data import open_data
from ringside.errors import RingsideError, RunDirError
from ringside.identity import wait_until
from ringside.labelling import Label, LabelRule, labels_of
from ringside.spec import DataSpec

NAMES = tuple(f"class {i}" for i in range(20))
MULTI = About(model="m", classes=NAMES, task="multi_label", image_size=32)
SINGLE = About(model="m", classes=NAMES, task="single_label", image_size=32)


def labels(probabilities):
    return [Label(name, p) for name, p in zip(NAMES, probabilities, strict=True)]


def png(colour: str = "red") -> bytes:
    content = io.BytesIO()
    Image.new("RGB", (40, 20), colour).save(content, "PNG")
    return content.getvalue()


@pytest.fixture
def run(runs):
    """A run whose best checkpoint can be described but not loaded."""
    made = runs.add("calm-owl", epochs=1, ended="completed")
    folder = made.checkpoints / "best"
    folder.mkdir()
    (folder / "model.safetensors").write_bytes(b"")
    about = {"model": "m", "classes": NAMES, "task": "multi_label", "image_size": 32, "step": 7}
    (folder / "about.json").write_text(json.dumps(about))
    return made


@pytest.mark.parametrize("num_evaluated", [0, 9])
def test_what_passes_is_what_the_command_prints(num_evaluated):
    limits = {name: i / 20 for i, name in enumerate(NAMES)}
    tuned = Thresholds(num_evaluated=num_evaluated, thresholds={**limits, "class 3": None})
    probabilities = [0.05 * (i * 7 % 20) for i in range(20)]
    rule = LabelRule(threshold="tuned" if num_evaluated else 0.5)
    expected = labels_of(probabilities, MULTI, tuned, rule)
    shown, num_more = chosen(labels(probabilities), MULTI, tuned)
    passing = [guess.name for guess in shown if guess.passes]
    assert passing == [label.name for label in expected][:MAX_GUESSES]
    assert num_more == max(0, len(expected) - MAX_GUESSES)


def test_the_next_best_fill_up_what_is_shown():
    shown, num_more = chosen(labels([0.1] * 17 + [0.9, 0.2, 0.3]), MULTI, Thresholds())
    assert num_more == 0
    assert [guess.name for guess in shown[:3]] == ["class 17", "class 19", "class 18"]
    assert [guess.passes for guess in shown] == [True] + [False] * (NUM_GUESSES - 1)
    many, num_more = chosen(labels([0.9] * 20), MULTI, Thresholds())
    assert (len(many), num_more) == (MAX_GUESSES, 20 - MAX_GUESSES)


def test_of_one_class_a_picture_the_most_probable_is_chosen():
    shown, _ = chosen(labels([0.01] * 18 + [0.4, 0.42]), SINGLE, Thresholds())
    assert [(guess.name, guess.passes) for guess in shown[:2]] == [
        ("class 19", True), ("class 18", False),
    ]  # fmt: skip
    assert {guess.threshold for guess in shown} == {None}


def test_a_bad_picture_is_named_as_the_person_knows_it(run, monkeypatch):
    def answer(model, paths):
        guess = Guess("class 1", 0.9, 0.5, True)
        return {paths[0]: ((guess,), 0)}, {paths[1]: f"{paths[1]} is empty: replace it."}

    monkeypatch.setattr(trials, "guesses_of", answer)
    pictures = [Picture("a.png", png(), ("class 1",)), Picture("../b <i>.png", b"")]
    good, bad = try_pictures(run.checkpoints / "best", pictures)
    assert good.preview.startswith("data:image/png")
    assert good.truth == ("class 1",)
    assert (bad.preview, bad.fault) == (None, "../b <i>.png is empty: replace it.")
    html = trial_panel(TrialState("done", tried=(good, bad)))
    assert "labelled: class 1" in html
    assert "<i>.png" not in html


def test_nothing_is_left_of_a_trial_that_fails(run, tmp_path, monkeypatch):
    """The real process meets weights that are none."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    desk = Trials()
    trial = desk.start(run, [Picture("a.png", png())])
    assert desk.state(trial).kind == "running"
    assert wait_until(lambda: desk.state(trial).kind == "failed", 60)
    assert desk.state(trial).sentence
    assert list(tmp_path.glob("ringside-try-*")) == []


def test_a_model_that_never_answers_is_given_up(run, monkeypatch):
    monkeypatch.setattr(guesses, "TIMEOUT_S", 0.1)
    with pytest.raises(RingsideError, match="within two minutes"):
        try_pictures(run.checkpoints / "best", [Picture("a.png", png())])


def test_too_much_at_once_is_refused(run, runs, monkeypatch):
    desk = Trials()
    for number in (0, trials.MAX_PICTURES + 1):
        with pytest.raises(RingsideError, match=f"{number} pictures were given"):
            desk.start(run, [Picture("a.png", b"")] * number)
    with pytest.raises(RunDirError, match="no checkpoint yet"):
        desk.start(runs.add("new-newt"), [Picture("a.png", b"")])
    monkeypatch.setattr(trials, "MAX_AT_ONCE", 0)
    with pytest.raises(RingsideError, match="under way"):
        desk.start(run, [Picture("a.png", b"")])
    assert desk.state("no such trial").kind == desk.state(None).kind == "none"


def test_the_best_checkpoint_goes_first(run):
    assert checkpoint_of(run) == ("best", run.checkpoints / "best")
    (run.checkpoints / "best").rename(run.checkpoints / "last")
    assert checkpoint_of(run) == ("last", run.checkpoints / "last")


def test_the_card_says_which_and_how_to_take_it_away():
    best, last = Checkpoint("best", 7), Checkpoint("last", None)
    assert "after step 7" in try_heading(best)
    assert "last checkpoint" in try_heading(last)
    assert "ringside export calm-owl<" in use_elsewhere("calm-owl", best)
    assert "ringside export calm-owl --checkpoint last<" in use_elsewhere("calm-owl", last)
    assert try_heading(None) == use_elsewhere("x", None) == ""


def test_a_bar_tells_its_threshold_without_colour():
    tried = Tried("a.png", guesses=(Guess("cat", 0.8, 0.25, True), Guess("dog", 0.1, 0.5, False)))
    html = trial_panel(TrialState("done", tried=(tried,)))
    assert 'style="width:80.00%"' in html
    assert 'style="left:25.00%"' in html
    assert html.count("✓</span>") == 1
    assert "above its threshold 0.25" in html
    assert "not above its threshold 0.50" in html
    nothing = Tried("a.png", guesses=(Guess("dog", 0.1, 0.5, False),))
    assert "Nothing is above" in trial_panel(TrialState("done", tried=(nothing,)))


def test_validation_pictures_come_with_their_labels():
    spec = DataSpec(source="products", profile="ci")
    state = take(spec)
    assert (state.kind, len(state.pictures)) == ("done", 8)
    data = open_data(spec)
    for (picture, _), i in zip(state.pictures, range(0, 320, 40), strict=True):
        assert picture.content == data.val.read(i)
        assert picture.truth == tuple(data.classes[k] for k in data.val.targets[i].nonzero()[0])
    preview = state.pictures[0][1]
    assert preview.startswith("data:image/png;base64,")
    assert len(re.findall("data-sample=", sample_cards(state))) == 8


def test_data_that_are_gone_are_a_sentence(runs):
    run = runs.add("gone-goat", data=DataSpec(source="folder", path="/no/such/folder"))
    shelf = SampleShelf()
    assert shelf.state(run.id) == SampleState()
    shelf.start(run)
    assert wait_until(lambda: shelf.state(run.id).kind == "failed", 60)
    assert "/no/such/folder" in shelf.state(run.id).sentence
    assert "/no/such/folder" in sample_cards(shelf.state(run.id))
