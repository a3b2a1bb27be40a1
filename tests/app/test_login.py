"""Who may come in: passwords, the brake on guessing, and what each role gets, over raw HTTP."""

from __future__ import annotations

import itertools
import logging
import os
import re
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import httpx
import psutil
import pytest

from app.brake import FREE_ATTEMPTS, MAX_ADDRESSES, MAX_WAIT_S, TOGETHER, Brake
from app.login import OPERATOR, VIEWER, Login, login_for
from app.page import open_server, server
from app.page.roles import acting, hide_from_viewers
from app.views.child import Child
from ringside.errors import RingsideError
from ringside.shelf.notes import NOTHING, read_notes
from tests.app.caller import Caller

RIGHT = {OPERATOR: "correct horse battery", VIEWER: "staple and a lens"}


# --- passwords --------------------------------------------------------------------------------


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "::1"])
def test_this_machine_alone_needs_no_login(host):
    assert not login_for(host).is_needed


def test_beyond_it_a_password_is_made_up_and_told_once():
    first, second = login_for("0.0.0.0"), login_for("0.0.0.0")
    assert first.passwords.keys() == {OPERATOR}
    password = first.passwords[OPERATOR]
    assert len(password) >= 20
    assert password != second.passwords[OPERATOR]
    (line,) = first.lines()
    assert line.endswith(password)
    assert password not in repr(first)


def test_given_passwords_are_used_and_not_told(monkeypatch, tmp_path):
    monkeypatch.setenv("RINGSIDE_PASSWORD", RIGHT[OPERATOR])
    file = tmp_path / "viewer"
    file.write_text(RIGHT[VIEWER] + "\nnot this\n")
    login = login_for("127.0.0.1", view_password_file=file)
    assert login.passwords == RIGHT
    assert login.lines() == []
    monkeypatch.setenv("RINGSIDE_VIEW_PASSWORD", RIGHT[VIEWER])
    assert login_for("0.0.0.0").passwords == RIGHT


def test_with_viewers_everybody_has_a_password():
    login = login_for("127.0.0.1", viewers=True)
    assert login.made_up == {OPERATOR, VIEWER}
    assert len(set(login.passwords.values())) == 2


@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0"])
@pytest.mark.parametrize("variable", ["RINGSIDE_PASSWORD", "RINGSIDE_VIEW_PASSWORD"])
def test_a_short_password_is_refused_before_anything_is_served(
    monkeypatch, tmp_path, host, variable
):
    monkeypatch.setenv(variable, "elevenchars")
    with pytest.raises(RingsideError, match=rf"too short: .*at least 12.*{variable}"):
        open_server(runs_root=tmp_path / "runs", host=host)
    assert not (tmp_path / "runs").exists()


def test_what_cannot_be_a_password_file(tmp_path):
    with pytest.raises(RingsideError, match=r"cannot be read from .*nope: No such file"):
        login_for("127.0.0.1", view_password_file=tmp_path / "nope")
    (tmp_path / "bytes").write_bytes(b"\xff\xfe")
    with pytest.raises(RingsideError, match="no UTF-8"):
        login_for("127.0.0.1", view_password_file=tmp_path / "bytes")
    (tmp_path / "empty").touch()
    with pytest.raises(RingsideError, match="too short"):
        login_for("127.0.0.1", view_password_file=tmp_path / "empty")


def test_a_viewer_does_not_come_in_as_an_operator(monkeypatch):
    monkeypatch.setenv("RINGSIDE_PASSWORD", RIGHT[OPERATOR])
    monkeypatch.setenv("RINGSIDE_VIEW_PASSWORD", RIGHT[OPERATOR])
    with pytest.raises(RingsideError, match="are the same"):
        login_for("127.0.0.1")
    login = Login(RIGHT)
    for user, password in (
        (OPERATOR, RIGHT[VIEWER]),
        (VIEWER, RIGHT[OPERATOR]),
        ("", ""),
        ("root", ""),
    ):
        assert not login.knows(user, password)
    assert not login.knows(OPERATOR, "\udcff")
    assert all(login.knows(*pair) for pair in RIGHT.items())


