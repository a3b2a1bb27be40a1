"""The list of runs on their page: words, filters and an order; and what is left over of runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import gradio as gr

from app.audit import about
from app.guard import require_token
from app.page.draw import heading
from app.page.draw.listing import leftover_card, paused_line, run_list
from app.page.frame import QUEUED, QUICK, acts, block, changed, quiet
from app.page.settings import PageSettings
from app.page.train.form import field
from app.views.listing import ListRow, find, presets_of, tags_of
from ringside.errors import RunDirError
from ringside.launch import queue
from ringside.launch.queue_order import DIRECTIONS
from ringside.shelf.finding import SORTS, STATES, Query
from ringside.words import say, spoken

Changes = dict[Any, Any]
MAX_SEARCH = 200
MAX_DRAWN = 64

# The list is drawn anew whenever it changes, so its buttons are listened for from outside.
MOVE = """
document.addEventListener('click', (event) => {
  const button = event.target.closest('#run-list button[data-move]');
  if (!button || !element.isConnected) return;
  props.value = `${button.dataset.run}:${button.dataset.move}:${Date.now()}`;
  trigger('submit');  // `change` would fire twice: for the value too
});
"""


@dataclass(frozen=True)
class ListParts:
    """The components of the list; what is asked for comes back with every poll."""

    search: gr.Textbox
    state: gr.Dropdown
    of_preset: gr.Dropdown
    tag: gr.Dropdown
    sort: gr.Dropdown
    archived: gr.Checkbox
    paused: gr.HTML
    pause: gr.Button
    resume: gr.Button
    mover: gr.HTML
    list: gr.HTML
    left: gr.HTML
    clean: gr.Button

    def fields(self) -> list[Any]:
        """What is filled in."""
        return [self.search, self.state, self.of_preset, self.tag, self.sort, self.archived]

    def polled(self) -> list[Any]:
        """What a poll may change."""
        return [self.of_preset, self.tag, *self.queue(), self.list, self.left]

    def queue(self) -> list[Any]:
        """What tells of a pause, and makes or ends one."""
        return [self.paused, self.pause, self.resume]


def draw_listing() -> ListParts:
    """Lay the list out, with its fields above and the leftovers before it."""
    with gr.Column(elem_id="leftovers", elem_classes="rs-card"):
        left = block("leftover-list")
        clean = gr.Button(say("shelf.left_clean"), elem_id="clean-up", size="md", scale=0)
    with gr.Column(elem_classes="rs-card", elem_id="runs-card"):
        with gr.Row(elem_classes="rs-row rs-headline"):
            block("runs-heading", heading(say("runs.title")), scale=1)
            small: dict[str, Any] = {"size": "md", "scale": 0, "visible": False}
            pause = gr.Button(say("queue.pause"), elem_id="pause-queue", **small)
            resume = gr.Button(say("queue.resume"), elem_id="resume-queue", **small)
        paused = block("queue-paused")
        with gr.Row(elem_classes="rs-row rs-filters"):
            fields = _draw_fields()
        shown = block("run-list")
        mover = gr.HTML("", html_template="", js_on_load=MOVE, elem_id="queue-mover")
    return ListParts(
        **fields, paused=paused, pause=pause, resume=resume, mover=mover, list=shown, left=left,
        clean=clean,
    )  # fmt: skip


def _draw_fields() -> dict[str, Any]:
    wide: dict[str, Any] = {"scale": 1, "min_width": 150}
    state_choices = [(say(f"state.{name}"), name) for name in STATES]
    return {
        "search": field(gr.Textbox, "search", max_lines=1, scale=2, min_width=200),
        "state": field(
            gr.Dropdown, "state", choices=_choices("states", state_choices), value="", **wide
        ),
        "of_preset": _open_choice("of_preset", "presets", wide),
        "tag": _open_choice("tag", "tags", wide),
        "sort": field(
            gr.Dropdown, "sort", choices=[(say(f"shelf.sort_{name}"), name) for name in SORTS],
            value=SORTS[0], **wide,
        ),
        "archived": field(gr.Checkbox, "archived", value=False, **wide),
    }  # fmt: skip


def _open_choice(name: str, everything: str, look: Mapping[str, Any]) -> gr.Dropdown:
    """Gradio refuses every event with a choice that is gone meanwhile, but for custom values."""
    choices = _choices(everything, ())
    return field(  # type: ignore[no-any-return]
        gr.Dropdown, name, choices=choices, value="", allow_custom_value=True, **look
    )


def _choices(everything: str, found: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    return [(say(f"shelf.all_{everything}"), ""), *found]


class ListHandlers:
    """What the list does."""

    def __init__(
        self, parts: ListParts, run: gr.Textbox, seen: gr.Textbox, token: gr.Textbox,
        settings: PageSettings,
    ) -> None:  # fmt: skip
        self.parts, self.run, self.seen, self.token = parts, run, seen, token
        self.settings = settings
        self._drawn: tuple[Sequence[ListRow], dict[Any, str]] = ((), {})

    def connect(self) -> None:
        """Give the events their handlers; called inside the page's context."""
        parts = self.parts
        inputs = {self.run, self.seen, *parts.fields()}
        gr.on(
            [part.input for part in parts.fields()], self.find, inputs, [parts.list, self.seen],
            trigger_mode="always_last", api_name="find_runs", **QUICK,
        )  # fmt: skip
        parts.clean.click(self.clean, {self.token}, parts.left, api_name="clean_up", **QUEUED)
        parts.mover.submit(
            self.move, {self.token, parts.mover}, parts.list, api_name="move_in_queue", **QUEUED
        )
        parts.pause.click(self.pause, {self.token}, parts.queue(), api_name="pause_queue", **QUEUED)
        parts.resume.click(
            self.resume, {self.token}, parts.queue(), api_name="resume_queue", **QUEUED
        )

    @quiet
    def find(self, data: Changes) -> Changes:
        """The list as it is asked for now."""
        seen = {"run": data[self.run] or "", **self.settings.memory.recall(data[self.seen])}
        shown = run_list(find(self.settings.desk.rows(), self.query(data)), data[self.run])
        seen |= {name: digest for name, (_, digest) in changed({"list": shown}, {}).items()}
        return {self.parts.list: shown, self.seen: self.settings.memory.keep(seen)}

    @acts("end leftovers")
    def clean(self, data: Changes) -> Changes:
        """End what is left over, in the background; the polls show how it went."""
        require_token(data[self.token], self.settings.token)
        watch = self.settings.leftovers
        watch.clean()
        return {self.parts.left: leftover_card(watch.state)}

    @acts("move in the queue")
    def move(self, data: Changes) -> Changes:
        """Give a waiting run another place; the next poll shows the order."""
        run_id, _, rest = (_text(data[self.parts.mover]) or "").partition(":")
        direction = rest.partition(":")[0]
        about(run_id, direction)
        require_token(data[self.token], self.settings.token)
        run = self.settings.desk.exact(run_id)
        if run is None or direction not in DIRECTIONS:
            raise RunDirError(say("queue.no_move"))
        queue.move(run, direction)
        return {}

    @acts("pause the queue")
    def pause(self, data: Changes) -> Changes:
        """Let no run of this machine out of the queue."""
        return self._set_paused(data, is_paused=True)

    @acts("let the queue go on")
    def resume(self, data: Changes) -> Changes:
        """Let runs out of the queue again."""
        return self._set_paused(data, is_paused=False)

    def _set_paused(self, data: Changes, *, is_paused: bool) -> Changes:
        require_token(data[self.token], self.settings.token)
        queue.set_paused(self.settings.desk.root, is_paused=is_paused)
        return self._queue_parts(is_paused=is_paused, in_use=True)

    def _queue_parts(self, *, is_paused: bool, in_use: bool) -> Changes:
        parts = self.parts
        return {
            parts.paused: paused_line(is_paused),
            parts.pause: gr.Button(visible=in_use and not is_paused),
            parts.resume: gr.Button(visible=is_paused),
        }

    def query(self, data: Mapping[Any, Any]) -> Query:
        """What the fields ask for; a stranger may have sent anything."""
        parts = self.parts
        state, sort = data[parts.state], data[parts.sort]
        return Query(
            search=_text(data[parts.search]) or "",
            state=state if state in STATES else None,
            preset=_text(data[parts.of_preset]),
            tag=_text(data[parts.tag]),
            archived=data[parts.archived] is True,
            sort=sort if sort in SORTS else SORTS[0],
        )

    def _list(self, rows: Sequence[ListRow], query: Query, run_id: str) -> str:
        """Drawn once for all viewers who ask for the same, until a line changes."""
        key = (query, run_id, spoken())
        # By one name throughout: another thread may put other rows in its place meanwhile.
        known = self._drawn
        if known[0] is not rows or len(known[1]) > MAX_DRAWN:
            known = self._drawn = (rows, {})
        drawn = known[1]
        if key not in drawn:
            drawn[key] = run_list(find(rows, query), run_id)
        return drawn[key]

    def changes(
        self, rows: Sequence[ListRow], query: Query, run_id: str, seen: dict[str, Any]
    ) -> Changes:
        """What the browser does not hold yet, noting it in `seen`."""
        parts, presets, tags = self.parts, presets_of(rows), tags_of(rows)
        paused = queue.is_paused(self.settings.desk.root)
        in_use = paused or any(row.is_waiting for row in rows)
        values = {
            "queue": [paused, in_use],
            "list": self._list(rows, query, run_id),
            "left": leftover_card(self.settings.leftovers.state),
            "presets": presets,
            "tags": tags,
        }
        made = {
            parts.list: ("list", lambda: values["list"]),
            parts.left: ("left", lambda: values["left"]),
            parts.of_preset: ("presets", lambda: _chosen("presets", presets)),
            parts.tag: ("tags", lambda: _chosen("tags", tags)),
        }
        new = changed(values, seen)
        seen |= {name: digest for name, (_, digest) in new.items()}
        found = {part: make() for part, (name, make) in made.items() if name in new}
        if "queue" in new:
            found |= self._queue_parts(is_paused=paused, in_use=in_use)
        return found


def _chosen(everything: str, names: Sequence[str]) -> gr.Dropdown:
    return gr.Dropdown(choices=_choices(everything, [(name, name) for name in names]))


def _text(value: Any) -> str | None:
    return value[:MAX_SEARCH] if isinstance(value, str) and value.strip() else None
