"""Tags, note and archived: what may be said, and that nobody's words are lost."""

from __future__ import annotations

import json
import threading

import pytest

from ringside.errors import RunDirError, SpecError
from ringside.shelf.notes import (
    MAX_NOTE_LENGTH,
    MAX_TAGS,
    NOTHING,
    Notes,
    edit_notes,
    read_notes,
    split_tags,
)

RUN = "20260101-000000-calm-fox"


@pytest.fixture
def run(make_spec, write_run):
    return write_run(make_spec("ddp"), RUN)


def test_nothing_is_said_at_first(run):
    assert read_notes(run) == NOTHING
    assert not run.notes.exists()


def test_what_is_said_stays_until_it_is_changed(run):
    edit_notes(run, add=["best", "fp-16"], note="  one\r\ntwo\x07 \n")
    edit_notes(run, archived=True)
    assert read_notes(run) == Notes(tags=("best", "fp-16"), note="one\ntwo", archived=True)
    edit_notes(run, add=["BEST", "new"], remove=["FP-16", "absent"])
    assert read_notes(run).tags == ("best", "new")
    edit_notes(run, tags=["only"], note="", archived=False)
    assert json.loads(run.notes.read_bytes()) == {
        "format": 1, "tags": ["only"], "note": "", "archived": False,
    }  # fmt: skip


def test_the_end_of_a_run_touches_no_notes(run):
    before = {path.name: path.read_bytes() for path in run.path.iterdir()}
    edit_notes(run, add=["best"])
    after = {path.name: path.read_bytes() for path in run.path.iterdir()}
    assert after.pop("notes.json")
    assert after == before


@pytest.mark.parametrize("tag", ["", "-x", "+x", "a b", "a,b", "a;b", "x" * 41, "a\x00", "a\nb"])
def test_what_cannot_be_a_tag(run, tag):
    with pytest.raises(SpecError, match="cannot be a tag"):
        edit_notes(run, add=[tag])
    assert read_notes(run) == NOTHING


def test_limits(run):
    with pytest.raises(SpecError, match=f"keep {MAX_TAGS} at most"):
        edit_notes(run, add=[f"t{n}" for n in range(MAX_TAGS + 1)])
    with pytest.raises(SpecError, match="shorten it"):
        edit_notes(run, note="x" * (MAX_NOTE_LENGTH + 1))
    edit_notes(run, add=[f"t{n}" for n in range(MAX_TAGS)], note="x" * MAX_NOTE_LENGTH)
    assert len(read_notes(run).tags) == MAX_TAGS


@pytest.mark.parametrize(
    "text",
    [
        "{", "[]", '{"tags": 7}', "\xff", '{"note": "%s"}' % ("x" * 3000),
        '{"deep": %s}' % ("[" * 100_000),
    ],
    ids=["torn", "list", "number", "latin", "long", "deep"],
)  # fmt: skip
def test_a_file_by_hand_that_cannot_be_read_says_nothing_and_is_not_written_over(run, text):
    run.notes.write_text(text, encoding="latin-1")
    assert read_notes(run) == NOTHING
    with pytest.raises(RunDirError, match="nothing was written over it"):
        edit_notes(run, add=["best"])
    assert run.notes.read_text(encoding="latin-1") == text


def test_notes_of_a_newer_ringside_are_left_alone(run):
    run.notes.write_text('{"format": 99, "tags": ["a"], "votes": 3}')
    with pytest.raises(RunDirError, match="update Ringside"):
        edit_notes(run, add=["best"])


def test_a_run_that_is_none_gets_no_notes(run):
    run.spec.unlink()
    with pytest.raises(RunDirError, match="no run"):
        edit_notes(run, add=["best"])
    assert not run.notes.exists()


def test_two_people_at_once_lose_nothing(run):
    names = [f"t{n}" for n in range(8)]
    threads = [threading.Thread(target=edit_notes, args=(run,), kwargs={"add": [n]}) for n in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(read_notes(run).tags) == names


def test_tags_of_one_line():
    assert split_tags(" a, b;c  d\n") == ["a", "b", "c", "d"]
    assert split_tags(" ,") == []
