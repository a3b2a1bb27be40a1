"""The editor of a preset: a form or the YAML itself, with what is wrong beside it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import gradio as gr

from app.audit import about
from app.guard import require_token
from app.page.draw import heading
from app.page.draw.library import problem_list
from app.page.frame import QUEUED, QUICK, acts, block, careful, hidden, inform, quiet, warn
from app.page.library.presets import PresetHandlers, text_of
from app.page.settings import PageSettings
from app.page.train.form import field
from app.views.library import is_own, text_at
from ringside import preset_store
from ringside.errors import PresetError
from ringside.preset_editing import Fields, fields_of, problems, with_fields
from ringside.presets import Library
from ringside.words import say
from ringside.yaml_text import MAX_BYTES, FaultError

Changes = dict[Any, Any]
FORM, YAML = "form", "yaml"
WORDS = ("title", "why", "when", "limits", "author")
DEVICES = ("cuda", "cpu")


@dataclass(frozen=True)
class EditorParts:
    """The components. `code` holds the text that a form is put into.

    `editing` names the preset and `held` is the checksum of what the editor was filled with.
    """

    box: gr.Column
    mode: gr.Radio
    form: gr.Column
    title: gr.Textbox
    why: gr.Textbox
    when: gr.Textbox
    limits: gr.Textbox
    author: gr.Textbox
    devices: gr.CheckboxGroup
    settings: gr.Textbox
    raw: gr.Column
    code: gr.Code
    problems: gr.HTML
    save: gr.Button
    cancel: gr.Button
    editing: gr.Textbox
    held: gr.Textbox

    def words(self) -> dict[str, gr.Textbox]:
        """The fields of the preset's words by name."""
        return {name: getattr(self, name) for name in WORDS}

    def fields(self) -> list[Any]:
        """What is filled in."""
        return [*self.words().values(), self.devices, self.settings, self.code]

    def shown(self) -> list[Any]:
        """What an opened or a closed editor changes."""
        return [
            self.box, self.mode, self.form, self.raw, self.problems, self.editing, self.held,
            *self.fields(),
        ]  # fmt: skip


def draw_editor() -> EditorParts:
    """Lay it out, closed; called in the column of the opened preset."""
    shown: dict[str, Any] = {}
    with gr.Column(visible=False, elem_id="preset-editor", elem_classes="rs-edit") as box:
        block("editor-heading", heading(say("library.editor")))
        choices = [(say(f"library.as_{name}"), name) for name in (FORM, YAML)]
        shown["mode"] = field(gr.Radio, "edit_as", choices=choices, value=FORM)
        with gr.Column(elem_id="editor-form") as form:
            shown |= _draw_words()
            shown["devices"] = field(
                gr.CheckboxGroup, "preset_devices",
                choices=[(say(f"library.on_{name}"), name) for name in DEVICES],
                value=list(DEVICES),
            )  # fmt: skip
            shown["settings"] = field(gr.Textbox, "preset_settings", lines=4, max_lines=14)
        with gr.Column(visible=False, elem_id="editor-yaml") as raw:
            shown["code"] = gr.Code(
                label=say("library.yaml"), language="yaml", elem_id="field-preset-yaml",
                interactive=True, lines=12, max_lines=28,
            )  # fmt: skip
        shown["problems"] = block("editor-problems")
        with gr.Row(elem_classes="rs-row rs-buttons"):
            small: dict[str, Any] = {"size": "md", "scale": 0, "min_width": 110}
            shown["save"] = gr.Button(
                say("library.save"), variant="primary", elem_id="save-preset", **small
            )
            shown["cancel"] = gr.Button(say("library.cancel"), elem_id="cancel-preset", **small)
    return EditorParts(
        box=box, form=form, raw=raw, editing=hidden("preset-editing"), held=hidden("preset-held"),
        **shown,
    )  # fmt: skip


def _draw_words() -> dict[str, Any]:
    lines = {"title": 1, "why": 2, "when": 2, "limits": 2, "author": 1}
    return {
        name: field(gr.Textbox, f"preset_{name}", lines=n, max_lines=n if n == 1 else 6)
        for name, n in lines.items()
    }


