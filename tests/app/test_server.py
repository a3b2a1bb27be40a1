"""Address, port and password; and the real server, asked over HTTP."""

from __future__ import annotations

import json
import re
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from app.login import Login
from app.page import open_server, server
from app.page.train import handlers
from app.views.consultations import ConsultState
from app.views.pace import PERIOD_S
from ringside.data import parse_data
from ringside.errors import LaunchError, RingsideError
from ringside.profile_request import asked_steps
from ringside.rundir import RunDir, create_run_dir, list_run_dirs

PATIENT_S = 60  # The cores may be busy.


def call(served, name, headers=None, **values):
    """Call an event by its name with values by element id, as a stranger with the source could."""
    config = httpx.get(f"{served.url}/config", timeout=PATIENT_S).json()
    event = next(fn for fn in config["dependencies"] if fn["api_name"] == name)
    ids = {
        part["id"]: part["props"].get("elem_id", "") for part in served.page.config["components"]
    }
    data = [values.get(ids[part].replace("-", "_")) for part in event["inputs"]]
    body = {"data": data, "fn_index": event["id"], "session_hash": "test"}
    url = f"{served.url}/gradio_api/run/predict"
    return httpx.post(url, json=body, headers=headers, timeout=PATIENT_S)


FORM = {
    "field_source": "products:ci", "field_folder": "", "field_preset": "ddp",
    "field_model": "resnet10t", "field_epochs": 1, "field_keep_global_batch": False,
    "field_overrides": "", "field_gpus": [], "request_id": "one",
}  # fmt: skip
LIST = {
    "run-list", "leftover-list", "field-of-preset", "field-tag", "queue-paused", "pause-queue",
    "resume-queue",
}  # fmt: skip
POLL = {"field_log": "console", "run_id": "", "seen": "{}"}
SKIPPED = ({"__type__": "update"}, {"__type__": "update", "props": {"__type__": "update"}})


def poll(served, name="poll_run", **values):
    """What a poll changes, by element id."""
    event = next(fn for fn in served.page.fns.values() if fn.api_name == name)
    answer = call(served, name, **POLL | values)
    assert answer.status_code == 200
    data = zip(event.outputs, answer.json()["data"], strict=True)
    return {part.elem_id: value for part, value in data if value not in SKIPPED}


@pytest.fixture
def served_runs(served, runs_at):
    """Makes runs for the server; they are gone after the test."""
    made = runs_at(served.settings.runs_root)
    yield made
    for run in list_run_dirs(made.root):
        shutil.rmtree(run.path)


@pytest.fixture
def finished(served_runs):
    """A run with a log on the server's page."""
    run = served_runs.add("done-dove", epochs=2, ended="completed")
    run.console.write_text("the first line\n")
    return run


def test_every_page_answers(served):
    for path in ("/", "/runs", "/compare"):
        answer = httpx.get(f"{served.url}{path}", timeout=PATIENT_S)
        assert answer.status_code == 200
        assert "Ringside" in answer.text


def test_the_guard_is_in_front(served):
    assert httpx.get(served.url, headers={"host": "evil.example"}).status_code == 403
    answer = call(served, "poll_run", {"origin": "http://evil.example"}, **POLL)
    assert answer.status_code == 403


@pytest.mark.parametrize("token", ["", "guess", None])
@pytest.mark.parametrize("name", ["start", "start_baseline"])
def test_no_run_starts_without_the_token(served, monkeypatch, name, token):
    started = []
    monkeypatch.setattr(
        handlers, name, lambda values, *_: started.append(values) or RunDir(Path("r"))
    )
    call(served, name, **FORM, token=token)
    assert started == []
    call(served, name, **FORM, token=served.settings.token)
    assert [values["request_id"] for values in started] == ["one"]


@pytest.mark.parametrize("name", ["start", "start_baseline"])
def test_a_refused_start_gets_a_new_request_id(served, monkeypatch, told, name):
    def refuse(values, *_):
        raise LaunchError("The supervisor did not start.")

    monkeypatch.setattr(handlers, name, refuse)
    token = served.settings.token
    ids = set()
    for _ in range(2):
        go, request_id = call(served, name, **FORM, token=token).json()["data"]
        assert go == ""
        ids.add(request_id)
    assert len(ids | {"one"}) == 3
    assert told == ["The supervisor did not start."] * 2


