"""Every endpoint over raw HTTP: who may call it, what it makes of nonsense, and what is on record.

A stranger needs no browser: the names, numbers and fields of all events stand in /config.
"""

from __future__ import annotations

import itertools
import json
import logging
import os
import shutil
import socket
from contextlib import suppress

import httpx
import pytest

from app.page.roles import acting
from tests.app.caller import PREDICT, Caller, as_json, tree

ACTS = {
    "start", "start_baseline", "start_after_baseline", "check_data", "stop_check", "try_uploads",
    "try_sample", "take", "stop", "after_epoch", "checkpoint", "resume", "dump_stacks", "profile",
    "check_machine", "measure_run", "stop_measuring", "take_traces", "clean_up", "save_notes",
    "archive", "delete_run", "move_in_queue", "pause_queue", "resume_queue",
    "save_form", "clone_preset", "rename_preset", "delete_preset", "bring_back", "save_preset",
    "save_import", "make_playbook", "playbook_of_run", "playbook_of_runs", "import_playbook",
    "unpack_playbook", "remove_playbook", "replay_playbook", "time_presets", "stop_timing",
}  # fmt: skip
"""What changes something; a new one has to be named here."""

ASKS = {"preview", "ask_to_measure", "ask_to_delete"}
"""What may take the token without changing anything: it shows or asks."""

NEEDS_NO_RUN = {
    "check_machine", "stop_measuring", "stop_timing", "clean_up", "pause_queue", "resume_queue",
}  # fmt: skip
"""What the token alone sets off, whatever the fields say."""

DEEP = "[" * 400 + "]" * 400
HOSTILE = {
    "null": "null",
    "true": "true",
    "negative": "-1",
    "huge number": "1" + "0" * 400,
    "not a number": "NaN",
    "infinite": "-Infinity",
    "a path upwards": '"../../../../etc/passwd"',
    "an absolute path": '"/etc/passwd"',
    "a zero byte": '"\\u0000"',
    "half a character": '"\\ud800"',
    "a long string": json.dumps("x" * 200_000),
    "html": '"<img src=x onerror=alert(1)><script>alert(1)</script>"',
    "a list": '["x", null, -1]',
    "an object": '{"__class__": "os.system", "a": [{"b": {}}]}',
    "deep": DEEP,
    "a file of the server": '{"path": "/etc/passwd", "meta": {"_type": "gradio.FileData"}}',
    "files of the server": '[{"path": "/etc/passwd", "meta": {"_type": "gradio.FileData"}}]',
}

EVERYWHERE = {"null", "a path upwards", "a zero byte", "a long string", "deep"}


@pytest.fixture(scope="module")
def client(served):
    headers = {"content-type": "application/json"}
    with httpx.Client(base_url=served.url, timeout=30, headers=headers) as opened:
        yield opened


@pytest.fixture(scope="module")
def caller(served):
    return Caller(served)


@pytest.fixture
def run(served, runs_at):
    made = runs_at(served.settings.runs_root).add("done-dove", epochs=2, ended="completed")
    yield made
    shutil.rmtree(made.path, ignore_errors=True)


# --- who may do what --------------------------------------------------------------------------


def test_what_changes_something_is_known(served):
    assert {event.api_name for event in acting(served.page)} == ACTS


def test_what_changes_something_takes_the_token_and_nothing_else_does(caller):
    takes = {name for name in caller.events if "token" in caller.inputs(name)}
    assert takes - ASKS == ACTS


