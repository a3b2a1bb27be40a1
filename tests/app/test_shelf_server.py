"""The shelf over raw HTTP: no token, no change; and hostile values change nothing."""

from __future__ import annotations

import logging
import shutil

import httpx
import pytest

from ringside.identity import wait_until
from ringside.shelf.deleting import TRASH
from ringside.shelf.notes import NOTHING, edit_notes, read_notes

SKIPPED = ({"__type__": "update"}, {"__type__": "update", "props": {"__type__": "update"}})
HOSTILE = (None, "last", "../../etc", "20260102-030405-no-run", "\x00", ["x"], {"a": 1})


@pytest.fixture
def run(served, runs_at):
    """A run that has ended."""
    made = runs_at(served.settings.runs_root)
    run = made.add("done-dove", epochs=2, ended="completed")
    yield run
    shutil.rmtree(run.path, ignore_errors=True)


@pytest.fixture(scope="module")
def call(served):
    """Call an event by its name with values by element id, as a stranger with the source could."""
    config = httpx.get(f"{served.url}/config", timeout=60).json()
    events = {event["api_name"]: event for event in config["dependencies"]}
    ids = {p["id"]: p["props"].get("elem_id", "") for p in served.page.config["components"]}

    def ask(name, **values):
        event = events[name]
        data = [values.get((ids[part] or "").replace("-", "_")) for part in event["inputs"]]
        body = {"data": data, "fn_index": event["id"], "session_hash": "test"}
        answer = httpx.post(f"{served.url}/gradio_api/run/predict", json=body, timeout=60)
        if answer.status_code != 200:
            return {}
        outputs = zip(event["outputs"], answer.json()["data"], strict=True)
        return {ids[part]: value for part, value in outputs if value not in SKIPPED}

    return ask


@pytest.mark.parametrize("token", ["", "guess", None])
@pytest.mark.parametrize("name", ["save_notes", "archive", "delete_run"])
def test_nothing_changes_without_the_token(call, run, told, name, token):
    held = call("open_runs")["notes-held"]
    call(name, run_id=run.id, token=token, field_tags="x", notes_held=held, delete_asked=run.id)
    assert run.spec.exists()
    assert read_notes(run) == NOTHING
    assert told == ["This page is older than the server: reload it, then try again."]


def test_no_leftover_is_ended_without_the_token(call, served, told, monkeypatch):
    asked = []
    monkeypatch.setattr(served.settings.leftovers, "clean", lambda: asked.append(1))
    for token in ("", "guess", None):
        call("clean_up", token=token)
    assert asked == []
    call("clean_up", token=served.settings.token)
    assert asked == [1]


@pytest.mark.parametrize("run_id", HOSTILE, ids=repr)
@pytest.mark.parametrize("name", ["save_notes", "archive", "ask_to_delete", "delete_run"])
def test_only_the_run_that_is_named(call, run, served, told, name, run_id):
    call(name, run_id=run_id, token=served.settings.token, field_tags="x", delete_asked=run_id)
    assert run.spec.exists()
    assert read_notes(run) == NOTHING
    assert sorted(p.name for p in served.settings.runs_root.iterdir() if p.name[0] != ".") == [
        run.id
    ]


def test_notes_are_kept_and_come_back_with_the_next_poll(call, run, served, told):
    who = {"run_id": run.id, "token": served.settings.token}
    held = call("open_runs")["notes-held"]
    found = call("save_notes", **who, notes_held=held, field_tags="a, b", field_note="why\n")
    assert (found["field-tags"], found["field-note"]) == ("a b", "why")
    assert read_notes(run).tags == ("a", "b")
    polled = call("poll_run", run_id=run.id, seen="{}", field_log="console")
    assert "why" in polled["said"]
    # Whoever is typing is not interrupted.
    assert not {"field-tags", "field-note", "notes-held"} & set(polled)
    again = call("poll_run", run_id=run.id, seen=polled["seen"], field_log="console")
    assert not {"said", "run-list"} & set(again)
    for old in (held, None, "", ["x"]):
        call("save_notes", **who, notes_held=old, field_tags="mine", field_note="mine")
        assert told.pop().startswith("Somebody else has changed")
    call("save_notes", **who, notes_held=found["notes-held"], field_tags="-x", field_note="y")
    assert told == ["'-x' cannot be a tag: one word of at most 40 characters, without commas, and "
                    "not beginning with + or -."]  # fmt: skip
    assert read_notes(run).note == "why"


def test_put_away_and_back(call, run, served, told):
    for is_archived in (True, False):
        call("archive", run_id=run.id, token=served.settings.token)
        assert read_notes(run).archived is is_archived
        polled = call("poll_run", run_id=run.id, seen="{}", field_log="console")
        assert (run.name in polled["run-list"]) is not is_archived


def test_deleting_takes_a_question_about_this_very_run(call, run, served, told, caplog):
    caplog.set_level(logging.INFO, logger="ringside.audit")
    token = served.settings.token
    asked = call("ask_to_delete", run_id=run.id)
    assert asked["delete-asked"] == run.id
    assert "files" in asked["delete-question"]
    for other in ("", None, run.name, "20260101-000000-calm-fox"):
        call("delete_run", run_id=run.id, token=token, delete_asked=other)
        assert told.pop().startswith("The question was about another run")
    assert run.spec.exists()
    assert call("delete_run", run_id=run.id, token=token, delete_asked=run.id) == {
        "deleted": run.id
    }
    assert not run.path.exists()
    trash = served.settings.runs_root / TRASH
    assert wait_until(lambda: not trash.exists(), 10)
    lines = [record.getMessage() for record in caplog.records]
    assert len(lines) == 5
    assert f"what=delete about={run.id} outcome=done" in lines[-1]
    assert "who=local from=127.0.0.1" in lines[-1]
    assert "another run" in lines[0]


def test_a_run_under_way_is_not_deleted(call, served, told, runs_at):
    live = runs_at(served.settings.runs_root).add("live-lark", epochs=1)
    call("ask_to_delete", run_id=live.id)
    call("delete_run", run_id=live.id, token=served.settings.token, delete_asked=live.id)
    assert len(told) == 2
    assert all("stop it first" in text for text in told)
    assert live.spec.exists()
    shutil.rmtree(live.path)


def test_the_list_is_what_the_fields_ask_for(call, run, served):
    edit_notes(run, add=["best"])
    fields = {"run_id": run.id, "seen": "{}", "field_state": "", "field_sort": "auc",
              "field_archived": False}  # fmt: skip
    assert run.name in call("find_runs", **fields, field_search="done BEST")["run-list"]
    found = call("find_runs", **fields, field_search="nope")
    assert "No run fits" in found["run-list"]
    assert set(served.settings.memory.recall(found["seen"])) == {"list", "run"}
    # The next poll knows what the browser has, and agrees.
    polled = call("poll_run", **fields | {"seen": found["seen"]}, field_search="nope",
                  field_log="console")  # fmt: skip
    assert "run-list" not in polled


@pytest.mark.parametrize("value", [None, "\x00", ["x"], {"a": 1}], ids=repr)
@pytest.mark.parametrize("name", ["search", "state", "of_preset", "tag", "sort", "archived"])
def test_hostile_fields_break_no_list(call, run, name, value):
    fields = {"run_id": run.id, "seen": "{}", "field_state": "", "field_sort": "newest",
              "field_archived": False}  # fmt: skip
    call("find_runs", **fields | {f"field_{name}": value})
    assert run.name in call("find_runs", **fields)["run-list"]