def test_nobody_is_served_beyond_this_machine_without_a_login(tmp_path):
    with pytest.raises(RingsideError, match="needs a login"):
        open_server(runs_root=tmp_path, host="0.0.0.0", login=Login())


def test_nothing_that_the_page_starts_inherits_a_password(monkeypatch):
    for name in ("RINGSIDE_PASSWORD", "RINGSIDE_VIEW_PASSWORD"):
        monkeypatch.setenv(name, RIGHT[OPERATOR])
    child = Child([sys.executable, "-c", "import os; print(*os.environ)"])
    names = b"".join(child.lines()).split()
    child.finish()
    assert b"PATH" in names
    assert not [name for name in names if b"PASSWORD" in name]


# --- the brake --------------------------------------------------------------------------------


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def brake(clock):
    return Brake(clock)


def test_whoever_is_wrong_too_often_waits_longer_each_time(brake, clock):
    assert [brake.admit("10.0.0.7") for _ in range(FREE_ATTEMPTS)] == [0.0] * FREE_ATTEMPTS
    waits = []
    for _ in range(12):
        waits.append(brake.admit("10.0.0.7"))
        clock.now += waits[-1]
        assert brake.admit("10.0.0.7") == 0.0
    assert waits[:5] == [1, 2, 4, 8, 16]
    assert waits[-1] == MAX_WAIT_S
    assert brake.admit("10.0.0.8") == 0.0


def test_waiting_itself_does_not_make_it_longer(brake, clock):
    for _ in range(FREE_ATTEMPTS):
        brake.admit("10.0.0.7")
    assert {brake.admit("10.0.0.7") for _ in range(100)} == {1.0}
    clock.now += 3600.5
    assert brake.admit("10.0.0.7") == 0.0


def test_coming_in_takes_back_one_attempt_and_no_more(brake, clock):
    """Else a viewer, who can always come in, could guess the operator's password for ever."""
    num_guesses = 0
    for _ in range(2000):
        clock.now += 1.0
        if brake.admit("10.0.0.7") == 0.0:
            num_guesses += 1
            clock.now += 1.0
            if brake.admit("10.0.0.7") == 0.0:
                brake.came_in("10.0.0.7")
    assert num_guesses < 40


def test_many_addresses_have_a_limit_together_but_not_one_that_came_in(brake, clock):
    brake.admit("10.0.0.1")
    brake.came_in("10.0.0.1")
    admitted = sum(brake.admit(f"10.1.{n // 250}.{n % 250}") == 0.0 for n in range(1000))
    assert admitted == TOGETHER - 1
    assert brake.admit("10.2.0.1") > 0
    assert brake.admit("10.0.0.1") == 0.0
    clock.now += 2.0
    assert brake.admit("10.2.0.1") == 0.0


def test_an_ipv6_network_is_one_address(brake):
    waits = [brake.admit(f"2001:db8::{n:x}") for n in range(FREE_ATTEMPTS + 1)]
    assert waits[-1] > 0
    assert brake.admit("2001:db8:0:1::1") == 0.0


def test_ipv4_in_the_clothes_of_ipv6_is_an_address_of_its_own(brake):
    """A server on `::` sees IPv4 so: one who guesses must not lock all others out."""
    for _ in range(FREE_ATTEMPTS):
        brake.admit("::ffff:10.0.0.7")
    assert brake.admit("10.0.0.7") > 0
    assert brake.admit("::ffff:10.0.0.8") == 0.0


def test_memory_is_bounded(brake, clock):
    for n in range(MAX_ADDRESSES + 500):
        clock.now += 2.0
        brake.admit(f"10.{n // 65536}.{n // 256 % 256}.{n % 256}")
    assert len(brake._guessers) == MAX_ADDRESSES