CURVES = {"field_curve_x": "epoch", "field_curve_smoothing": 0, "field_curve_log": False}


@pytest.mark.parametrize(
    "chosen",
    ["{}", None, [], '{"runs": ["../x", 3]}', '{"runs": ["20260101-000000-no-one", "x"]}',
     json.dumps({"runs": ["20260101-000000-no-one", "20260101-000001-no-two"]})],
)  # fmt: skip
def test_a_comparison_of_no_sense_is_a_sentence(served, chosen):
    answer = call(served, "poll_compare", field_runs=chosen, seen="{", **CURVES)
    assert answer.status_code == 200
    assert re.search("Choose 2 to 8 runs|No run", answer.text)


def test_a_comparison_is_sent_once(served, served_runs):
    for name in ("one-owl", "two-toad"):
        served_runs.add(name, epochs=2, ended="completed")
    ids = [run.id for run in list_run_dirs(served.settings.runs_root)]
    values = {"field_runs": json.dumps({"runs": ids}), **CURVES}
    event = next(fn for fn in served.page.fns.values() if fn.api_name == "poll_compare")
    at = [part.elem_id for part in event.outputs].index("seen")
    first = call(served, "poll_compare", seen="{}", **values).json()["data"]
    again = call(served, "poll_compare", seen=first[at], **values)
    assert len(again.content) < 1000
    assert all(value in SKIPPED for value in again.json()["data"])


def test_a_start_that_went_well_keeps_its_request_id(served, monkeypatch):
    monkeypatch.setattr(handlers, "start", lambda *_: RunDir(Path("r")))
    answer = call(served, "start", **FORM, token=served.settings.token)
    go, request_id = answer.json()["data"]
    assert go == "r"
    assert request_id in SKIPPED


def test_no_run_stops_without_the_token(served):
    run = create_run_dir(served.settings.runs_root)
    call(served, "stop", run_id=run.id, token="guess")
    assert not run.requested("stop")
    call(served, "stop", run_id=run.id, token=served.settings.token)
    assert run.requested("stop")
    shutil.rmtree(run.path)


def test_a_run_under_way_records_steps_only_with_the_token(served, told, make_spec):
    run = create_run_dir(served.settings.runs_root)
    run.write(run.spec, make_spec("single"))
    for run_id, token in ((run.id, "guess"), (run.name, served.settings.token)):
        call(served, "profile", run_id=run_id, token=token)
        assert told.pop()
        assert not run.requested("profile")
    call(served, "profile", run_id=run.id, token=served.settings.token)
    assert asked_steps(run) == 5
    shutil.rmtree(run.path)


@pytest.mark.parametrize("token", ["", "guess", None])
def test_no_check_begins_or_ends_without_the_token(served, monkeypatch, told, token):
    asked = []
    for name in ("start", "stop"):
        monkeypatch.setattr(served.settings.checks, name, asked.append)
    call(served, "check_data", **FORM, token=token)
    call(served, "stop_check", check_key="some-key", token=token)
    assert asked == []
    call(served, "check_data", **FORM, token=served.settings.token)
    call(served, "stop_check", check_key="some-key", token=served.settings.token)
    assert asked == [parse_data("products:ci"), "some-key"]


@pytest.fixture
def tried(finished, monkeypatch):
    """The run with a checkpoint, though of no model."""
    (finished.checkpoints / "best").mkdir()
    (finished.checkpoints / "best" / "model.safetensors").write_bytes(b"")
    return finished


