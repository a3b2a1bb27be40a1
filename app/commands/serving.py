"""Commands that serve the page."""

from __future__ import annotations


def ui(*, host: str, port: int | None, open_browser: bool) -> None:
    """Serve the page until Ctrl+C; runs go on without it."""
    from app.page import serve
    from ringside.rundir import runs_root

    serve(host=host, port=port, runs_root=runs_root(), open_browser=open_browser, block=True)
