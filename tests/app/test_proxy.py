"""The page behind a reverse proxy, and in an environment that tells Gradio to open up.

The proxy is a small one that does what the recipe for nginx in docs/serving.md does.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
from pathlib import Path

import httpx
import psutil
import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.responses import StreamingResponse
from starlette.routing import Route

from app.login import Login
from app.page import open_server
from app.page.server import Proxy
from ringside.errors import RingsideError
from ringside.identity import wait_until
from tests.app.caller import PREDICT, Caller
from tests.app.serving import free_port

NAME = "gpu.example.org"
PATH = "/ringside"
PASSWORD = "correct horse battery"


def reverse_proxy(target):
    """As the recipe: the path is taken off, Host and scheme are kept, nothing is held back."""
    client = httpx.AsyncClient(base_url=target, timeout=30)

    async def forward(request):
        headers = [(k, v) for k, v in request.headers.raw if k != b"connection"]
        headers += [(b"x-forwarded-proto", b"https"), (b"x-forwarded-for", b"10.0.0.7")]
        url = httpx.URL(path=f"/{request.path_params['path']}", query=request.url.query.encode())
        asked = client.build_request(
            request.method, url, headers=headers, content=await request.body()
        )
        answer = await client.send(asked, stream=True)
        return StreamingResponse(
            answer.aiter_raw(), answer.status_code, dict(answer.headers),
            background=None,
        )  # fmt: skip

    methods = ["GET", "POST", "HEAD"]
    return Starlette(routes=[Route(f"{PATH}/{{path:path}}", forward, methods=methods)])


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    opened = open_server(
        runs_root=tmp_path_factory.mktemp("runs"), port=free_port(),
        proxy=Proxy(PATH, (NAME,)), login=Login({"ringside": PASSWORD}),
    )  # fmt: skip
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def outside(served):
    """A client that knows the proxy only, by the name that it has outside."""
    config = uvicorn.Config(reverse_proxy(served.url), port=free_port(), log_level="error")
    proxy = uvicorn.Server(config)
    thread = threading.Thread(target=proxy.run)
    thread.start()
    headers = {"host": NAME, "origin": f"https://{NAME}"}
    with httpx.Client(base_url=f"http://127.0.0.1:{config.port}", headers=headers) as client:
        while not proxy.started:
            assert thread.is_alive()
        yield client
    proxy.should_exit = True
    thread.join()


def test_the_page_works_below_a_path_and_under_another_name(served, outside, caplog):
    assert "auth_required" in outside.get(f"{PATH}/").text
    data = {"username": "ringside", "password": PASSWORD}
    caplog.set_level("INFO", logger="ringside.audit")
    login = outside.post(f"{PATH}/login", data=data)
    assert login.status_code == 200
    # The address of who asks, not of the proxy.
    assert wait_until(lambda: "from=10.0.0.7" in caplog.text, 5)
    # The browser would keep a Secure cookie, since it speaks TLS with the proxy; httpx does not.
    cookies = {one.name: one.value for one in login.cookies.jar if not one.secure}
    for path in ("/", "/runs", "/compare", "/doctor"):
        page = outside.get(f"{PATH}{path}", cookies=cookies)
        assert page.status_code == 200
        assert f'"root":"https://{NAME}{PATH}"' in page.text.replace(" ", "")
    caller = Caller(served)
    event = caller.events["token_of_runs"]
    body = {"data": [], "fn_index": event["id"], "session_hash": "x"}
    answer = outside.post(f"{PATH}{PREDICT}", json=body, cookies=cookies)
    assert answer.json()["data"][0] == served.settings.token
    assets = re.findall(r'(?:src|href)="\./(assets/[^"]+\.(?:js|css))"', page.text)
    assert assets
    assert outside.get(f"{PATH}/{assets[0]}").status_code == 200


def test_only_the_names_that_were_allowed(outside):
    other = {"host": "evil.example", "origin": "https://evil.example"}
    assert outside.get(f"{PATH}/", headers=other).status_code == 403
    origin = {"origin": "https://evil.example"}
    assert outside.post(f"{PATH}/login", headers=origin).status_code == 403
    forwarded = {"x-forwarded-host": "evil.example"}
    assert outside.get(f"{PATH}/", headers=forwarded).status_code == 403


def test_a_stream_is_not_held_back(served, outside):
    """The heartbeat comes at once, though the answer has no end."""
    with outside.stream("GET", f"{PATH}/gradio_api/heartbeat/abc", timeout=5) as stream:
        assert next(stream.iter_lines()) == "data: ALIVE"


@pytest.mark.parametrize(
    "path", ["ringside", "/ringside/", "/", "//x", "/a b", "https://x/y", "/a?b"]
)
def test_what_is_no_path(path):
    with pytest.raises(RingsideError, match="no path for --root-path"):
        Proxy(path)


@pytest.mark.parametrize("name", ["", "http://x", "x:80", "a b", "*", "-x", "x/y"])
def test_what_is_no_name(name):
    with pytest.raises(RingsideError, match="no name for --allow-host"):
        Proxy("", (name,))


# --- the environment --------------------------------------------------------------------------

OPENING = {
    "GRADIO_SHARE": "True", "GRADIO_SERVER_NAME": "0.0.0.0", "GRADIO_SERVER_PORT": "1",
    "GRADIO_ALLOWED_PATHS": "/", "GRADIO_BLOCKED_PATHS": "", "GRADIO_MCP_SERVER": "True",
    "GRADIO_ROOT_PATH": "https://evil.example", "GRADIO_ANALYTICS_ENABLED": "True",
    "GRADIO_SSR_MODE": "True", "GRADIO_RUN_HISTORY": "True", "GRADIO_VIBE_MODE": "1",
    "GRADIO_NUM_WORKERS": "2", "GRADIO_DEBUG": "1", "GRADIO_WATCH_DIRS": "",
    "GRADIO_LOCAL_DEV_MODE": "1", "GRADIO_NODE_SERVER_PORT": "7999",
}  # fmt: skip

SERVE = """
import json, pathlib, sys
from app.page import open_server
server = open_server(runs_root=pathlib.Path(sys.argv[1]), port=int(sys.argv[2]))
page = server.page
print(json.dumps({
    "url": server.url, "share": page.share, "share_url": page.share_url, "ssr": page.ssr_mode,
    "allowed": page.allowed_paths, "root": page.root_path, "history": page.run_history,
    "analytics": page.analytics_enabled, "mcp": page.mcp_server, "vibe": page.vibe_mode,
    "dev": page.dev_mode, "monitoring": page.enable_monitoring,
}), flush=True)
sys.stdin.read()
server.close()
"""


def test_gradio_s_variables_open_nothing(tmp_path):
    (tmp_path / "secret.txt").write_text("secret")
    port = free_port()
    argv = [sys.executable, "-c", SERVE, str(tmp_path / "runs"), str(port)]
    process = subprocess.Popen(
        argv, env=os.environ | OPENING, cwd=Path(__file__).parents[2], text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip
    with process:
        try:
            found = json.loads(process.stdout.readline())
            url = found.pop("url")
            statuses = {
                httpx.request(method, f"{url}{path}").status_code
                for method, path in (
                    ("GET", f"/gradio_api/file={tmp_path / 'secret.txt'}"), ("GET", "/monitoring"),
                    ("GET", "/gradio_api/runs"), ("GET", "/gradio_api/mcp/schema"),
                    ("GET", "/gradio_api/vibe-code"), ("POST", "/gradio_api/vibe-edit"),
                )
            }  # fmt: skip
            page = httpx.get(url).text
            parent = psutil.Process(process.pid)
            listening = {
                (link.laddr.ip, link.laddr.port)
                for one in (parent, *parent.children(recursive=True))
                for link in one.net_connections()
                if link.status == psutil.CONN_LISTEN
            }
        finally:
            process.stdin.close()
    assert url == f"http://127.0.0.1:{port}"
    assert [name for name, value in found.items() if value] == []
    assert statuses <= {403, 404}
    assert "evil.example" not in page
    assert listening == {("127.0.0.1", port)}
