"""What a colleague sent: pasted or as a file, what becomes of it, and into the library."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gradio as gr

from app.audit import about
from app.guard import require_token
from app.page.draw import heading, soft
from app.page.draw.library import import_report, source_table
from app.page.frame import QUEUED, QUICK, acts, block, careful, hidden, inform, quiet
from app.page.library.presets import PresetHandlers, text_of
from app.page.settings import PageSettings
from app.page.train.form import field
from app.views.library import source_views
from ringside import preset_store, yaml_text
from ringside.adaptation import adaptations
from ringside.errors import PresetError
from ringside.importing import Import, import_text
from ringside.presets import Library
from ringside.words import say

Changes = dict[Any, Any]
FILE_TYPES = [".yaml", ".yml", ".json", ".txt"]
PASTED = "pasted"


@dataclass(frozen=True)
class ImportParts:
    """The components; `origin` names the file that the text came from."""

    upload: gr.File
    text: gr.Textbox
    look: gr.Button
    report: gr.HTML
    keeping: gr.Column
    name: gr.Textbox
    save: gr.Button
    origin: gr.Textbox
    sources: gr.HTML

    def looked(self) -> list[Any]:
        """What a look at a file changes."""
        return [self.text, self.report, self.keeping, self.name, self.origin, self.upload]


def draw_importing() -> ImportParts:
    """Lay it out."""
    with gr.Column(elem_classes="rs-card", elem_id="import-card"):
        block("import-heading", heading(say("library.import")))
        block("import-lead", soft(say("library.import_lead")))
        with gr.Row(elem_classes="rs-columns", equal_height=False):
            with gr.Column(scale=20, min_width=280):
                text = field(gr.Textbox, "pasted", lines=9, max_lines=22)
                look = gr.Button(
                    say("library.look_at"), elem_id="look-at-import", size="md", scale=0
                )
            with gr.Column(scale=10, min_width=220):
                upload = gr.File(
                    label=say("library.drop_preset"), elem_id="field-preset-file", height=150,
                    file_types=FILE_TYPES,
                )  # fmt: skip
        report = block("import-report")
        with gr.Column(visible=False, elem_id="import-keeping") as keeping:
            name = field(gr.Textbox, "import_name", max_lines=1)
            save = gr.Button(
                say("library.save_import"), variant="primary", elem_id="save-import", size="md",
                scale=0,
            )  # fmt: skip
    with gr.Column(elem_classes="rs-card", elem_id="sources-card"):
        sources = block("preset-sources")
    return ImportParts(
        upload, text, look, report, keeping, name, save, hidden("import-origin"), sources
    )  # fmt: skip


class ImportHandlers:
    """What the import does; nothing is kept before somebody says so."""

    def __init__(
        self, parts: ImportParts, presets: PresetHandlers, tabs: gr.Tabs, settings: PageSettings
    ) -> None:
        self.parts, self.presets, self.tabs = parts, presets, tabs
        self.settings = settings

    def connect(self, page: gr.Blocks) -> None:
        """Give the events their handlers; called inside the page's context."""
        page.load(self.show_sources, None, self.parts.sources, api_name="preset_sources", **QUICK)
        parts, looked = self.parts, self.parts.looked()
        parts.upload.upload(
            self.read, {parts.upload}, looked, api_name="read_preset_file", **QUEUED
        )
        parts.look.click(
            self.look, {parts.text, parts.origin}, looked, api_name="look_at_import", **QUEUED
        )
        outputs = dict.fromkeys([*self.presets.parts.opened(), *looked, self.tabs])
        parts.save.click(
            self.save, {parts.text, parts.origin, parts.name, self.presets.token}, list(outputs),
            api_name="save_import", **QUEUED,
        )  # fmt: skip

    @quiet
    def show_sources(self) -> Changes:
        """The libraries as they are now; asked for by itself, as a share may be slow."""
        return {self.parts.sources: source_table(source_views(Library()))}

    @careful
    def read(self, data: Changes) -> Changes:
        """Put an uploaded file into the field and say what becomes of it."""
        path = data[self.parts.upload]
        if not isinstance(path, str):
            return {}
        file = Path(path)
        content = yaml_text.read_bytes(file)
        with suppress(OSError):
            file.unlink()
        found = import_text(content, origin=file.name)
        text = content[: yaml_text.MAX_BYTES].decode("utf-8-sig", "replace")
        shown = "" if found.refused is not None and "\ufffd" in text else text
        parts = self.parts
        more = {parts.text: shown, parts.origin: file.name, parts.upload: None}
        return {**self._looked(found), **more}

    @careful
    def look(self, data: Changes) -> Changes:
        """Say what becomes of the text."""
        return self._looked(self._import(data))

    @acts("import a preset")
    def save(self, data: Changes) -> Changes:
        """Keep it under a name that is free."""
        parts, name = self.parts, text_of(data[self.parts.name]) or ""
        about(name)
        require_token(data[self.presets.token], self.settings.token)
        found = self._import(data)
        if found.refused is not None:
            raise PresetError(found.refused)
        kept = preset_store.save(name, found.text)
        inform(say("library.imported", preset=kept.name))
        return {
            **self.presets.opened(kept.name),
            parts.text: "", parts.report: "", parts.origin: "",
            parts.keeping: gr.Column(visible=False),
            self.tabs: gr.Tabs(selected="presets"),
        }  # fmt: skip

    def _import(self, data: Mapping[Any, Any]) -> Import:
        text = data[self.parts.text]
        if not isinstance(text, str) or not text.strip():
            raise PresetError(say("library.nothing_pasted"))
        origin = text_of(data[self.parts.origin]) or PASTED
        return import_text(text.encode("utf-8", "replace"), origin=origin)

    def _looked(self, found: Import) -> Changes:
        parts, preset = self.parts, found.preset
        adapted = adaptations(preset, self.settings.hardware) if preset is not None else ()
        changes: Changes = {
            parts.report: import_report(found, adapted),
            parts.keeping: gr.Column(visible=preset is not None),
        }
        if preset is not None:
            changes[parts.name] = preset_store.free_name(found.name)
        return changes
