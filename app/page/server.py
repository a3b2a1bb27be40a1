"""The server of the page: which address, which port, who may come in."""

from __future__ import annotations

import contextlib
import os
import socket
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import gradio as gr
from starlette.middleware import Middleware

from app.audit import to_standard_error
from app.guard import Guard, is_loopback
from app.page.settings import PageSettings
from app.page.site import build
from app.page.theme import STYLE, theme
from app.views.trials import MAX_PICTURE_BYTES
from ringside.errors import RingsideError
from ringside.launch.reconcile import reconcile_all
from ringside.words import say

FIRST_PORT, NUM_PORTS = 7860, 100
LOWEST_PORT, HIGHEST_PORT = 1, 65535
USER = "ringside"
PASSWORD_VARIABLE = "RINGSIDE_PASSWORD"
MIN_PASSWORD = 12
"""Nothing slows down somebody who guesses, so the password has to be long."""

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


def serve(
    *,
    runs_root: Path,
    host: str = "127.0.0.1",
    port: int | None = None,
    auth: tuple[str, str] | None = None,
    open_browser: bool = False,
    block: bool = True,
    announce: Callable[[str], object] = print,
) -> str:
    """Serve the page and return its real address; with `block`, announce it and stay until Ctrl+C.

    Without `port` the first free one from 7860 on is taken; a given one that is busy or no port
    raises a RingsideError, as does a host beyond this machine without a password. The password
    comes from `auth` (user, password) or from RINGSIDE_PASSWORD, whose user is `ringside`.
    """
    server = open_server(
        runs_root=runs_root, host=host, port=port, auth=auth, open_browser=open_browser
    )
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
    auth: tuple[str, str] | None = None,
    open_browser: bool = False,
) -> Server:
    """Start serving in the background and return at once."""
    auth = require_password(host, auth or _auth_from_environment())
    port = _free_port(host, port)
    with contextlib.suppress(OSError):
        runs_root.mkdir(parents=True, exist_ok=True)
    reconcile_all(runs_root)
    to_standard_error()
    settings = PageSettings(runs_root)
    page = build(settings)
    try:
        _, url, _ = page.launch(**launch_arguments(host, port, auth, open_browser))
    except OSError:
        raise RingsideError(say("serve.busy", port=port, host=host)) from None
    return Server(url.rstrip("/"), settings, page)


def launch_arguments(
    host: str, port: int, auth: tuple[str, str] | None, open_browser: bool
) -> dict[str, object]:
    """Everything that Gradio would otherwise take from GRADIO_* variables or leave open."""
    return {
        "server_name": host,
        "server_port": port,
        "auth": auth,
        "inbrowser": open_browser,
        "share": False,
        "ssr_mode": False,
        "mcp_server": False,
        "pwa": False,
        "run_history": False,
        "enable_monitoring": False,
        "allowed_paths": [],
        "max_file_size": MAX_PICTURE_BYTES,
        "footer_links": [],
        "show_error": False,
        "prevent_thread_lock": True,
        "quiet": True,
        "theme": theme(),
        # Not through `css`: Gradio rewrites the selectors there and breaks `:has(a, b)`.
        "head": f"<style>{STYLE.read_text(encoding='utf-8')}</style>{FRESH}",
        "app_kwargs": {"middleware": [Middleware(Guard, host=host)]},
    }


def require_password(host: str, auth: tuple[str, str] | None) -> tuple[str, str] | None:
    """The login itself; raises RingsideError where one is needed and missing or too short."""
    is_local = is_loopback(host)
    if is_local and auth is None:
        return None
    if auth is None or len(auth[1]) < MIN_PASSWORD:
        key = "serve.short_password" if is_local else "serve.password"
        raise RingsideError(say(key, host=host, variable=PASSWORD_VARIABLE, length=MIN_PASSWORD))
    return auth


def _auth_from_environment() -> tuple[str, str] | None:
    password = os.environ.get(PASSWORD_VARIABLE)
    return (USER, password) if password else None


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
