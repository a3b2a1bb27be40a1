"""What the form asks for, kept as a preset: the button, a few words about it, and the name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import gradio as gr
from gradio.components import Component

from app.audit import about
from app.guard import require_token
from app.page.draw import soft
from app.page.frame import QUEUED, acts, block, careful, inform
from app.page.settings import PageSettings
from app.page.train.form import Form, field
from app.views.saving import Words, keep_form, proposed
from ringside.words import say

Changes = dict[Any, Any]


@dataclass(frozen=True)
class SavingParts:
    """The components."""

    open: gr.Button
    box: gr.Column
    name: gr.Textbox
    title: gr.Textbox
    why: gr.Textbox
    when: gr.Textbox
    save: gr.Button
    cancel: gr.Button

    def words(self) -> list[gr.Textbox]:
        """What is filled in."""
        return [self.name, self.title, self.why, self.when]


def draw_saving(button: gr.Button) -> SavingParts:
    """The fields behind the button, closed."""
    small: dict[str, Any] = {"size": "md", "scale": 0, "min_width": 110}
    with gr.Column(visible=False, elem_id="save-form-box", elem_classes="rs-edit") as box:
        block("save-form-lead", soft(say("library.keep_form_lead")))
        with gr.Row(elem_classes="rs-row"):
            name = field(gr.Textbox, "form_name", max_lines=1, min_width=160)
            title = field(gr.Textbox, "form_title", max_lines=1, min_width=200)
        why = field(gr.Textbox, "form_why", lines=2, max_lines=5)
        when = field(gr.Textbox, "form_when", lines=2, max_lines=5)
        with gr.Row(elem_classes="rs-row rs-buttons"):
            save = gr.Button(say("library.save"), variant="primary", elem_id="save-form", **small)
            cancel = gr.Button(say("library.cancel"), elem_id="save-form-cancel", **small)
    return SavingParts(button, box, name, title, why, when, save, cancel)


class SavingHandlers:
    """What it does; nothing that exists is overwritten."""

    def __init__(
        self, parts: SavingParts, form: Form, token: gr.Textbox, settings: PageSettings
    ) -> None:
        self.parts, self.form, self.token, self.settings = parts, form, token, settings

    def connect(self) -> None:
        """Give the events their handlers; called inside the page's context."""
        parts, everything = self.parts, set(self.form.components().values())
        parts.open.click(
            self.ask, everything, [parts.box, *parts.words()], api_name="name_form", **QUEUED
        )
        parts.save.click(
            self.save, everything | {self.token, *parts.words()}, parts.box,
            api_name="save_form", **QUEUED,
        )  # fmt: skip
        parts.cancel.click(self.close, None, parts.box, api_name="close_saving", **QUEUED)

    @careful
    def ask(self, data: Mapping[Component, Any]) -> Changes:
        """Ask for a name and a few words, and propose some."""
        parts = self.parts
        found = proposed(self.form.values(data), self.settings.hardware)
        return {
            parts.box: gr.Column(visible=True), parts.name: found.name, parts.title: found.title,
            parts.why: found.why, parts.when: found.when,
        }  # fmt: skip

    @acts("save the form as a preset")
    def save(self, data: Mapping[Component, Any]) -> Changes:
        """Keep it in the library of this user."""
        parts = self.parts
        name, title, why, when = (str(data[part] or "").strip() for part in parts.words())
        about(name[:80])
        require_token(data[self.token], self.settings.token)
        words = Words(name=name, title=title, why=why, when=when)
        kept = keep_form(self.form.values(data), self.settings.hardware, words)
        inform(say("library.form_kept", preset=kept.name), seconds=6)
        return self.close()  # type: ignore[no-any-return]

    @careful
    def close(self) -> Changes:
        """Close the fields."""
        return {self.parts.box: gr.Column(visible=False)}