def test_no_picture_is_tried_or_taken_without_the_token(served, tried, monkeypatch, told):
    taken = []
    monkeypatch.setattr(served.settings.samples, "start", lambda run: taken.append(run.id))
    for name, values in (("take", {}), ("try_sample", {"samples": "0:1"})):
        call(served, name, run_id=tried.id, token="guess", **values)
        call(served, name, run_id="../../etc", token=served.settings.token, **values)
    assert taken == []
    assert [text.split(":")[0] for text in told] == [
        "This page is older than the server", "There is no run '../../etc' with a checkpoint here",
    ] * 2  # fmt: skip
    call(served, "take", run_id=tried.id, token=served.settings.token)
    assert taken == [tried.id]


@pytest.mark.parametrize("number", ["", "7", "-1", "x:y", "0x1:2"])
def test_only_a_picture_that_was_offered_is_tried(served, tried, monkeypatch, told, number):
    started = []
    monkeypatch.setattr(served.settings.trials, "start", lambda *them: started.append(them))
    call(served, "try_sample", run_id=tried.id, token=served.settings.token, samples=number)
    assert started == []
    assert len(told) == 1


def test_a_path_that_was_not_uploaded_is_not_read(served, tried, tmp_path):
    """A stranger with the token names a file of this machine as if it were an upload."""
    secret = tmp_path / "secret.png"
    secret.write_bytes(b"secret")
    file = {"path": str(secret), "meta": {"_type": "gradio.FileData"}}
    answer = call(
        served, "try_uploads", run_id=tried.id, token=served.settings.token, field_upload=[file]
    )
    assert answer.status_code != 200
    assert secret.read_bytes() == b"secret"


def test_only_the_run_that_is_named_is_stopped(served, told):
    run = create_run_dir(served.settings.runs_root)
    for run_id in ("", None, "last", run.name, run.id[:-1], f"../runs/{run.id}"):
        answer = call(served, "stop", run_id=run_id, token=served.settings.token)
        assert answer.json()["data"][0] in SKIPPED
        assert told.pop().startswith(f"There is no run {run_id or ''!r}")
        assert not run.requested("stop")
    shutil.rmtree(run.path)


def test_a_tick_is_small_when_nothing_changed(served, finished, monkeypatch):
    # Its answer would come at some moment between these ticks, and is a change.
    monkeypatch.setattr(
        served.settings.consultations, "state", lambda run_id: ConsultState("running")
    )
    seen = poll(served, run_id=finished.id)["seen"]
    values = POLL | {"run_id": finished.id, "seen": seen, "field_sort": "newest"}
    first = call(served, "tick_run", **values)
    assert first.json()["data"][1]["value"] >= PERIOD_S, "a new page is told how often to ask"
    quiet = call(served, "tick_run", **values)
    assert quiet.json()["data"][0] in SKIPPED
    assert len(quiet.request.content) <= 512
    assert len(quiet.content) <= 512
    with finished.console.open("a") as stream:
        stream.write("the second line\n")
    pulses = {call(served, "tick_run", **values).json()["data"][0] for _ in range(2)}
    assert len(pulses) == 2, "a pulse that came before would not make the page ask again"
    assert set(poll(served, **values)) == {"log", "seen"}


def told_of_the_run(answer):
    """Without the doctor's line, which comes when a process in the background has ended."""
    return {name: value for name, value in answer.items() if name not in ("doctor-line", "seen")}


@pytest.mark.parametrize("seen", ["", "nonsense", "[]", "0123456789abcdef", "x" * 100_000, 7])
def test_a_cursor_from_nowhere_means_send_all(served, finished, seen):
    everything = poll(served, run_id=finished.id)
    assert {"run-head", "tiles", "epochs", "step", "curves", "run-list"} <= set(everything)
    place = {"run": finished.id, "key": "console", "start": 0, "offset": 15}
    assert everything["log"] == {"text": "the first line\n", "reset": True, **place}
    again = poll(served, run_id=finished.id, seen=seen)
    assert told_of_the_run(again) == told_of_the_run(everything)


def test_a_token_of_another_run_means_send_all(served, served_runs, finished):
    seen = poll(served, run_id=served_runs.add("other-otter").id)["seen"]
    again = poll(served, run_id=finished.id, seen=seen)
    assert told_of_the_run(again) == told_of_the_run(poll(served, run_id=finished.id))


