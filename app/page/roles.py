"""What a viewer gets: every page, no action token, no button that acts, no upload, no folders.

All of it follows from the wiring: what sets an event off that acts is hidden, and an event that
takes the field of a folder reads whatever folder it names. Each handler that acts refuses viewers
by itself (`frame.acts`); what is hidden here is for the eye.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import gradio as gr
from gradio.blocks import BlockFunction
from gradio.components import Component
from gradio.context import LocalContext
from starlette.requests import HTTPConnection

from app.asgi import Application, Receive, Scope, Send, answer
from app.login import is_viewer
from app.routes import is_upload
from ringside.words import say

FOLDER = "field-folder"
NOTE = "viewer-note"
HIDDEN_KINDS = (gr.Button, gr.UploadButton, gr.DownloadButton, gr.File)


def acting(page: gr.Blocks) -> Iterator[BlockFunction]:
    """The events that change something; each is a line of the audit."""
    return (event for event in page.fns.values() if hasattr(event.fn, "acts"))


def hide_from_viewers(page: gr.Blocks) -> str:
    """CSS that hides whatever sets an acting event off, on a page that shows the viewer's note."""
    targets = {target for event in acting(page) for target, _ in event.targets}
    parts = (page.blocks.get(target) for target in targets if target is not None)
    found = sorted({p.elem_id for p in parts if isinstance(p, HIDDEN_KINDS) and p.elem_id})
    selectors = ", ".join(f"#{name}" for name in found)
    return f"\nbody:has(#{NOTE} p) :is({selectors}) {{ display: none !important; }}\n"


def keep_from_viewers(page: gr.Blocks) -> None:
    """Let the events that read a folder of the server do nothing for a viewer.

    Where everybody is an operator this changes nothing.
    """
    for event in page.fns.values():
        folder = next((part for part in event.inputs if part.elem_id == FOLDER), None)
        if event.fn is not None and folder is not None and not hasattr(event.fn, "acts"):
            event.fn = _without_folders(event.fn, folder)


class NoUploads:
    """ASGI middleware: 403 for the upload of a viewer. It reaches the disk before any handler."""

    def __init__(self, app: Application) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on whatever is no upload, or not a viewer's."""
        is_one = scope["type"] == "http" and is_upload(scope["path"])
        if is_one and is_viewer(user_of(scope["app"], HTTPConnection(scope).cookies)):
            await answer(send, 403, say("page.viewer"))
            return
        await self.app(scope, receive, send)


def user_of(server: Any, cookies: Mapping[str, str]) -> str | None:
    """Who has logged in, by Gradio's own cookies (6.31, routes.py); None for nobody."""
    names = (f"access-token-{server.cookie_id}", f"access-token-unsecure-{server.cookie_id}")
    token = cookies.get(names[0]) or cookies.get(names[1])
    user: str | None = server.tokens.get(token)
    return user


def _without_folders(handler: Callable[..., Any], folder: Component) -> Callable[..., Any]:
    @functools.wraps(handler)
    def wrapped(values: Mapping[Component, Any], *rest: Any) -> Any:
        user = getattr(LocalContext.request.get(None), "username", None)
        if is_viewer(user) and values[folder]:
            return gr.skip()
        return handler(values, *rest)

    return wrapped