class EditorHandlers:
    """What the editor does; a preset that was changed meanwhile keeps both versions."""

    def __init__(self, parts: EditorParts, presets: PresetHandlers, settings: PageSettings) -> None:
        self.parts, self.presets, self.settings = parts, presets, settings

    def connect(self) -> None:
        """Give the events their handlers; called inside the page's context."""
        parts, chosen = self.parts, self.presets.parts
        chosen.edit.click(self.edit, {chosen.list}, parts.shown(), api_name="edit_preset", **QUEUED)
        inputs = {parts.mode, *parts.fields()}
        parts.mode.input(
            self.turn, inputs, [parts.mode, parts.form, parts.raw, parts.problems, *parts.fields()],
            api_name="edit_as", **QUEUED,
        )  # fmt: skip
        parts.code.change(
            self.check, {parts.mode, parts.code}, parts.problems, trigger_mode="always_last",
            api_name="check_preset", **QUICK,
        )  # fmt: skip
        outputs = dict.fromkeys([*chosen.opened(), *parts.shown()])
        parts.save.click(
            self.save, inputs | {self.presets.token, parts.editing, parts.held}, list(outputs),
            api_name="save_preset", **QUEUED,
        )  # fmt: skip
        parts.cancel.click(self.close, None, parts.box, api_name="cancel_preset", **QUEUED)

    @careful
    def edit(self, data: Changes) -> Changes:
        """Open the editor with the preset as it is now."""
        preset = Library().get(text_of(data[self.presets.parts.list]) or "")
        if not is_own(preset):
            raise PresetError(say("library.not_own", preset=preset.name))
        text = text_at(preset.path)
        return {
            **self._filled(text),
            **self._turned(FORM),
            self.parts.box: gr.Column(visible=True),
            self.parts.problems: "",
            self.parts.editing: preset.name,
            self.parts.held: preset.checksum,
        }

    @careful
    def turn(self, data: Changes) -> Changes:
        """The same preset as the other view of it; a text with faults stays as it is."""
        parts = self.parts
        wanted = YAML if data[parts.mode] == YAML else FORM
        if wanted == YAML:
            text = self._with_form(data)
            return {**self._turned(YAML), parts.code: text, parts.problems: problem_list(())}
        text = _long(data[parts.code])
        if faults := problems(text):
            return {**self._turned(YAML), parts.problems: problem_list(faults)}
        return {**self._turned(FORM), **self._filled(text), parts.problems: ""}

    @quiet
    def check(self, data: Changes) -> Changes:
        """What is wrong with the text, while it is written."""
        if data[self.parts.mode] != YAML:
            return {}
        return {self.parts.problems: problem_list(problems(_long(data[self.parts.code])))}

    @acts("save a preset")
    def save(self, data: Changes) -> Changes:
        """Keep what is written as the preset's new version."""
        parts, name = self.parts, text_of(data[self.parts.editing]) or ""
        about(name)
        require_token(data[self.presets.token], self.settings.token)
        is_yaml = data[parts.mode] == YAML
        text = _ended(_long(data[parts.code]) if is_yaml else self._with_form(data))
        if faults := problems(text):
            warn(PresetError(say("library.has_faults", n=len(faults))))
            return {parts.problems: problem_list(faults)}
        seen = preset_store.seen(Library().get(name), text_of(data[parts.held]) or "")
        try:
            kept = preset_store.replace(seen, text.encode())
        except preset_store.ChangedError:
            preset_store.lay_aside(seen, text.encode())
            warn(PresetError(say("library.changed_meanwhile", preset=name)))
            return {**self.presets.opened(name), parts.box: gr.Column(visible=True)}
        inform(say("library.saved", preset=kept.name))
        return self.presets.opened(kept.name)

    @quiet
    def close(self) -> Changes:
        """Close the editor; what is in it is gone."""
        return {self.parts.box: gr.Column(visible=False)}

    def _filled(self, text: str) -> Changes:
        parts, found = self.parts, fields_of(text)
        words = {part: getattr(found, name) for name, part in parts.words().items()}
        return {
            **words,
            parts.devices: list(found.devices),
            parts.settings: found.settings,
            parts.code: text,
        }

    def _turned(self, mode: str) -> Changes:
        parts = self.parts
        return {
            parts.mode: mode,
            parts.form: gr.Column(visible=mode == FORM),
            parts.raw: gr.Column(visible=mode == YAML),
        }

    def _with_form(self, data: Mapping[Any, Any]) -> str:
        """The text that the editor was filled with, with the form put into it."""
        parts = self.parts
        words = {name: _long(data[part]) for name, part in parts.words().items()}
        devices = data[parts.devices]
        chosen = tuple(one for one in DEVICES if isinstance(devices, list) and one in devices)
        fields = Fields(devices=chosen, settings=_long(data[parts.settings]), **words)
        try:
            return with_fields(_long(data[parts.code]), fields)
        except FaultError as error:
            if error.line is None:
                raise PresetError(error.reason) from None
            raise


def _long(value: Any) -> str:
    """A text that a stranger sent; PresetError for one that is too long, "" for no text."""
    text = value if isinstance(value, str) else ""
    if len(text) > MAX_BYTES:
        raise PresetError(say("library.too_long"))
    return text.replace("\r\n", "\n")


def _ended(text: str) -> str:
    """With the end of its last line, which gr.Code drops (gradio 6.31)."""
    return text if text.endswith("\n") else f"{text}\n"
