"""Library: the presets and the playbooks of the team."""

from __future__ import annotations

from typing import Any

import gradio as gr

from app.page.draw import heading, items, title
from app.page.frame import QUICK, block, draw_frame, quiet
from app.page.library.editor import EditorHandlers, draw_editor
from app.page.library.importing import ImportHandlers, draw_importing
from app.page.library.playbooks import PlaybookHandlers, draw_playbooks, run_names
from app.page.library.presets import (
    PresetHandlers,
    PresetParts,
    draw_detail,
    draw_list,
    draw_sides,
)
from app.page.settings import PageSettings
from app.views.library_playbooks import kept_playbooks
from ringside.presets import Library
from ringside.words import say

TABS = ("presets", "import", "playbooks")


def draw_library(page: gr.Blocks, settings: PageSettings) -> None:
    """Lay the page out and connect it; called inside the page's context."""
    token = draw_frame(settings, "library")
    block("lead", title(say("page.library"), say("library.lead")))
    notice = block("notice")
    with gr.Tabs(elem_id="library-tabs") as tabs:
        with gr.Tab(say("library.presets"), id="presets", elem_id="tab-presets"):
            parts, editor = _draw_presets()
        with gr.Tab(say("library.import"), id="import", elem_id="tab-import"):
            importing = draw_importing()
        with gr.Tab(say("library.playbooks"), id="playbooks", elem_id="tab-playbooks"):
            playbooks = draw_playbooks()
    presets = PresetHandlers(parts, token, settings)
    taken = ImportHandlers(importing, presets, tabs, settings)
    books = PlaybookHandlers(playbooks, token, settings)
    for handlers in (presets, EditorHandlers(editor, presets, settings), books):
        handlers.connect()
    taken.connect(page)

    @quiet
    def show(request: gr.Request) -> dict[Any, Any]:
        """The preset of `?preset=`, the playbook of `?playbook=`, or `?runs=` to make one of."""
        query = request.query_params
        name, book, runs = (query.get(key) for key in ("preset", "playbook", "runs"))
        tab = query.get("tab")
        wanted = "playbooks" if book or runs else tab if tab in TABS else "presets"
        return {
            tabs: gr.Tabs(selected=wanted),
            notice: items(_unknown(name, book), "rs-list rs-bad"),
            **presets.opened(name),
            **books.opened(book),
            **books.offered(run_names(runs)),
        }

    opened = dict.fromkeys([
        tabs, notice, *parts.opened(), *playbooks.opened(), playbooks.runs,
        playbooks.making, playbooks.timer,
    ])  # fmt: skip
    page.load(show, None, list(opened), api_name="open_library", **QUICK)


def _draw_presets() -> tuple[PresetParts, Any]:
    with gr.Row(elem_classes="rs-columns rs-top"):
        with gr.Column(scale=17, min_width=300, elem_classes="rs-card"):
            block("presets-heading", heading(say("library.presets")))
            shelf = draw_list()
        with gr.Column(scale=30, min_width=320, elem_classes="rs-card", elem_id="preset-opened"):
            shown = draw_detail()
            editor = draw_editor()
            shown |= draw_sides()
    return PresetParts(list=shelf, editor=editor.box, **shown), editor


def _unknown(preset: str | None, playbook: str | None) -> list[str]:
    """What an address asks for and the library has not."""
    found = []
    if preset and preset not in Library().presets:
        found.append(say("library.no_preset", preset=preset[:80]))
    if playbook and all(one.name != playbook for one in kept_playbooks()):
        found.append(say("library.no_playbook", name=playbook[:80]))
    return found
