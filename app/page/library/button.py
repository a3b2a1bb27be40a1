"""The button that makes a playbook of the runs that a page shows: one press, then the library."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import gradio as gr

from app.audit import about
from app.guard import require_token
from app.page.frame import PRIVATE, QUEUED, acts, hidden
from app.page.settings import PageSettings
from ringside.errors import PlaybookError
from ringside.playbook.gathering import MAX_RUNS
from ringside.words import say

Changes = dict[Any, Any]
TO_LIBRARY = "(go) => { if (go) window.location.href = 'library?tab=playbooks'; }"


@dataclass(frozen=True)
class PlaybookButton:
    """The button, and the field that is filled once the playbook is being made."""

    button: gr.Button
    go: gr.Textbox


def draw_playbook_button(elem_id: str = "make-playbook", **details: Any) -> PlaybookButton:
    """The button alone."""
    look: dict[str, Any] = {"size": "md", "scale": 0, "min_width": 96, **details}
    button = gr.Button(say("library.make_short"), elem_id=elem_id, **look)
    return PlaybookButton(button, hidden("playbook-go"))


def connect_playbook_button(
    parts: PlaybookButton, source: Any, token: gr.Textbox, settings: PageSettings, name: str,
    read: Callable[[Any], Sequence[str]],
) -> None:  # fmt: skip
    """Let a press make a playbook of the runs whose ids `read` finds in the value of `source`.

    `name` is the event's.
    """

    @acts("make a playbook")
    def make(data: Changes) -> Changes:
        """Begin to make it, and go to where it will be."""
        ids = [one for one in read(data[source]) if isinstance(one, str)]
        about(*(one[:40] for one in ids[:MAX_RUNS]))
        require_token(data[token], settings.token)
        runs = [settings.desk.exact(one) for one in ids]
        if not runs or None in runs or len(runs) > MAX_RUNS:
            raise PlaybookError(say("library.choose_runs", limit=MAX_RUNS))
        settings.making.start([run.id for run in runs if run is not None])
        return {parts.go: "playbooks"}

    made = parts.button.click(make, {source, token}, parts.go, api_name=name, **QUEUED)
    made.success(None, parts.go, None, js=TO_LIBRARY, api_name=f"{name}_open", **PRIVATE)
