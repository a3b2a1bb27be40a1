"""Playbooks over plain GET, to be saved or looked at.

    /playbook/NAME/zip    the whole of it
    /playbook/NAME/page   its own page

Only playbooks of the library, by their exact names. A stranger may have written the page: it is
served in a sandbox, so no script of it runs and it is no part of this site, wherever it is opened.
"""

from __future__ import annotations

from typing import Any

from fastapi import Depends, FastAPI, HTTPException
from fastapi.responses import Response

from app.page.runs.files import require_login
from app.views.library_playbooks import kept_playbook
from ringside.errors import PlaybookError
from ringside.playbook import store

POLICY = "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:"


def serve_playbooks(server: FastAPI) -> None:
    """Add the routes to a server that runs already; handlers work in threads."""

    def whole(name: str) -> Response:
        content = _found(lambda: store.packed(kept_playbook(name)))
        headers = {"content-disposition": f'attachment; filename="{name}.zip"'}
        return Response(content, media_type="application/zip", headers=headers)

    def page(name: str) -> Response:
        content = _found(lambda: store.read_file(kept_playbook(name), "index.html"))
        headers = {"content-security-policy": POLICY}
        return Response(content, media_type="text/html; charset=utf-8", headers=headers)

    for what, handler in (("zip", whole), ("page", page)):
        server.add_api_route(
            f"/playbook/{{name}}/{what}", handler, methods=["GET"],
            dependencies=[Depends(require_login(server))], include_in_schema=False,
            response_model=None,
        )  # fmt: skip


def _found(read: Any) -> bytes:
    try:
        content: bytes = read()
    except PlaybookError as error:
        raise HTTPException(404, str(error)) from None
    return content