@pytest.mark.parametrize("token", ["", "guess"])
def test_one_line_for_each_attempt_whatever_comes_of_it(caller, served, run, told, caplog, token):
    """Without the token and with a wrong one: refused, one line, and nothing secret in it."""
    caplog.set_level(logging.INFO, logger="ringside.audit")
    before = tree(served.settings.runs_root)
    for event in acting(served.page):
        if event.api_name == "try_uploads":
            continue  # without a file there is nothing to refuse; see test_server
        caplog.clear()
        told.clear()
        answer = caller.call(event.api_name, token=token, run_id=run.id, delete_asked=run.id)
        assert answer.status_code == 200, event.api_name
        stale = "This page is older than the server: reload it, then try again."
        assert (event.api_name, told) == (event.api_name, [stale])
        (line,) = (record.getMessage() for record in caplog.records)
        what = event.fn.acts
        assert line.startswith(
            f"audit who=local from=127.0.0.1 what={json.dumps(what) if ' ' in what else what}"
        )
        assert 'outcome="This page is older' in line
        assert served.settings.token not in line
        assert "guess" not in line
    assert tree(served.settings.runs_root) == before


def test_a_deed_that_is_done_has_one_line_too(caller, served, run, told, caplog):
    caplog.set_level(logging.INFO, logger="ringside.audit")
    caller.call("delete_run", token=served.settings.token, run_id=run.id, delete_asked=run.id)
    (line,) = (record.getMessage() for record in caplog.records)
    assert line == f"audit who=local from=127.0.0.1 what=delete about={run.id} outcome=done"


# --- nonsense ---------------------------------------------------------------------------------


@pytest.mark.parametrize("value", HOSTILE)
def test_nonsense_in_every_field_of_every_endpoint(caller, client, served, run, told, value):
    """With the token, so that it gets as far as it can; some of it only where it could do harm."""
    before = tree(served.settings.runs_root)
    token = json.dumps(served.settings.token)
    names = caller.events.keys() if value in EVERYWHERE else ACTS
    for name in names - NEEDS_NO_RUN:
        values = [token if part == "token" else HOSTILE[value] for part in caller.inputs(name)]
        answer = client.post(PREDICT, content=caller.body(name, *values))
        assert answer.status_code in (200, 400, 413, 422), (name, answer.text[:200])
        assert "Traceback" not in answer.text
        assert "root:" not in answer.text
        if answer.status_code == 400:
            assert answer.text == "The server cannot use these values; nothing was changed.\n"
    assert tree(served.settings.runs_root) == before
    assert client.get("/runs").status_code == 200


def test_too_few_and_too_many_values(caller, client, served, told):
    before = tree(served.settings.runs_root)
    for name in caller.events:
        for num_values in {0, len(caller.inputs(name)) + 3} - {len(caller.inputs(name))}:
            answer = client.post(PREDICT, content=caller.body(name, *["null"] * num_values))
            assert answer.status_code in (200, 400)
    assert tree(served.settings.runs_root) == before


@pytest.mark.parametrize(
    "text",
    [
        "", "{", "[]", "null", '{"data": null, "fn_index": 0}', '{"data": {}, "fn_index": 0}',
        '{"data": [], "fn_index": -1, "session_hash": "x"}',
        '{"data": [], "fn_index": 99999, "session_hash": "x"}',
        '{"data": [], "fn_index": "start", "session_hash": "x"}',
        '{"data": [], "fn_index": 1e400, "session_hash": "x"}',
        '{"data": [], "fn_index": 0, "session_hash": {"a": 1}}',
        '{"data": [], "fn_index": 0, "session_hash": "../../x", "event_id": "../../x"}',
        '{"data": [], "fn_index": 0, "session_hash": "x", "trigger_id": [1], "batched": true}',
        '{"data": [' + DEEP + '], "fn_index": 0, "session_hash": "x"}',
    ],
    ids=itertools.count(),
)  # fmt: skip
@pytest.mark.parametrize("path", ["run/predict", "run/nope", "queue/join", "cancel", "reset"])
def test_a_body_of_no_sense(client, path, text):
    answer = client.post(f"/gradio_api/{path}", content=text.encode())
    assert answer.status_code in (200, 400, 404, 422)
    assert "Traceback" not in answer.text
    assert client.get("/").status_code == 200


