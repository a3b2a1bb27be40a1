"""What a person says about a run, and how it goes when it is over: the card on its page."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import gradio as gr
from gradio.components import Component

from app.page.draw import soft
from app.page.draw.listing import said_about
from app.page.frame import PRIVATE, QUEUED, acts, block, careful, changed, hidden, inform
from app.page.runs.opened import OpenedRun
from app.page.train.form import field
from app.views import figures
from app.views.listing import num_measured_against
from ringside.errors import RunDirError
from ringside.shelf.deleting import check_deletable, move_aside, size_of
from ringside.shelf.notes import Notes, edit_notes, read_notes, split_tags
from ringside.words import say

Changes = dict[Any, Any]
TO_THE_LIST = "(gone) => { if (gone) window.location.href = 'runs'; }"
GONE = "shelf.no_run"


@dataclass(frozen=True)
class ShelfParts:
    """The components.

    `held` is the digest of what the fields were filled with, `asked` the run that the open question
    is about, and `gone` one that was deleted.
    """

    said: gr.HTML
    tags: gr.Textbox
    note: gr.Textbox
    save: gr.Button
    archive: gr.Button
    delete: gr.Button
    confirm: gr.Column
    question: gr.HTML
    yes: gr.Button
    no: gr.Button
    held: gr.Textbox
    asked: gr.Textbox
    gone: gr.Textbox

    def polled(self) -> list[Any]:
        """What a poll may change: not the fields, in which somebody may be typing."""
        return [self.said, self.archive]

    def filled(self) -> list[Any]:
        """What is filled in when the page opens, and after a change made here."""
        return [self.said, self.archive, self.tags, self.note, self.held]


def draw_shelf(said: gr.HTML) -> ShelfParts:
    """Lay the card out, folded; `said` stands under the run's name."""
    button: dict[str, Any] = {"size": "md", "scale": 0, "min_width": 110}
    with gr.Accordion(say("shelf.title"), open=False, elem_id="shelf", elem_classes="rs-card"):
        tags = field(gr.Textbox, "tags", max_lines=1)
        note = field(gr.Textbox, "note", lines=2, max_lines=8)
        with gr.Row(elem_classes="rs-row rs-buttons"):
            save = gr.Button(say("shelf.save"), elem_id="save-notes", **button)
            archive = gr.Button(say("shelf.archive"), elem_id="archive", **button)
            delete = gr.Button(say("shelf.delete"), elem_id="delete", **button)
        with gr.Column(visible=False, elem_id="delete-confirm") as confirm:
            question = block("delete-question")
            with gr.Row(elem_classes="rs-row rs-buttons"):
                yes = gr.Button(say("shelf.delete"), variant="stop", elem_id="delete-yes", **button)
                no = gr.Button(say("shelf.sure_no"), elem_id="delete-no", **button)
    return ShelfParts(
        said, tags, note, save, archive, delete, confirm, question, yes, no,
        hidden("notes-held"), hidden("delete-asked"), hidden("deleted"),
    )  # fmt: skip


class ShelfHandlers:
    """What the card does."""

    def __init__(self, parts: ShelfParts, opened: OpenedRun) -> None:
        self.parts, self.run, self.settings = parts, opened, opened.settings

    def connect(self) -> None:
        """Give the card's events their handlers; called inside the page's context."""
        parts, who = self.parts, self.run.who()
        gr.on(
            [parts.save.click, parts.tags.submit], self.save,
            who | {parts.tags, parts.note, parts.held}, parts.filled(),
            api_name="save_notes", **QUEUED,
        )  # fmt: skip
        parts.archive.click(
            self.archive, who, [parts.said, parts.archive], api_name="archive", **QUEUED
        )
        question = [parts.confirm, parts.question, parts.yes, parts.asked]
        parts.delete.click(self.ask, {self.run.id}, question, api_name="ask_to_delete", **QUEUED)
        parts.no.click(self.keep, None, question, api_name="keep_run", **QUEUED)
        deleted = parts.yes.click(
            self.delete, who | {parts.asked}, [parts.gone], api_name="delete_run", **QUEUED
        )
        deleted.success(None, parts.gone, None, js=TO_THE_LIST, api_name="delete_open", **PRIVATE)

    def changes(self, notes: Notes, seen: dict[str, Any]) -> Changes:
        """What the browser does not hold yet, noting it in `seen`."""
        new = changed({"notes": notes}, seen)
        seen |= {name: digest for name, (_, digest) in new.items()}
        return self._shown(notes) if new else {}

    def fill(self, run_id: str) -> Changes:
        """The fields of a run whose page opens."""
        run = self.settings.desk.exact(run_id)
        return {} if run is None else self._filled(read_notes(run))

    @acts("write notes")
    def save(self, data: Mapping[Component, Any]) -> Changes:
        """Keep the tags and the note as they stand in the fields."""
        run, parts = self.run.asked(data, GONE), self.parts
        if data[parts.held] != _digest(read_notes(run)):
            raise RunDirError(say("shelf.changed_meanwhile"))
        tags, note = split_tags(data[parts.tags] or ""), data[parts.note] or ""
        notes = edit_notes(run, tags=tags, note=note)
        inform(say("shelf.saved"), seconds=3)
        return self._filled(notes)

    @acts("archive or bring back")
    def archive(self, data: Mapping[Component, Any]) -> Changes:
        """Put the run away, or bring it back."""
        run = self.run.asked(data, GONE)
        return self._shown(edit_notes(run, archived=not read_notes(run).archived))

    @careful
    def ask(self, data: Mapping[Component, Any]) -> Changes:
        """Say what would be gone, before anything is."""
        run, parts = self.run.named(data, GONE), self.parts
        check_deletable(self.settings.runs_root, run)
        size = size_of(run)
        sentences = [
            say("shelf.sure", run=run.name, size=figures.size(size.num_bytes), n=size.num_files)
        ]
        if n := num_measured_against(self.settings.desk.rows(), run.id):
            sentences.append(say("shelf.sure_baseline", n=n))
        return {
            parts.confirm: gr.Column(visible=True),
            parts.question: soft(" ".join(sentences)),
            parts.yes: gr.Button(say("shelf.sure_yes", run=run.name)),
            parts.asked: run.id,
        }

    @careful
    def keep(self) -> Changes:
        """Close the question."""
        return {self.parts.confirm: gr.Column(visible=False), self.parts.asked: ""}

    @acts("delete")
    def delete(self, data: Mapping[Component, Any]) -> Changes:
        """Move the run aside, which takes it out of the list, and remove it in the background."""
        run = self.run.asked(data, GONE)
        if data[self.parts.asked] != run.id:
            raise RunDirError(say("shelf.stale_question"))
        move_aside(self.settings.runs_root, run)
        self.settings.leftovers.empty_trash()
        return {self.parts.gone: run.id}

    def _shown(self, notes: Notes) -> Changes:
        word = say("shelf.unarchive" if notes.archived else "shelf.archive")
        return {self.parts.said: said_about(notes), self.parts.archive: gr.Button(word)}

    def _filled(self, notes: Notes) -> Changes:
        parts = self.parts
        fields = {parts.tags: " ".join(notes.tags), parts.note: notes.note}
        return {**self._shown(notes), **fields, parts.held: _digest(notes)}


def _digest(notes: Notes) -> str:
    """Equal for what the fields would show alike."""
    return f"{zlib.crc32(repr((notes.tags, notes.note)).encode()):08x}"
