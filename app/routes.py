"""What the server answers to: everything else that Gradio has is closed.

Gradio also serves a proxy, a way to fetch other addresses, an editor of its own source code, run
histories, recordings, monitoring and calls into components, most of them for nobody here. A page's
own address is open by itself; a new route has to be named here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

API = "/gradio_api"

_OPEN = {
    "GET": (
        r"/(config|theme\.css|logout|favicon\.ico|robots\.txt|manifest\.json)/?",
        r"/(assets|static|svelte)/.+",
        rf"{API}/(info|app_id|user|login_check|startup-events|theme\.css)/?",
        rf"{API}/(queue/data|queue/status|upload_progress)/?",
        rf"{API}/heartbeat/[\w-]+",
        # An address in the place of a file would be fetched by the server.
        rf"{API}/file=(?!\w+:).+",
        # Logs of runs (app.page.runs.files).
        r"/log/[\w-]+/[\w.]+(/(find|before|around))?",
        # Playbooks (app.page.library.files).
        r"/playbook/[\w-]+/(zip|page)",
    ),
    "POST": (
        r"/login/?",
        rf"{API}/(queue/join|upload|reset|cancel)/?",
        rf"{API}/run/[\w-]+/?",
    ),
}
_PATTERNS = {method: re.compile("|".join(found), re.ASCII) for method, found in _OPEN.items()}


def is_open(method: str, path: str, pages: Iterable[str]) -> bool:
    """Whether a request is one that the page makes; `pages` are the paths of all pages."""
    if method == "HEAD":
        method = "GET"
    if method == "GET" and path.strip("/") in pages:
        return True
    pattern = _PATTERNS.get(method)
    return pattern is not None and pattern.fullmatch(path) is not None


def is_upload(path: str) -> bool:
    """Whether a request brings files."""
    return path.rstrip("/") == f"{API}/upload"


def changes_something(method: str, path: str) -> bool:
    """Whether a request may do more than read; leaving is a GET, but ends every session."""
    return method not in ("GET", "HEAD", "OPTIONS") or path.rstrip("/") == "/logout"
