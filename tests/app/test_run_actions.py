"""What can be asked of a run from its page: with the token only, of the run that is named only."""

from __future__ import annotations

import httpx
import msgspec
import pytest

from app import resuming
from ringside.errors import RunDirError
from ringside.launch import local
from ringside.run import fold_run
from ringside.rundir import RunDir


@pytest.fixture(scope="module")
def call(served):
    """Call an event by its name; what it changes, by element id."""
    config = httpx.get(f"{served.url}/config").json()
    events = {event["api_name"]: event for event in config["dependencies"]}
    ids = {part["id"]: part["props"].get("elem_id") or "" for part in config["components"]}

    def ask(name, **values):
        event = events[name]
        data = [values.get(ids[part].replace("-", "_")) for part in event["inputs"]]
        body = {"data": data, "fn_index": event["id"], "session_hash": "test"}
        answer = httpx.post(f"{served.url}/gradio_api/run/predict", json=body, timeout=30)
        return dict(
            zip((ids[part] for part in event["outputs"]), answer.json()["data"], strict=True)
        )

    return ask


@pytest.fixture
def run(served, runs_at):
    """A run under way in the server's folder, of a name that no other test has."""
    made = runs_at(served.settings.runs_root)
    made.made = len(list(made.root.iterdir()))
    return made.add("busy-bee", epochs=1)


ACTS = {"after_epoch": "stop-after-epoch", "checkpoint": "checkpoint", "profile": "profile"}


@pytest.mark.parametrize("name", ACTS)
def test_a_request_needs_the_token_and_the_whole_id(served, call, run, told, name):
    token = served.settings.token
    for run_id, given in ((run.id, "guess"), (run.name, token), ("last", token), (None, token)):
        call(name, run_id=run_id, token=given)
        assert told.pop()
        assert not run.requested(ACTS[name])
    answer = call(name, run_id=run.id, token=token)
    # The button itself is drawn by polls only: by then a run may have met the request.
    assert list(answer) == ["pulse"]
    assert answer["pulse"] != call(name, run_id=run.id, token=token)["pulse"]
    assert run.requested(ACTS[name])


def test_the_page_shows_what_was_asked_for(served, call, run):
    shown = call("poll_run", run_id=run.id, seen="", field_log="console")
    assert [
        shown[name]["visible"] for name in ("stop", "after-epoch", "checkpoint", "profile")
    ] == [True] * 4
    assert [shown[name]["visible"] for name in ("resume", "dump")] == [False] * 2
    call("after_epoch", run_id=run.id, token=served.settings.token)
    later = call("poll_run", run_id=run.id, seen=shown["seen"], field_log="console")
    assert later["after-epoch"]["interactive"] is False
    assert "stops after epoch" in later["run-head"]


def test_nothing_is_asked_of_a_run_that_is_over(served, call, runs_at, told):
    made = runs_at(served.settings.runs_root)
    made.made = len(list(made.root.iterdir()))
    over = made.add("done-dove", epochs=1, ended="completed")
    for name in (*ACTS, "dump_stacks"):
        call(name, run_id=over.id, token=served.settings.token)
        assert over.name in told.pop()
    assert list(over.requests.iterdir()) == []
    shown = call("poll_run", run_id=over.id, seen="", field_log="console")
    for name in ("stop", "after-epoch", "checkpoint", "profile", "resume", "dump"):
        assert shown[name]["visible"] is False


def test_stacks_need_the_token(served, call, run, told, monkeypatch):
    asked = []
    monkeypatch.setattr("app.page.runs.actions.dump_stacks", lambda run: asked.append(run.id) or ())
    call("dump_stacks", run_id=run.id, token="guess")
    assert asked == []
    assert (
        "Where the ranks stand"
        in call("dump_stacks", run_id=run.id, token=served.settings.token)["stacks"]
    )
    assert asked == [run.id]


@pytest.fixture
def stopped(served, runs_at, leave_checkpoint):
    made = runs_at(served.settings.runs_root)
    made.made = len(list(made.root.iterdir()))
    run = made.add("half-hare", epochs=1, ended="stopped")
    leave_checkpoint(run, epoch=2, step=10)
    return run


def test_resume_starts_what_the_terminal_would(served, call, stopped, monkeypatch, told):
    """The same request as `ringside resume`, but for the id that makes two presses one run."""
    specs = []

    def start(spec, hardware, root):
        specs.append(spec)
        return RunDir(root / "20990101-000000-new-newt")

    monkeypatch.setattr(local, "start_run", start)
    monkeypatch.setattr("ringside.estimate.store_estimate", lambda *_: None)
    shown = call("poll_run", run_id=stopped.id, seen="", field_log="console")
    assert shown["resume"]["visible"] is True
    values = {"run_id": stopped.id, "resume_id": "one"}
    call("resume", **values, token="guess")
    assert specs == []
    assert told.pop()
    token = served.settings.token
    answers = [call("resume", **values, token=token) for _ in range(2)]
    assert {answer["resumed"] for answer in answers} == {"20990101-000000-new-newt"}
    assert specs[0] == specs[1]
    terminal = resuming.spec_to_resume(stopped, served.settings.hardware)
    assert msgspec.structs.replace(specs[0], request_id=None) == terminal
    assert terminal.resume_from == str(stopped.checkpoints / "last")
    assert "one" in specs[0].request_id


def test_a_run_under_way_is_not_resumed(served, run):
    assert not fold_run(run).final
    with pytest.raises(RunDirError, match="is not over yet"):
        resuming.spec_to_resume(run, served.settings.hardware)