def test_a_body_that_is_too_large(client):
    answer = client.post(PREDICT, content=json.dumps({"data": ["x" * 1_000_001]}))
    assert answer.status_code == 413
    assert answer.text == "Refused: a request may hold at most 1 MB.\n"

    def pieces():
        for _ in range(30):
            yield b"x" * 100_000

    answer = client.post(PREDICT, content=pieces())
    assert answer.status_code == 413
    assert client.get("/").status_code == 200


def test_a_stranger_s_session_gives_nothing_away(caller, client, run, told):
    """What is asked in one session is answered there and nowhere else."""
    values = [as_json(run.id if part == "run-id" else None) for part in caller.inputs("preview")]
    body = caller.body("preview", *values, session="mine")
    assert client.post("/gradio_api/queue/join", content=body).status_code == 200
    for session in ("other", "", "mine%00", "../mine"):
        url = f"/gradio_api/queue/data?session_hash={session}"
        lines = []
        with suppress(httpx.RemoteProtocolError), client.stream("GET", url) as stream:
            lines += itertools.islice(stream.iter_lines(), 3)
        assert "process_completed" not in "".join(lines)


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"host": "evil.example"}, 403),
        ({"origin": "http://evil.example"}, 403),
        ({"origin": "null"}, 403),
        ({"sec-fetch-site": "cross-site"}, 403),
        ({"x-forwarded-host": "evil.example"}, 403),
    ],
)
def test_another_site_reaches_no_endpoint(caller, told, headers, status):
    for name in caller.events:
        answer = caller.call(name, headers=headers)
        assert answer.status_code == status
        assert len(answer.text.splitlines()) == 1
    assert told == []


# --- Gradio's own routes ----------------------------------------------------------------------


def test_only_pictures_of_a_size_come_in(client, served, tmp_path):
    def upload(content, name="x.png"):
        return httpx.post(f"{served.url}/gradio_api/upload", files={"files": (name, content)})

    assert upload(b"x" * 20_000_001).status_code == 413
    (path,) = upload(b"x", name="../../../.ssh/authorized_keys").json()
    assert os.path.realpath(path).startswith(os.path.realpath(served.page.GRADIO_CACHE))
    assert client.post("/gradio_api/upload", content=b"nonsense").status_code == 400
    announced = client.build_request("POST", "/gradio_api/upload", content=b"x" * 10)
    announced.headers["content-length"] = "200000000"
    with socket.create_connection(("127.0.0.1", announced.url.port)) as link:
        lines = [f"{name}: {value}" for name, value in announced.headers.items()]
        link.sendall("\r\n".join(["POST /gradio_api/upload HTTP/1.1", *lines, "", ""]).encode())
        assert link.recv(100).startswith(b"HTTP/1.1 413")


def test_what_was_uploaded_is_never_shown_as_a_page(client, served):
    script = b"<script>alert(1)</script>"
    for name in ("x.html", "x.svg", "x.xhtml", "x.js", "x"):
        upload = f"{served.url}/gradio_api/upload"
        (path,) = httpx.post(upload, files={"files": (name, script)}).json()
        answer = client.get(f"/gradio_api/file={path}")
        assert answer.headers["content-disposition"].startswith("attachment")
        assert answer.headers["x-content-type-options"] == "nosniff"


def test_no_file_of_the_server_is_given_away(client, served, run, tmp_path):
    (tmp_path / ".env").write_text("secret")
    cache = served.page.GRADIO_CACHE
    for path in (
        "/etc/passwd", str(tmp_path / ".env"), str(run.spec), "app/page/server.py", ".git/config",
        f"{cache}/../../etc/passwd", f"{cache}/%2e%2e/%2e%2e/etc/passwd", "%00", "~/.bashrc",
        "//etc/passwd", f"{cache}/.env",
    ):  # fmt: skip
        answer = client.get(f"/gradio_api/file={path}")
        assert answer.status_code in (400, 403, 404), path
        assert "secret" not in answer.text