def test_many_at_once_gain_nothing(brake):
    barrier = threading.Barrier(20)

    def attempt(_):
        barrier.wait()
        return brake.admit("10.0.0.7") == 0.0

    with ThreadPoolExecutor(20) as pool:
        assert sum(pool.map(attempt, range(20))) == FREE_ATTEMPTS


# --- over HTTP --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    opened = open_server(runs_root=tmp_path_factory.mktemp("runs"), login=Login(RIGHT))
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def come_in(served):
    """A client of a user who has logged in."""
    clients = []

    def open_client(user):
        client = httpx.Client(base_url=served.url)
        answer = client.post("/login", data={"username": user, "password": RIGHT[user]})
        assert answer.status_code == 200
        clients.append(client)
        return client

    yield open_client
    for client in clients:
        client.close()


@pytest.fixture(scope="module")
def call(served):
    """Call an event as a client: `call(viewer, "stop", run_id=...)`, answers by element id."""
    caller = Caller(served)
    return lambda client, name, **values: caller.found(name, client, **values)


def test_a_stranger_gets_the_login_and_nothing_else(served):
    page = httpx.get(served.url)
    assert page.status_code == 200
    assert "auth_required" in page.text
    assert served.settings.token not in page.text
    assert str(served.settings.runs_root) not in page.text
    for path in (
        "config",
        "gradio_api/info",
        "gradio_api/queue/status",
        "gradio_api/file=/etc/hosts",
    ):
        assert httpx.get(f"{served.url}/{path}").status_code == 401
    for path in ("run/predict", "queue/join", "upload"):
        body = {"data": [], "fn_index": 0, "session_hash": "x"}
        assert httpx.post(f"{served.url}/gradio_api/{path}", json=body).status_code == 401


def test_the_token_is_the_operator_s_alone(served, come_in, call):
    operator, viewer = come_in(OPERATOR), come_in(VIEWER)
    names = [e.api_name for e in served.page.fns.values() if e.api_name.startswith("token_of_")]
    assert len(names) == len({path for path, *_ in served.page.pages})
    for name in names:
        assert call(operator, name)["token"] == served.settings.token
        found = call(viewer, name)
        assert found["token"] == ""
        assert "You look on as a viewer" in found["viewer-note"]
    for path in ("/", "/runs", "/compare", "/doctor", "/config"):
        assert served.settings.token not in viewer.get(path).text


def test_a_viewer_changes_nothing_even_with_the_token(served, come_in, call, told, caplog, runs_at):
    run = runs_at(served.settings.runs_root).add("done-dove", epochs=2, ended="completed")
    caplog.set_level(logging.INFO, logger="ringside.audit")
    viewer = come_in(VIEWER)
    before = sorted(served.settings.runs_root.rglob("*"))
    caplog.clear()
    names = [event.api_name for event in acting(served.page)]
    for name in names:
        call(
            viewer, name, run_id=run.id, token=served.settings.token, delete_asked=run.id,
            field_tags="x", field_source="products:ci", field_preset="ddp", request_id="one",
        )  # fmt: skip
    assert len(names) >= 15
    assert told == ["You look on as a viewer: only an operator can change something here."] * len(
        names
    )
    assert sorted(served.settings.runs_root.rglob("*")) == before
    assert read_notes(run) == NOTHING
    lines = [r.getMessage() for r in caplog.records if "who=viewer" in r.getMessage()]
    assert len(lines) == len(names)
    assert all("from=127.0.0.1" in line and "You look on" in line for line in lines)
    polled = call(viewer, "poll_run", run_id=run.id, seen="{}", field_log="console")
    assert "done-dove" in str(polled)


def test_a_viewer_puts_no_file_on_the_server(come_in):
    """Uploads go to Gradio itself, before any handler: they could fill the disk."""
    files = {"files": ("x.png", b"x")}
    refused = come_in(VIEWER).post("/gradio_api/upload", files=files)
    assert refused.status_code == 403
    assert refused.text.startswith("You look on as a viewer")
    assert come_in(OPERATOR).post("/gradio_api/upload", files=files).status_code == 200