def test_a_piece_that_is_missing_is_sent_again(served, finished):
    everything = poll(served, run_id=finished.id)
    values = POLL | {"run_id": finished.id, "seen": everything["seen"]}
    found = told_of_the_run(poll(served, "resend", **values))
    assert found == {name: everything[name] for name in ("log", "curves")}


@pytest.mark.parametrize("run_id", ["../../etc", "20260102-030405-no-run", "\x00"])
def test_a_run_from_nowhere_is_a_notice_beside_the_list(served, finished, run_id):
    found = poll(served, run_id=run_id)
    assert set(found) == {"notice", "seen"} | LIST
    assert "No run" in found["notice"]
    assert finished.name in found["run-list"]


def test_a_run_of_a_newer_ringside_is_a_notice_beside_the_list(served, served_runs, finished):
    run = served_runs.add("new-newt")
    run.spec.write_bytes(run.spec.read_bytes().replace(b'"format": 1', b'"format": 99'))
    found = poll(served, run_id=run.id)
    assert set(found) == {"notice", "seen"} | LIST
    assert "update Ringside" in found["notice"]
    assert finished.name in found["run-list"]
    assert poll(served, run_id=finished.id, seen=found["seen"])["notice"] == ""


def test_a_busy_port_is_a_sentence(served, tmp_path):
    port = int(served.url.rpartition(":")[2])
    with pytest.raises(RingsideError, match=f"Port {port} on 127.0.0.1 is in use"):
        open_server(runs_root=tmp_path, port=port)


@pytest.mark.parametrize("port", [0, -1, 65536, 100_000])
def test_a_port_that_is_none_is_a_sentence(tmp_path, port):
    with pytest.raises(RingsideError, match=f"no port {port}: choose one from 1 to 65535"):
        open_server(runs_root=tmp_path / "runs", port=port)
    assert not (tmp_path / "runs").exists()


def test_a_port_that_is_taken_at_the_last_moment_is_left_for_the_next(tmp_path, monkeypatch):
    """Two servers that start together look at the same ports."""
    look, taken = server._free_port, []

    def look_and_lose(host, port):
        found = look(host, port)
        if len(taken) < 2:  # Once to refuse a wrong one, once to take it.
            taken.append(socket.create_server((host, found)))
        return found

    monkeypatch.setattr(server, "_free_port", look_and_lose)
    opened = open_server(runs_root=tmp_path)
    try:
        lost = {one.getsockname()[1] for one in taken}
        assert int(opened.url.rpartition(":")[2]) not in lost
        assert len(lost) == 2
    finally:
        opened.close()
        for one in taken:
            one.close()


def test_without_a_port_the_next_free_one():
    with socket.socket() as taken:
        # A server that ended a moment ago leaves the port in TIME_WAIT, which is not taken.
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            taken.bind(("127.0.0.1", server.FIRST_PORT))
            taken.listen()
        except OSError:
            pass  # somebody else holds it already, which is as good
        assert server._free_port("127.0.0.1", None) > server.FIRST_PORT


def test_a_host_that_is_none():
    with pytest.raises(RingsideError, match="no address of this machine"):
        server._free_port("no.such.host.invalid", None)


def test_nothing_is_left_to_gradio_s_environment(served):
    arguments = server.launch_arguments(served.page, "127.0.0.1", 7860, Login())
    closed = {name: arguments[name] for name in ("share", "mcp_server", "ssr_mode", "run_history")}
    assert not any(closed.values())
    assert arguments["enable_monitoring"] is False
    assert arguments["allowed_paths"] == []
    assert arguments["server_name"] == "127.0.0.1"


def test_the_server_never_loads_torch(tmp_path):
    program = (
        "import sys, pathlib; from app.page import PageSettings, build; "
        "build(PageSettings(pathlib.Path(sys.argv[1]))); "
        "print([m for m in ('torch', 'torchvision', 'accelerate', 'timm') if m in sys.modules])"
    )
    folder = Path(__file__).parents[2]
    found = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path)],
        cwd=folder, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert found.stdout.strip() == "[]"
