"""Commands that serve the page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Request:
    """What `ringside ui` was asked for; see the options of the command."""

    host: str
    port: int | None
    root_path: str
    allow_hosts: Sequence[str]
    viewers: bool
    view_password_file: Path | None
    open_browser: bool


def ui(request: Request) -> None:
    """Serve the page until Ctrl+C; runs go on without it."""
    from app.login import login_for
    from app.page import serve
    from app.page.server import Proxy
    from ringside.rundir import runs_root

    login = login_for(
        request.host, viewers=request.viewers, view_password_file=request.view_password_file
    )
    serve(
        runs_root=runs_root(),
        host=request.host,
        port=request.port,
        proxy=Proxy(request.root_path, tuple(request.allow_hosts)),
        login=login,
        open_browser=request.open_browser,
        block=True,
    )
