"""The log card: what is new comes with the polls, the rest on demand from `files`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gradio as gr

from app.page.draw import heading
from app.page.frame import block, changed
from app.views.logs import CONSOLE, log_choices, read_log
from ringside.rundir import RunDir
from ringside.words import catalogue, say

SHOW_LOG = Path(__file__).with_name("log.js").read_text(encoding="utf-8")
LOG_TEMPLATE = """
<div class="rs-tools" role="group" aria-label="${name}">
  <input type="search" class="rs-search" placeholder="${words.search}" aria-label="${words.search}">
  <button type="button" data-do="before" title="${words.before}"
    aria-label="${words.before}">↑</button>
  <button type="button" data-do="next" title="${words.next}" aria-label="${words.next}">↓</button>
  <span class="rs-log-count rs-soft" role="status"></span>
  <button type="button" data-do="whole">${words.whole}</button>
  <span class="rs-grow"></span>
  <button type="button" data-do="follow" aria-pressed="true"
    title="${words.follow_help}">${words.pause}</button>
  <button type="button" data-do="copy">${words.copy}</button>
  <a data-do="download" download>${words.download}</a>
</div>
<div class="rs-hits" hidden></div>
<button type="button" class="rs-log-more" data-do="earlier" hidden>${words.earlier}</button>
<pre class="rs-log" tabindex="0" role="log" aria-label="${name}" data-empty="${empty}"></pre>
<button type="button" class="rs-log-more" data-do="end" hidden>${words.end}</button>
"""
WORDS = (
    "search", "before", "next", "whole", "searching", "count", "none", "pause", "follow",
    "follow_help", "download", "earlier", "end", "failed",
)  # fmt: skip

Changes = dict[Any, Any]


@dataclass(frozen=True)
class LogParts:
    """Which log, and its text."""

    choice: gr.Dropdown
    log: gr.HTML


def log_words() -> dict[str, str]:
    """What stands on the card."""
    found = {name: template(f"log.{name}") for name in WORDS}
    return found | {"copy": say("copy.copy"), "copied": say("copy.copied")}


def template(key: str) -> str:
    """Words whose values are filled in by the browser."""
    return catalogue()[key]


def draw_log() -> LogParts:
    """Lay the card out; called inside the page's context."""
    with gr.Column(elem_classes="rs-card", elem_id="log-card"):
        with gr.Row(elem_classes="rs-row rs-headline"):
            block("log-heading", heading(say("run.log")), scale=1)
            choice = gr.Dropdown(
                label=say("field.log"),
                info=say("help.log"),
                elem_id="field-log",
                choices=[(say("log.console"), CONSOLE)],
                value=CONSOLE,
                filterable=False,
                scale=0,
                min_width=220,
            )
        log = gr.HTML(
            None,
            html_template=LOG_TEMPLATE,
            js_on_load=SHOW_LOG,
            apply_default_css=False,
            elem_id="log",
            name=say("run.log"),
            empty=say("run.no_log"),
            words=log_words(),
        )
    return LogParts(choice, log)


def log_changes(parts: LogParts, run: RunDir, key: object, seen: dict[str, Any]) -> Changes:
    """What the browser does not hold yet, noting in `seen` how far it is then."""
    choices = log_choices(run)
    new = changed({"log_choice": choices}, seen)
    seen |= {name: digest for name, (_, digest) in new.items()}
    found: Changes = {parts.choice: gr.Dropdown(choices=choices)} if new else {}
    asked = key if isinstance(key, str) else CONSOLE
    shown, offset = _read_offset(seen.get("log"))
    chunk = read_log(run, asked, offset if shown == asked else None)
    seen["log"] = [asked, chunk.offset]
    if chunk.text or shown != asked or chunk.reset:
        found[parts.log] = {
            "run": run.id, "key": asked, "text": chunk.text, "reset": chunk.reset,
            "start": chunk.start, "offset": chunk.offset,
        }  # fmt: skip
    return found


def _read_offset(value: Any) -> tuple[str | None, int | None]:
    match value:
        case [str(key), int(offset)] if offset >= 0:
            return key, offset
    return None, None
