"""The presets on their page: the list, and the opened one with all that is done with it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import gradio as gr

from app.audit import about
from app.guard import require_token
from app.page.draw import soft
from app.page.draw.library import (
    CHOOSE,
    PRESS,
    history,
    pair_table,
    preset_files,
    preset_head,
    preset_list,
)
from app.page.frame import QUEUED, QUICK, acts, block, careful, hidden, inform, quiet
from app.page.settings import PageSettings
from app.page.train.form import field
from app.views.form import PAGE_WAITS_S
from app.views.library import is_own, pairs_of, preset_rows, preset_view, request_of_run
from app.views.library_playbooks import kept_playbooks
from ringside import preset_store
from ringside.errors import PresetError
from ringside.presets import Library, Preset
from ringside.shelf.measured import trials
from ringside.words import say

Changes = dict[Any, Any]
RUN = "run:"
"""What stands before a run's id among the choices of the other side."""

MAX_RUNS = 20
MAX_NAME = 200
BASELINE, USUAL = "single", "ddp"


@dataclass(frozen=True)
class PresetParts:
    """The components; the list's value is the name of the opened preset."""

    list: gr.HTML
    head: gr.HTML
    buttons: gr.Row
    edit: gr.Button
    more: gr.Button
    delete: gr.Button
    naming: gr.Column
    new_name: gr.Textbox
    clone: gr.Button
    rename: gr.Button
    confirm: gr.Column
    question: gr.HTML
    yes: gr.Button
    no: gr.Button
    asked: gr.Textbox
    files: gr.HTML
    side: gr.Column
    against: gr.Dropdown
    everything: gr.Checkbox
    difference: gr.HTML
    history: gr.HTML
    editor: gr.Column

    def opened(self) -> list[Any]:
        """What changes when another preset is opened."""
        return [
            self.list, self.head, self.buttons, self.edit, self.more, self.delete, self.naming,
            self.new_name, self.clone, self.rename, self.confirm, self.asked, self.files, self.side,
            self.against, self.difference, self.history, self.editor,
        ]  # fmt: skip


def draw_list() -> gr.HTML:
    """All presets; its value is the name of the opened one."""
    return gr.HTML(
        "", html_template="${list}", list="", detail="preset-opened", js_on_load=CHOOSE,
        apply_default_css=False, elem_id="preset-list",
    )  # fmt: skip


def draw_detail() -> dict[str, Any]:
    """The opened preset, called in its column."""
    small: dict[str, Any] = {"size": "md", "scale": 0, "min_width": 110}
    shown: dict[str, Any] = {"head": block("preset-head")}
    with gr.Row(elem_classes="rs-row rs-buttons", visible=False, elem_id="preset-buttons") as row:
        shown["edit"] = gr.Button(say("library.edit"), elem_id="edit-preset", **small)
        shown["more"] = gr.Button(say("library.copy_or_rename"), elem_id="name-preset", **small)
        shown["delete"] = gr.Button(say("library.delete"), elem_id="delete-preset", **small)
    with gr.Column(visible=False, elem_id="preset-naming") as naming:
        shown["new_name"] = field(gr.Textbox, "new_name", max_lines=1)
        with gr.Row(elem_classes="rs-row rs-buttons"):
            shown["clone"] = gr.Button(say("library.clone"), elem_id="clone-preset", **small)
            shown["rename"] = gr.Button(say("library.rename"), elem_id="rename-preset", **small)
    with gr.Column(visible=False, elem_id="preset-confirm", elem_classes="rs-confirm") as confirm:
        shown["question"] = block("preset-question")
        with gr.Row(elem_classes="rs-row rs-buttons"):
            shown["yes"] = gr.Button(
                say("library.delete"), variant="stop", elem_id="delete-preset-yes", **small
            )
            shown["no"] = gr.Button(say("library.keep"), elem_id="delete-preset-no", **small)
    return shown | {"buttons": row, "naming": naming, "confirm": confirm}