def test_a_viewer_looks_into_no_folder_of_the_server(come_in, call, tmp_path):
    folder = tmp_path / "holiday" / "cat"
    folder.mkdir(parents=True)
    form = {"field_source": "folder", "field_folder": str(tmp_path), "field_preset": "ddp",
            "field_model": "resnet10t", "field_epochs": 1}  # fmt: skip
    assert "holiday" not in str(call(come_in(VIEWER), "data", **form))
    known = call(
        come_in(VIEWER), "data", **form | {"field_source": "products:ci", "field_folder": ""}
    )
    assert "Synthetic" in str(known)


def test_what_acts_is_hidden_from_viewers(served):
    rule = hide_from_viewers(served.page)
    for name in ("start", "stop", "save-notes", "clean-up", "measure-now"):
        assert f"#{name}," in rule


def test_guessing_over_http_is_slowed_down_and_on_record(tmp_path, caplog, clock, monkeypatch):
    caplog.set_level(logging.INFO, logger="ringside.audit")
    monkeypatch.setattr(server, "Brake", lambda: Brake(clock))
    opened = open_server(runs_root=tmp_path, login=Login(RIGHT))
    typed = "a password typed as a name"
    wrong = {"username": typed, "password": "x"}
    try:
        with httpx.Client(base_url=opened.url) as client:
            answers = [client.post("/login", data=wrong) for _ in range(FREE_ATTEMPTS + 3)]
            right = {"username": OPERATOR, "password": RIGHT[OPERATOR]}
            too_soon = client.post("/login", data=right)
            clock.now += 1.0
            in_time = client.post("/login", data=right)
    finally:
        opened.close()
    assert [a.status_code for a in answers] == [400] * FREE_ATTEMPTS + [429] * 3
    assert int(answers[-1].headers["retry-after"]) == 1
    assert answers[-1].text == "Too many wrong passwords: try again in 1 s.\n"
    assert (too_soon.status_code, in_time.status_code) == (429, 200)
    lines = [r.getMessage() for r in caplog.records if 'what="log in"' in r.getMessage()]
    assert len(lines) == FREE_ATTEMPTS + 5
    assert lines[-1].endswith("outcome=done")
    assert not [line for line in lines if typed in line or RIGHT[OPERATOR] in line]


def test_a_made_up_password_is_told_once_and_stored_nowhere(tmp_path):
    """The command, in a process of its own: its output holds the password, no file does."""
    environment = os.environ | {"RINGSIDE_RUNS": str(tmp_path / "runs"), "HOME": str(tmp_path)}
    program = "import sys; from app.cli import main; main(sys.argv[1:])"
    argv = [sys.executable, "-c", program, "ui", "--host", "0.0.0.0", "--viewers"]
    with subprocess.Popen(
        argv, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        try:
            told = "".join(itertools.takewhile(lambda line: "Ringside is at" not in line,
                                               iter(process.stdout.readline, "")))  # fmt: skip
            users = dict(re.findall(r"^Password of the user (\w+), .* (\S+)$", told, re.MULTILINE))
            url = f"http://127.0.0.1:{_port_of(process.pid)}/login"
            answers = [
                httpx.post(url, data={"username": user, "password": users[other]}).status_code
                for user, other in itertools.product((OPERATOR, VIEWER), repeat=2)
            ]
        finally:
            process.terminate()
        rest = process.stdout.read()
    assert answers == [200, 400, 400, 200]
    assert users.keys() == {OPERATOR, VIEWER}
    for password in users.values():
        assert told.count(password) == 1
        assert password not in rest
        for path in tmp_path.rglob("*"):
            assert not path.is_file() or password.encode() not in path.read_bytes()


def _port_of(pid):
    (listener,) = (
        connection.laddr.port
        for connection in psutil.Process(pid).net_connections("tcp")
        if connection.status == psutil.CONN_LISTEN
    )
    return listener
