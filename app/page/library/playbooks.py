"""The playbooks on their page: the list, the opened one, making, taking in, replaying."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import gradio as gr

from app.audit import about
from app.guard import require_token
from app.page.draw import heading, soft
from app.page.draw.library import CHOOSE, PRESS
from app.page.draw.playbooks import (
    making_line,
    playbook_frame,
    playbook_head,
    playbook_list,
    playbook_pairs_table,
    playbook_replay,
)
from app.page.frame import PRIVATE, QUEUED, QUICK, acts, block, careful, hidden, inform, quiet
from app.page.library.presets import text_of
from app.page.settings import PageSettings
from app.page.train.form import field
from app.views.library_playbooks import (
    kept_playbook,
    kept_playbooks,
    playbook_pairs,
    playbook_rows,
    playbook_view,
)
from app.views.replaying import make_ready
from ringside.adaptation import Kind
from ringside.errors import PlaybookError
from ringside.playbook import store
from ringside.playbook.gathering import MAX_RUNS
from ringside.words import say

Changes = dict[Any, Any]
POLL_S = 1.0
MAX_OFFERED = 100
MAX_TITLE = 80
KINDS = Kind.__args__  # type: ignore[attr-defined]
TO_TRAIN = "(go) => { if (go) window.location.href = './' + go; }"


@dataclass(frozen=True)
class PlaybookParts:
    """The components; the list's value is the name of the opened playbook.

    `go` becomes the query with which the form of Train is opened.
    """

    runs: gr.Dropdown
    title: gr.Textbox
    make: gr.Button
    making: gr.HTML
    timer: gr.Timer
    upload: gr.File
    list: gr.HTML
    head: gr.HTML
    frame: gr.HTML
    replay: gr.HTML
    buttons: gr.Row
    unpack: gr.Button
    remove: gr.Button
    confirm: gr.Column
    question: gr.HTML
    yes: gr.Button
    no: gr.Button
    asked: gr.Textbox
    side: gr.Column
    against: gr.Dropdown
    difference: gr.HTML
    go: gr.Textbox

    def opened(self) -> list[Any]:
        """What changes when another playbook is opened."""
        return [
            self.list, self.head, self.frame, self.replay, self.buttons, self.unpack, self.remove,
            self.confirm, self.asked, self.side, self.against, self.difference,
        ]  # fmt: skip


def draw_playbooks() -> PlaybookParts:
    """Lay it out: making and taking in, then list and detail beside each other."""
    shown = _draw_making()
    with gr.Row(elem_classes="rs-columns rs-top"):
        with gr.Column(scale=17, min_width=300, elem_classes="rs-card"):
            block("playbooks-heading", heading(say("library.playbooks")))
            shown["list"] = gr.HTML(
                "", html_template="${list}", list="", detail="playbook-opened", js_on_load=CHOOSE,
                apply_default_css=False, elem_id="playbook-list",
            )  # fmt: skip
        with gr.Column(scale=30, min_width=320, elem_classes="rs-card", elem_id="playbook-opened"):
            shown |= _draw_detail()
    names = {"asked": "playbook-asked", "go": "playbook-go"}
    kept = {name: hidden(elem_id) for name, elem_id in names.items()}
    return PlaybookParts(timer=gr.Timer(POLL_S, active=False), **shown, **kept)


def _draw_making() -> dict[str, Any]:
    with gr.Row(elem_classes="rs-columns rs-top"):
        with gr.Column(scale=30, min_width=320, elem_classes="rs-card", elem_id="make-card"):
            block("make-heading", heading(say("library.make")))
            block("make-lead", soft(say("library.make_lead")))
            runs = field(
                gr.Dropdown, "playbook_runs", choices=[], value=[], multiselect=True,
                allow_custom_value=True, max_choices=MAX_RUNS,
            )  # fmt: skip
            title = field(gr.Textbox, "playbook_title", max_lines=1)
            make = gr.Button(
                say("library.make"), variant="primary", elem_id="make-playbook", size="md", scale=0
            )
            making = block("making")
        with gr.Column(scale=17, min_width=300, elem_classes="rs-card", elem_id="take-in-card"):
            block("take-in-heading", heading(say("library.take_in")))
            block("take-in-lead", soft(say("library.take_in_lead")))
            upload = gr.File(
                label=say("library.drop_playbook"), elem_id="field-playbook-file", height=130,
                file_types=[".zip"],
            )  # fmt: skip
    return {"runs": runs, "title": title, "make": make, "making": making, "upload": upload}


def _draw_detail() -> dict[str, Any]:
    small: dict[str, Any] = {"size": "md", "scale": 0, "min_width": 110}
    shown: dict[str, Any] = {"head": block("playbook-head")}
    with gr.Row(elem_classes="rs-row rs-buttons", visible=False, elem_id="playbook-buttons") as row:
        shown["unpack"] = gr.Button(say("library.unpack"), elem_id="unpack-playbook", **small)
        shown["remove"] = gr.Button(say("library.delete"), elem_id="remove-playbook", **small)
    with gr.Column(visible=False, elem_id="playbook-confirm", elem_classes="rs-confirm") as confirm:
        shown["question"] = block("playbook-question")
        with gr.Row(elem_classes="rs-row rs-buttons"):
            shown["yes"] = gr.Button(
                say("library.delete"), variant="stop", elem_id="remove-playbook-yes", **small
            )
            shown["no"] = gr.Button(say("library.keep"), elem_id="remove-playbook-no", **small)
    shown["replay"] = gr.HTML(
        "", html_template="${list}", list="", js_on_load=PRESS, apply_default_css=False,
        elem_id="playbook-replay",
    )  # fmt: skip
    shown["frame"] = block("playbook-frame")
    with gr.Column(visible=False, elem_id="playbook-side") as side:
        shown["against"] = field(
            gr.Dropdown, "against_playbook", choices=[], value="", allow_custom_value=True
        )
        shown["difference"] = block("playbook-difference")
    return shown | {"buttons": row, "confirm": confirm, "side": side}


class PlaybookHandlers:
    """What the playbooks' part of the page does."""

    def __init__(self, parts: PlaybookParts, token: gr.Textbox, settings: PageSettings) -> None:
        self.parts, self.token, self.settings = parts, token, settings

    def connect(self) -> None:
        """Give the events their handlers; called inside the page's context."""
        parts = self.parts
        opened, which = parts.opened(), {self.token, parts.list}
        parts.list.submit(
            self.show, {parts.list}, opened[1:], trigger_mode="always_last",
            api_name="show_playbook", **QUICK,
        )  # fmt: skip
        parts.against.input(
            self.differ, {parts.list, parts.against}, parts.difference,
            trigger_mode="always_last", api_name="playbook_difference", **QUICK,
        )  # fmt: skip
        parts.make.click(
            self.make, {self.token, parts.runs, parts.title}, [parts.making, parts.timer],
            api_name="make_playbook", **QUEUED,
        )  # fmt: skip
        parts.timer.tick(
            self.poll, None, [parts.making, parts.timer, *opened], api_name="poll_making",
            **QUICK,
        )  # fmt: skip
        parts.upload.upload(
            self.take_in, {self.token, parts.upload}, [parts.upload, *opened],
            api_name="import_playbook", **QUEUED,
        )  # fmt: skip
        parts.unpack.click(self.unpack, which, opened, api_name="unpack_playbook", **QUEUED)
        asked = [parts.confirm, parts.question, parts.asked]
        parts.remove.click(self.ask, {parts.list}, asked, api_name="ask_to_remove", **QUEUED)
        parts.no.click(
            self.keep, None, [parts.confirm, parts.asked], api_name="keep_playbook", **QUEUED
        )
        parts.yes.click(
            self.remove, which | {parts.asked}, opened, api_name="remove_playbook", **QUEUED
        )
        replayed = parts.replay.submit(
            self.replay, which | {parts.replay}, parts.go, api_name="replay_playbook", **QUEUED
        )
        replayed.success(
            None, parts.go, None, js=TO_TRAIN, api_name="replay_playbook_open", **PRIVATE
        )

    def offered(self, run_ids: Sequence[str]) -> Changes:
        """The runs that a playbook can be made of, with these chosen; and the one under way."""
        rows = self.settings.desk.rows()
        over = [row for row in rows if row.state in ("completed", "stopped")][:MAX_OFFERED]
        choices = [(f"{row.name} · {row.preset} · {row.model}", row.id) for row in over]
        ids = {name: row.id for row in rows for name in (row.id, row.name)}
        chosen = list(dict.fromkeys(ids[name] for name in run_ids if name in ids))[:MAX_RUNS]
        return {self.parts.runs: gr.Dropdown(choices=choices, value=chosen), **self._making()}

    def opened(self, name: str | None) -> Changes:
        """The list as it is now, with the playbook of this name opened; nothing for none."""
        parts, entries = self.parts, kept_playbooks()
        entry = next((one for one in entries if one.name == name and one.playbook), None)
        shown = playbook_list(playbook_rows(entries))
        closed: Changes = {
            parts.list: gr.HTML(value=entry.name if entry else "", list=shown),
            parts.confirm: gr.Column(visible=False), parts.asked: "", parts.difference: "",
        }  # fmt: skip
        if entry is None:
            return closed | {
                parts.head: soft(say("library.choose_playbook")), parts.frame: "",
                parts.replay: gr.HTML(list=""), parts.buttons: gr.Row(visible=False),
                parts.side: gr.Column(visible=False),
            }  # fmt: skip
        view = playbook_view(entry, self.settings.hardware)
        others = [(one.name, one.name) for one in entries if one.playbook and one is not entry]
        return closed | {
            parts.head: playbook_head(view),
            parts.frame: playbook_frame(entry.name),
            parts.replay: gr.HTML(list=playbook_replay(view)),
            parts.buttons: gr.Row(visible=view.is_own or view.is_packed),
            parts.unpack: gr.Button(visible=view.is_packed),
            parts.remove: gr.Button(visible=view.is_own),
            parts.side: gr.Column(visible=bool(others)),
            parts.against: gr.Dropdown(choices=others, value=None),
        }

    @quiet
    def show(self, data: Changes) -> Changes:
        """Open the chosen playbook; the list keeps its place and the words looked for."""
        changes = self.opened(text_of(data[self.parts.list]))
        del changes[self.parts.list]
        return changes

    @quiet
    def differ(self, data: Changes) -> Changes:
        """What the opened playbook and another one differ in."""
        names = [text_of(data[part]) for part in (self.parts.list, self.parts.against)]
        first, second = map(kept_playbook, names)
        pairs = playbook_pairs(first, second)
        return {self.parts.difference: playbook_pairs_table(pairs, first.name, second.name)}

    @acts("make a playbook")
    def make(self, data: Changes) -> Changes:
        """Begin to make one of the chosen runs; the timer tells when it is there."""
        parts = self.parts
        chosen = data[parts.runs] if isinstance(data[parts.runs], list) else []
        about(*(str(one)[:40] for one in chosen[:MAX_RUNS]))
        require_token(data[self.token], self.settings.token)
        runs = [self.settings.desk.exact(one) for one in chosen if isinstance(one, str)]
        if not runs or None in runs or len(runs) > MAX_RUNS:
            raise PlaybookError(say("library.choose_runs", limit=MAX_RUNS))
        title = str(data[parts.title] or "").strip()[:MAX_TITLE] or None
        self.settings.making.start([run.id for run in runs if run is not None], title)
        return self._making()

    @quiet
    def poll(self) -> Changes:
        """Where the playbook under way stands; once it is there, it is opened."""
        state = self.settings.making.state
        if state.kind == "done":
            return {**self._making(), **self.opened(state.name)}
        return self._making()

    @acts("import a playbook")
    def take_in(self, data: Changes) -> Changes:
        """Take an uploaded zip in: its preset into the library, its runs to look at."""
        path = data[self.parts.upload]
        require_token(data[self.token], self.settings.token)
        if not isinstance(path, str):
            raise PlaybookError(say("library.no_zip_given"))
        about(Path(path).name)
        try:
            receipt = store.import_playbook(Path(path))
        finally:
            with suppress(OSError):
                Path(path).unlink()
        _told(receipt)
        return {self.parts.upload: None, **self.opened(receipt.name)}

    @acts("unpack a playbook")
    def unpack(self, data: Changes) -> Changes:
        """Import one that is kept as a zip, so that its runs can be looked at."""
        receipt = store.import_playbook(self._asked(data).path)
        _told(receipt)
        return self.opened(receipt.name)

    @careful
    def ask(self, data: Changes) -> Changes:
        """Say what will be gone, before anything is."""
        parts, entry = self.parts, kept_playbook(text_of(data[self.parts.list]))
        return {
            parts.confirm: gr.Column(visible=True),
            parts.question: soft(say("library.sure_playbook", name=entry.name)),
            parts.asked: entry.name,
        }

    @careful
    def keep(self) -> Changes:
        """Close the question."""
        return {self.parts.confirm: gr.Column(visible=False), self.parts.asked: ""}

    @acts("delete a playbook")
    def remove(self, data: Changes) -> Changes:
        """Delete it for good; the preset that came with it stays."""
        entry = self._asked(data)
        if data[self.parts.asked] != entry.name:
            raise PlaybookError(say("library.stale_question"))
        store.remove_playbook(entry.name)
        return self.opened(None)

    @acts("replay a playbook")
    def replay(self, data: Changes) -> Changes:
        """Have its preset in the library, and open Train with its run adapted to this machine."""
        entry = self._asked(data)
        kind = text_of(data[self.parts.replay])
        way = f"&way={kind}" if kind in KINDS else ""
        make_ready(entry.name)
        return {self.parts.go: f"?playbook={quote(entry.name)}{way}"}

    def _asked(self, data: Mapping[Any, Any]) -> store.Entry:
        name = text_of(data[self.parts.list])
        about(name)
        require_token(data[self.token], self.settings.token)
        return kept_playbook(name)

    def _making(self) -> Changes:
        state, parts = self.settings.making.state, self.parts
        busy = state.kind == "running"
        return {parts.making: making_line(state), parts.timer: gr.Timer(active=busy)}


def _told(receipt: store.Receipt) -> None:
    key = "library.taken_in" if receipt.is_new else "library.taken_in_known"
    inform(say(key, name=receipt.name, preset=receipt.preset), seconds=6)


def run_names(text: str | None) -> list[str]:
    """The ids or names of an address, `?runs=a,b`."""
    return [name for name in re.split(r"[,\s]+", (text or "")[:1000]) if name][:MAX_RUNS]