def draw_sides() -> dict[str, Any]:
    """Files, differences and versions of the opened preset, below the editor."""
    shown: dict[str, Any] = {"files": block("preset-files")}
    with gr.Column(visible=False, elem_id="preset-side") as side:
        with gr.Row(elem_classes="rs-row"):
            shown["against"] = field(
                gr.Dropdown, "against", choices=[], value="", allow_custom_value=True, scale=3,
                min_width=200,
            )  # fmt: skip
            shown["everything"] = field(
                gr.Checkbox, "everything", value=False, scale=1, min_width=140
            )
        shown["difference"] = block("preset-difference")
    shown["history"] = gr.HTML(
        "", html_template="${list}", list="", js_on_load=PRESS, apply_default_css=False,
        elem_id="preset-history",
    )  # fmt: skip
    return shown | {"side": side, "asked": hidden("preset-asked")}


class PresetHandlers:
    """What the presets' part of the page does."""

    def __init__(self, parts: PresetParts, token: gr.Textbox, settings: PageSettings) -> None:
        self.parts, self.token, self.settings = parts, token, settings

    def connect(self) -> None:
        """Give the events their handlers; called inside the page's context."""
        parts = self.parts
        which, opened = {self.token, parts.list}, parts.opened()
        parts.list.submit(
            self.show, {parts.list}, opened[1:], trigger_mode="always_last", api_name="show_preset",
            **QUICK,
        )  # fmt: skip
        gr.on(
            [parts.against.input, parts.everything.input], self.differ,
            {parts.list, parts.against, parts.everything}, parts.difference,
            trigger_mode="always_last", api_name="preset_difference", **QUICK,
        )  # fmt: skip
        parts.more.click(
            self.name, {parts.list}, [parts.naming, parts.new_name],
            api_name="name_preset", **QUEUED,
        )  # fmt: skip
        asked = [parts.confirm, parts.question, parts.asked]
        parts.delete.click(self.ask, {parts.list}, asked, api_name="ask_to_delete_preset", **QUEUED)
        parts.no.click(
            self.keep, None, [parts.confirm, parts.asked], api_name="keep_preset", **QUEUED
        )
        for event, handler, more, name in (
            (parts.clone.click, self.clone, {parts.new_name}, "clone_preset"),
            (parts.rename.click, self.rename, {parts.new_name}, "rename_preset"),
            (parts.yes.click, self.delete, {parts.asked}, "delete_preset"),
            (parts.history.submit, self.bring_back, {parts.history}, "bring_back"),
        ):
            event(handler, which | more, opened, api_name=name, **QUEUED)

    def opened(self, name: str | None) -> Changes:
        """The list as it is now, with the preset of this name opened; nothing for none."""
        parts, settings = self.parts, self.settings
        library, books = Library(), kept_playbooks()
        found = trials(settings.runs_root, within_s=PAGE_WAITS_S)
        preset = library.presets.get(name or "")
        rows = preset_rows(library, found, books)
        shown = preset_list(rows, map(str, library.faults))
        shelf = gr.HTML(value=preset.name if preset else "", list=shown)
        closed = {
            parts.list: shelf, parts.naming: gr.Column(visible=False),
            parts.confirm: gr.Column(visible=False), parts.asked: "",
            parts.editor: gr.Column(visible=False),
        }  # fmt: skip
        if preset is None:
            return closed | self._nothing()
        view = preset_view(preset, settings.hardware, found, books)
        own, usual = is_own(preset), USUAL if preset.name == BASELINE else BASELINE
        choices = self._others(library, preset)
        return closed | {
            parts.head: preset_head(view),
            parts.buttons: gr.Row(visible=True),
            parts.edit: gr.Button(visible=own),
            parts.delete: gr.Button(visible=own),
            parts.rename: gr.Button(visible=own),
            parts.more: gr.Button(say("library.copy_or_rename" if own else "library.clone_first")),
            parts.files: preset_files(view),
            parts.side: gr.Column(visible=True),
            parts.against: gr.Dropdown(choices=choices, value=usual),
            parts.difference: self._pairs(preset, usual),
            parts.history: gr.HTML(list=history(view.versions, is_own=own)),
        }

    @quiet
    def show(self, data: Changes) -> Changes:
        """Open the chosen preset; the list keeps its place and the words that were looked for."""
        changes = self.opened(text_of(data[self.parts.list]))
        del changes[self.parts.list]
        return changes

    @quiet
    def differ(self, data: Changes) -> Changes:
        """The preset beside another one, or beside a run."""
        parts = self.parts
        preset = self._preset(data)
        shown = self._pairs(
            preset, text_of(data[parts.against]), everything=data[parts.everything] is True
        )
        return {parts.difference: shown}

    @careful
    def name(self, data: Changes) -> Changes:
        """Ask for another name, and propose one that is free."""
        preset = self._preset(data)
        free = preset_store.free_name(preset.name.rpartition(":")[2])
        return {self.parts.naming: gr.Column(visible=True), self.parts.new_name: free}

    @acts("clone a preset")
    def clone(self, data: Changes) -> Changes:
        """Copy it into the library of this user."""
        preset, name = self._asked(data), self._new_name(data)
        return self._said("library.cloned", preset_store.clone(preset, name))

    @acts("rename a preset")
    def rename(self, data: Changes) -> Changes:
        """Give it another name; its versions go with it."""
        preset, name = self._asked(data), self._new_name(data)
        return self._said("library.renamed", preset_store.rename(preset, name))

    @careful
    def ask(self, data: Changes) -> Changes:
        """Say what will be gone, before anything is."""
        parts, preset = self.parts, self._preset(data)
        if not is_own(preset):
            raise PresetError(say("library.not_own", preset=preset.name))
        return {
            parts.confirm: gr.Column(visible=True),
            parts.question: soft(say("library.sure", preset=preset.name)),
            parts.asked: preset.name,
        }

    @careful
    def keep(self) -> Changes:
        """Close the question."""
        return {self.parts.confirm: gr.Column(visible=False), self.parts.asked: ""}

    @acts("delete a preset")
    def delete(self, data: Changes) -> Changes:
        """Take it out of the library; its versions stay."""
        preset = self._asked(data)
        if data[self.parts.asked] != preset.name:
            raise PresetError(say("library.stale_question"))
        kept = preset_store.delete(preset)
        inform(say("library.deleted", preset=preset.name, path=kept), seconds=10)
        return self.opened(None)

    @acts("bring back a preset's version")
    def bring_back(self, data: Changes) -> Changes:
        """Make an older version the present one."""
        preset = self._asked(data)
        checksum = text_of(data[self.parts.history]) or ""
        about(checksum[:12])
        return self._said("library.brought_back", preset_store.bring_back(preset, checksum))

    def _said(self, key: str, preset: Preset) -> Changes:
        inform(say(key, preset=preset.name))
        return self.opened(preset.name)

    def _nothing(self) -> Changes:
        parts = self.parts
        return {
            parts.head: soft(say("library.choose")),
            parts.buttons: gr.Row(visible=False),
            parts.files: "",
            parts.side: gr.Column(visible=False),
            parts.history: gr.HTML(list=""),
        }

    def _pairs(self, preset: Preset, other: str | None, *, everything: bool = False) -> str:
        name = other or ""
        run = self.settings.desk.exact(name.removeprefix(RUN)) if name.startswith(RUN) else None
        second = request_of_run(run) if run else Library().get(name)
        pairs = pairs_of(preset, second, everything=everything)
        return pair_table(pairs, preset.name, run.name if run else name, everything=everything)

    def _others(self, library: Library, preset: Preset) -> list[tuple[str, str]]:
        """The newest runs, then all other presets."""
        runs = self.settings.desk.rows()[:MAX_RUNS]
        found = [
            (say("library.last_run" if not at else "library.a_run", run=run.name), RUN + run.id)
            for at, run in enumerate(runs)
        ]
        return [*found, *((one.name, one.name) for one in library if one.name != preset.name)]

    def _preset(self, data: Mapping[Any, Any]) -> Preset:
        return Library().get(text_of(data[self.parts.list]) or "")

    def _asked(self, data: Mapping[Any, Any]) -> Preset:
        """The opened preset, for somebody who may change it."""
        about(text_of(data[self.parts.list]))
        require_token(data[self.token], self.settings.token)
        return self._preset(data)

    def _new_name(self, data: Mapping[Any, Any]) -> str:
        name = text_of(data[self.parts.new_name]) or ""
        preset_store.check_name(name)
        return name


def text_of(value: Any) -> str | None:
    """A word that a stranger sent, cut; None for anything else."""
    return value[:MAX_NAME].strip() if isinstance(value, str) and value.strip() else None
