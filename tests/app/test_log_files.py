"""The logs of a run over GET: whole, searched, and a piece at a time; and who gets none."""

from __future__ import annotations

import shutil

import httpx
import pytest

from app.login import Login
from app.page import open_server
from tests.app.serving import free_port

PASSWORD = "correct horse battery"


def serve(root, **details):
    return open_server(runs_root=root, port=free_port(), **details)


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    opened = serve(tmp_path_factory.mktemp("runs"))
    yield opened
    opened.close()


@pytest.fixture
def run(served, runs_at):
    found = runs_at(served.settings.runs_root).add("log-lark")
    found.console.write_text("first\n<script>alert(1)</script>\n[default1]:last\n")
    yield found
    shutil.rmtree(found.path)


@pytest.fixture
def get(served, run):
    """Ask for something below the address of the run's logs."""
    return lambda path: httpx.get(f"{served.url}/log/{run.id}/{path}")


def test_the_whole_file_is_saved_and_never_shown_as_a_page(get, run):
    answer = get("console")
    assert answer.content == run.console.read_bytes()
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"
    named = f'attachment; filename="{run.id}.console.log"'
    assert answer.headers["content-disposition"] == named
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert "default-src 'self'" in answer.headers["content-security-policy"]


def test_a_rank_s_own_log(get, run):
    folder = run.logs / "none_abc" / "attempt_0" / "1"
    folder.mkdir(parents=True)
    (folder / "stderr.log").write_text("from 1\n")
    assert get("1.stderr").text == "from 1\n"
    assert get("0.stderr").status_code == 404


def test_lines_that_are_found_and_what_stands_around_them(get):
    found = get("console/find?words=ALERT").json()
    assert found["found"] == [{"offset": 6, "line": 2, "text": "<script>alert(1)</script>"}]
    assert found["sentence"] == "One line of the whole file holds it."
    assert get("console/find?words=nothing").json()["sentence"].startswith("No line")
    assert get("console/find").json()["found"] == []
    assert get("console/before?offset=6").json() == {"text": "first\n", "start": 0, "offset": 6}
    assert get("console/around?offset=6").json()["text"].endswith("[rank 1] last\n")


@pytest.mark.parametrize("offset", ["", "-1", "x", "1e3", "٣", "9" * 40])
def test_an_offset_of_no_sense(get, offset):
    assert get(f"console/before?offset={offset}").status_code == 422


@pytest.mark.parametrize(
    "path",
    ["0.spec", "..", "../spec.json", "%2e%2e%2fspec.json", ".notes", "console%00", "spec.json"],
)
def test_nothing_but_logs(get, run, path):
    (run.path / ".notes").write_text("secret")
    answer = get(path)
    assert answer.status_code == 404
    assert "secret" not in answer.text


def test_a_run_of_no_such_name(served):
    for name in ("x", "..", "20260102-030405-no-run", "%2e%2e"):
        assert httpx.get(f"{served.url}/log/{name}/console").status_code == 404


def test_a_link_out_of_the_run_is_not_followed(get, run, tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("secret")
    run.console.unlink()
    run.console.symlink_to(secret)
    assert get("console").status_code == 404


def test_host_and_login_stand_in_front(served, run, tmp_path, runs_at):
    address = f"/log/{run.id}/console"
    assert httpx.get(served.url + address, headers={"host": "evil.example"}).status_code == 403
    locked = serve(tmp_path / "locked", login=Login({"ringside": PASSWORD}))
    try:
        own = runs_at(locked.settings.runs_root).add("own-owl")
        own.console.write_text("mine\n")
        with httpx.Client(base_url=locked.url) as visitor:
            for path in ("", "/find?words=mine", "/before?offset=3", "/around?offset=0"):
                assert visitor.get(f"/log/{own.id}/console{path}").status_code == 401
            visitor.post("/login", data={"username": "ringside", "password": PASSWORD})
            assert visitor.get(f"/log/{own.id}/console").text == "mine\n"
    finally:
        locked.close()
