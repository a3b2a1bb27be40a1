"""The server of the page: which address, which port, and what stands in front of it."""

from __future__ import annotations

import contextlib
import functools
import re
import socket
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import gradio as gr
from starlette.middleware import Middleware

from app.audit import to_standard_error
from app.brake import Brake, BrakedLogin
from app.calm import Calm
from app.guard import Guard
from app.login import Login, login_for, require_login
from app.page.languages import Languages
from app.page.library.files import serve_playbooks
from app.page.roles import NoUploads, hide_from_viewers, keep_from_viewers
from app.page.runs.files import serve_logs
from app.page.settings import PageSettings
from app.page.site import build
from app.page.theme import STYLE, theme
from app.views.trials import MAX_PICTURE_BYTES, MAX_PICTURES
from ringside.errors import RingsideError
from ringside.launch.reconcile import reconcile_all
from ringside.words import say

ROOT_PATH = re.compile(r"(/[\w.~-]+)+", re.ASCII)
HOST_NAME = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?", re.ASCII | re.IGNORECASE)
FIRST_PORT, NUM_PORTS, NUM_TRIES = 7860, 100, 3
LOWEST_PORT, HIGHEST_PORT = 1, 65535
UPLOAD_SLACK_BYTES = 1_000_000
"""What a form needs around its files."""

# A page that comes back from the browser's memory would carry the request id of a run that was
# started already; a fresh one asks for its own.
FRESH = (
    "<script>window.addEventListener('pageshow', "
    "(event) => { if (event.persisted) window.location.reload(); });</script>"
)


@dataclass(frozen=True)
class Server:
    """A page that is being served."""

    url: str
    settings: PageSettings
    page: gr.Blocks

    def close(self) -> None:
        """Stop serving; runs go on."""
        self.page.close(verbose=False)


@dataclass(frozen=True)
class Proxy:
    """What a proxy in front makes of the address: another path, and other names.

    `root_path` begins with a slash and ends without one, as in "/ringside"; "" is the top.
    """

    root_path: str = ""
    hosts: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Refuse what can be no path and no name."""
        if self.root_path and not ROOT_PATH.fullmatch(self.root_path):
            raise RingsideError(say("serve.root_path", path=self.root_path))
        for name in self.hosts:
            if not HOST_NAME.fullmatch(name):
                raise RingsideError(say("serve.host_name", name=name))


NO_PROXY = Proxy()


def serve(
    *,
    runs_root: Path,
    host: str = "127.0.0.1",
    port: int | None = None,
    proxy: Proxy = NO_PROXY,
    login: Login | None = None,
    open_browser: bool = False,
    block: bool = True,
    announce: Callable[[str], object] = functools.partial(print, flush=True),  # noqa: B008
) -> str:
    """Serve the page and return its real address; with `block`, announce it and stay until Ctrl+C.

    Without `port` the first free one from 7860 on is taken; a given one that is busy or no port
    raises a RingsideError. Without a `login` it is the one of the environment (`login_for`);
    passwords that were made up are announced.
    """
    login = login_for(host) if login is None else login
    server = open_server(
        runs_root=runs_root, host=host, port=port, proxy=proxy, login=login,
        open_browser=open_browser,
    )  # fmt: skip
    for line in login.lines():
        announce(line)
    if block:
        announce(say("serve.ready", url=server.url, root=runs_root))
        with contextlib.suppress(KeyboardInterrupt):
            threading.Event().wait()
        server.close()
    return server.url


def open_server(
    *,
    runs_root: Path,
    host: str = "127.0.0.1",
    port: int | None = None,
    proxy: Proxy = NO_PROXY,
    login: Login | None = None,
    open_browser: bool = False,
) -> Server:
    """Start serving in the background and return at once."""
    login = login_for(host) if login is None else login
    require_login(host, login)
    _free_port(host, port)  # Refused before anything is made.
    with contextlib.suppress(OSError):
        runs_root.mkdir(parents=True, exist_ok=True)
    reconcile_all(runs_root)
    to_standard_error()
    settings = PageSettings(runs_root, login=login)
    # Another server may take the port between the look and the launch.
    tries = 1 if port is not None else NUM_TRIES
    for left in reversed(range(tries)):
        chosen = _free_port(host, port)
        page = build(settings)
        keep_from_viewers(page)
        arguments = launch_arguments(page, host, chosen, login)
        middleware = _in_front(page, host, proxy)
        try:
            _, url, _ = page.launch(
                **arguments,
                root_path=proxy.root_path,
                inbrowser=open_browser,
                app_kwargs={"middleware": middleware},
            )
            break
        except OSError:
            if not left:
                raise RingsideError(say("serve.busy", port=chosen, host=host)) from None
    serve_logs(page.app, settings.desk)
    serve_playbooks(page.app)
    return Server(url.rstrip("/"), settings, page)


def launch_arguments(page: gr.Blocks, host: str, port: int, login: Login) -> dict[str, object]:
    """Everything that Gradio would otherwise take from GRADIO_* variables or leave open."""
    # These are set when the pages are built: one edits and runs source code over the network.
    page.vibe_mode = page.dev_mode = False
    # In a head, not through `css`: Gradio rewrites selectors there and breaks `:has(a, b)`.
    style = STYLE.read_text(encoding="utf-8") + hide_from_viewers(page)
    return {
        "server_name": host,
        "server_port": port,
        "auth": login.knows if login.is_needed else None,
        "auth_message": say("login.message") if login.is_needed else None,
        "share": False,
        "ssr_mode": False,
        "mcp_server": False,
        "pwa": False,
        "run_history": False,
        "enable_monitoring": False,
        "num_workers": 0,
        "debug": False,
        "strict_cors": True,
        "allowed_paths": [],
        "blocked_paths": [],
        "max_file_size": MAX_PICTURE_BYTES,
        "footer_links": [],
        "show_error": False,
        "prevent_thread_lock": True,
        "quiet": True,
        "theme": theme(),
        "head": f"<style>{style}</style>{FRESH}",
    }


def _in_front(page: gr.Blocks, host: str, proxy: Proxy) -> list[Middleware]:
    """What every request goes through, the first first."""
    pages = [path for path, *_ in page.pages]
    max_upload_bytes = MAX_PICTURES * MAX_PICTURE_BYTES + UPLOAD_SLACK_BYTES
    return [
        Middleware(Guard, host=host, hosts=proxy.hosts, pages=pages),
        Middleware(Calm, max_upload_bytes=max_upload_bytes),
        Middleware(BrakedLogin, brake=Brake()),
        Middleware(Languages),
        Middleware(NoUploads),
    ]


def _free_port(host: str, port: int | None) -> int:
    """The given port if it is free, else the first free one; a RingsideError says what is wrong."""
    if port is not None:
        if not LOWEST_PORT <= port <= HIGHEST_PORT:
            raise RingsideError(say("serve.no_port", port=port, low=LOWEST_PORT, high=HIGHEST_PORT))
        if not _is_free(host, port):
            raise RingsideError(say("serve.busy", port=port, host=host))
        return port
    ports = range(FIRST_PORT, FIRST_PORT + NUM_PORTS)
    found = next((candidate for candidate in ports if _is_free(host, candidate)), None)
    if found is None:
        raise RingsideError(say("serve.none_free", first=ports[0], last=ports[-1], host=host))
    return found


def _is_free(host: str, port: int) -> bool:
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except (socket.gaierror, OverflowError) as error:
        raise RingsideError(say("serve.no_host", host=host, why=error)) from None
    with socket.socket(family, kind, protocol) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(address)
        except (OSError, OverflowError):
            return False
    return True
