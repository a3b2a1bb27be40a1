"""Who may talk to the server."""

from __future__ import annotations

import pytest
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route
from starlette.testclient import TestClient

from app.guard import Guard, allowed_hosts, new_token, require_token
from ringside.errors import RingsideError


def client(host="127.0.0.1", hosts=()):
    async def answer(request):
        return PlainTextResponse("in")

    methods = ["GET", "POST", "PUT", "DELETE"]
    app = Starlette(routes=[Route("/{path:path}", answer, methods=methods)])
    guard = Guard(app, host=host, hosts=hosts)
    return TestClient(guard, base_url="http://localhost:7860")


@pytest.mark.parametrize(
    "host", ["localhost", "localhost:7860", "127.0.0.1:9000", "[::1]:7860", "LocalHost:7860"]
)
def test_known_names_come_in(host):
    assert client().get("/", headers={"host": host}).status_code == 200


@pytest.mark.parametrize(
    "host",
    ["evil.example", "evil.example:7860", "localhost.evil.example", "192.168.0.7", "", "[::1", "@"],
)
def test_a_name_pointed_here_does_not(host):
    answer = client().get("/", headers={"host": host})
    assert answer.status_code == 403
    assert answer.text.startswith("Ringside does not answer to the name")


def test_the_bound_name_counts():
    assert client("box.lan").get("/", headers={"host": "box.lan:7860"}).status_code == 200
    assert "box.lan" in allowed_hosts("Box.lan")


def test_any_address_takes_addresses_but_not_any_name():
    assert client("0.0.0.0").get("/", headers={"host": "10.0.0.7:7860"}).status_code == 200
    assert client("0.0.0.0").get("/", headers={"host": "evil.example"}).status_code == 403


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"origin": "http://localhost:7860"}, 200),
        ({"origin": "http://evil.example"}, 403),
        ({"origin": "http://localhost:3000"}, 403),
        ({"origin": "null"}, 403),
        ({"origin": ""}, 403),
        ({"sec-fetch-site": "cross-site"}, 403),
        ({"sec-fetch-site": "same-origin"}, 200),
    ],
)
def test_only_the_page_s_own_origin_may_change_something(headers, status):
    assert client().post("/login", headers=headers).status_code == status


def test_reading_needs_no_origin_but_not_another_one():
    assert client().get("/").status_code == 200
    # From a link of another site: the page may be opened, and is read by nobody else.
    assert client().get("/", headers={"sec-fetch-site": "cross-site"}).status_code == 200
    answer = client().get("/", headers={"origin": "http://evil.example"})
    assert answer.status_code == 403
    assert "access-control-allow-origin" not in answer.headers


def test_leaving_is_no_link_of_another_site():
    for site, status in (("cross-site", 403), ("same-origin", 200)):
        answer = client().get("/logout", headers={"sec-fetch-site": site})
        assert answer.status_code == status


def test_a_forwarded_name_has_to_be_known_like_any_other():
    name = "x-forwarded-host"
    assert client().get("/", headers={name: "evil.example"}).status_code == 403
    assert client().get("/", headers={name: "localhost, evil.example"}).status_code == 200
    pairs = [("host", "localhost"), (name, "evil.example"), (name, "localhost")]
    assert client().get("/", headers=pairs).status_code == 403
    allowed = client(hosts=["gpu.example.org"])
    origin = {"origin": "https://gpu.example.org"}
    assert allowed.post("/login", headers={"host": "GPU.example.org"} | origin).status_code == 200
    assert allowed.post("/login", headers={name: "gpu.example.org"} | origin).status_code == 200
    assert allowed.post("/login", headers=origin).status_code == 403


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/gradio_api/token"), ("GET", "/gradio_api/runs"), ("GET", "/monitoring"),
        ("GET", "/gradio_api/proxy=http://evil.example"), ("GET", "/docs"),
        ("GET", "/openapi.json"),
        ("GET", "/gradio_api/file=http://evil.example/x"), ("GET", "/gradio_api/file/etc/passwd"),
        ("GET", "/gradio_api/file=file:///etc/passwd"), ("GET", "/gradio_api/vibe-code"),
        ("POST", "/gradio_api/vibe-edit"), ("POST", "/gradio_api/vibe-code"),
        ("POST", "/gradio_api/component_server"), ("POST", "/gradio_api/process_recording"),
        ("POST", "/gradio_api/stream/x"), ("POST", "/gradio_api/call/start"),
        ("POST", "/gradio_api/call/v2/start"), ("PUT", "/"), ("DELETE", "/runs"), ("GET", "/nope"),
        ("GET", "/gradio_api/deep_link"), ("GET", "/gradio_api/dev/reload"), ("TRACE", "/"),
    ],
)  # fmt: skip
def test_what_the_page_does_not_need_is_closed(method, path):
    answer = client().request(method, path)
    assert answer.status_code == 404
    assert answer.text == "There is no such address here.\n"


def test_nothing_is_loaded_from_elsewhere():
    policy = client().get("/").headers["content-security-policy"]
    assert policy.startswith("default-src 'self'")
    assert "http" not in policy


def test_the_token():
    token = new_token()
    assert token != new_token()
    require_token(token, token)
    for wrong in ("", None, token[:-1], f"{token}x", "ä"):
        with pytest.raises(RingsideError, match="reload it"):
            require_token(wrong, token)
