"""The queue in words, in the list of the page and in the terminal."""

from __future__ import annotations

import json
import os
import platform
import re
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from app import cli
from app.page.draw.listing import run_list
from app.views.listing import Found, ListRow
from app.views.queue import place_sentence
from ringside import identity
from ringside.launch import queue
from ringside.launch.queue import Holder, Place
from ringside.records import Owner
from ringside.rundir import create_run_dir
from ringside.shelf.finding import Query
from ringside.words import say

FOX = Holder("20260101-000000-amber-fox", "amber-fox", (0, 1), "running")
CRANE = Holder("20260101-000001-calm-crane", "calm-crane", (), "queued")
ME = "20260102-000000-swift-hare"


def place(position=1, waits_for=(), is_paused=False):
    return Place(ME, "here", position, (0,), waits_for, is_paused)


@pytest.mark.parametrize(
    ("number", "word"),
    [(1, "1st"), (2, "2nd"), (3, "3rd"), (4, "4th"), (11, "11th"), (12, "12th"), (13, "13th"),
     (21, "21st"), (102, "102nd"), (111, "111th")],
)  # fmt: skip
def test_places_are_counted_as_english_does(number, word):
    assert place_sentence(place(number, (FOX,))).startswith(f"{word} in the queue, waits for ")


def test_a_place_says_for_whom_it_waits():
    text = place_sentence(place(2, (FOX,)))
    assert text == "2nd in the queue, waits for amber-fox (GPU 0, 1)"
    assert place_sentence(place(3, (FOX, CRANE))).endswith("amber-fox (GPU 0, 1), calm-crane")
    assert place_sentence(place(9, (FOX, CRANE, CRANE, CRANE))).endswith("calm-crane and 2 more")
    assert place_sentence(place(1)) == "1st in the queue, about to start"
    assert place_sentence(place(1, (FOX,), is_paused=True)) == "1st in the queue, which is paused"


def test_the_list_has_buttons_for_what_waits_and_links_between_tries():
    plain = ListRow(ME, "swift-hare", "running", "ddp", "resnet50", "emoji", "now", "epoch 1")
    waiting = replace(plain, state="queued", place=place(1, (FOX,)))
    tried = replace(plain, tries=(("retry_of", FOX.run_id),))
    shown = run_list(Found((waiting,), 1, 1, Query()), None)
    moves = re.findall(r'data-move="(\w+)" data-run="([\w-]+)" title="[^"]+" aria-label="', shown)
    assert moves == [("first", ME), ("up", ME), ("down", ME)]
    assert "waits for amber-fox (GPU 0, 1)" in shown
    shown = run_list(Found((tried,), 1, 1, Query()), None)
    assert "data-move" not in shown
    assert f'<a href="runs?run={FOX.run_id}">another try of amber-fox</a>' in shown


@pytest.fixture
def waiting(make_spec, tmp_path, monkeypatch):
    """A run that this process owns and that waits, and one before it."""
    root = tmp_path / "runs"
    monkeypatch.setenv("RINGSIDE_RUNS", str(root))
    made = []
    for is_waiting in (False, True):
        run = create_run_dir(root)
        spec = msgspec.structs.replace(make_spec("ddp"), queue=True)
        run.write(run.spec, spec)
        owner = Owner(
            kind="supervisor", process=identity.of(os.getpid()), started=1.0,
            host=platform.node(), waiting=is_waiting,
        )  # fmt: skip
        run.write(run.owner, owner)
        made.append(run)
    return made


def call(capsys, *words):
    with pytest.raises(SystemExit) as left:
        cli.main(list(words))
    return left.value.code, *capsys.readouterr()


def test_the_commands_of_the_queue(waiting, capsys):
    holder, run = waiting
    code, out, _ = call(capsys, "queue", "--json")
    found = json.loads(out)
    assert code == 0
    assert found == {
        "is_paused": False,
        "runs": [{
            "id": run.id, "host": platform.node(), "position": 1, "gpu_ids": [],
            "is_paused": False,
            "waits_for": [{"id": holder.id, "gpu_ids": [], "state": "running"}],
        }],
    }  # fmt: skip
    text = (Path(cli.__file__).parents[1] / "docs" / "cli-json.md").read_text()
    section = text.partition("## `ringside queue --json`")[2].partition("\n## ")[0]
    assert set(re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE)) == set(found)
    assert all(f"`{key}`" in section for key in found["runs"][0])

    sentence = f"1st in the queue, waits for {holder.name}"
    assert sentence in call(capsys, "queue")[1]
    assert sentence in call(capsys, "queue", "first", run.name)[1]
    assert sentence in call(capsys, "list")[1]
    assert f"queue: {sentence}" in call(capsys, "show", run.name)[1]
    shown = json.loads(call(capsys, "show", run.name, "--json")[1])
    assert (shown["state"], shown["queue"]) == ("queued", found["runs"][0])
    listed = {line["id"]: line for line in json.loads(call(capsys, "list", "--json")[1])}
    assert listed[run.id]["queue"] == found["runs"][0]
    assert listed[holder.id]["queue"] is None

    code, _, err = call(capsys, "queue", "up", holder.name)
    assert (code, err.strip()) == (2, say("queue.not_waiting", name=holder.name))
    assert call(capsys, "queue", "pause")[0] == 0
    assert queue.is_paused(run.path.parent)
    assert "which is paused" in call(capsys, "queue")[1]
    assert call(capsys, "queue", "resume")[0] == 0
    assert not queue.is_paused(run.path.parent)


@pytest.mark.parametrize("text", ["", "0,", "a", "0;1", "-1", "1" * 20])
def test_gpus_are_numbers_with_commas(text, capsys):
    code, _, err = call(capsys, "run", "ddp", "--gpus", text)
    assert code == 2
    assert "--gpus takes numbers with commas between them, such as 2,3" in err
