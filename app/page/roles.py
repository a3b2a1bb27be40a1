"""What a viewer gets: every page, no action token, no button that acts, no look into folders.

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

from app.login import is_viewer

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


def _without_folders(handler: Callable[..., Any], folder: Component) -> Callable[..., Any]:
    @functools.wraps(handler)
    def wrapped(values: Mapping[Component, Any], *rest: Any) -> Any:
        user = getattr(LocalContext.request.get(None), "username", None)
        if is_viewer(user) and values[folder]:
            return gr.skip()
        return handler(values, *rest)

    return wrapped
