"""The Library page's HTML for playbooks: the list, one of them, and the one under way."""

from __future__ import annotations

import time
from collections.abc import Sequence
from html import escape
from urllib.parse import quote

from app.page.draw import items, soft, table, with_code
from app.page.draw.library import none_fits, search
from app.views import figures
from app.views.library_making import MakingState
from app.views.library_playbooks import PlaybookRow, PlaybookView
from ringside.words import say

RUN_COLUMNS = ("run", "preset", "verdict", "speedup", "auc", "f1")


def playbook_list(rows: Sequence[PlaybookRow]) -> str:
    """All playbooks below a field that finds some by model, hardware, cause or word."""
    if not rows:
        title = escape(say("library.no_playbooks_title"))
        return f'<div class="rs-empty"><b>{title}</b>{soft(say("library.no_playbooks"))}</div>'
    found = "".join(map(_line, rows))
    return search("library.search_playbooks") + f'<ul class="rs-shelf">{found}</ul>{none_fits()}'


def playbook_head(view: PlaybookView) -> str:
    """What it is about, its runs, and what may be done with it here."""
    row = view.row
    tags = (row.place, row.made, row.causes)
    facts = "".join(f"<dt>{escape(k)}</dt><dd>{escape(v)}</dd>" for k, v in view.facts)
    columns = [say(f"library.column_{name}") for name in RUN_COLUMNS]
    runs = table(columns, [[escape(cell) for cell in run] for run in view.runs], left=3)
    name = quote(row.name)
    left = items(view.left_out, "rs-list rs-soft")
    fold = (
        f'<details class="rs-setup"><summary>{escape(say("library.left_out"))}</summary>{left}'
        "</details>"
        if left
        else ""
    )
    return (
        f'<div class="rs-opened"><h2 class="rs-name">{escape(row.title)}</h2>'
        f'<p class="rs-line"><code class="rs-code">{escape(row.name)}</code>'
        f"{''.join(f'<span>{escape(tag)}</span>' for tag in tags if tag)}</p>"
        f"<p>{escape(view.summary)}</p>"
        f'<dl class="rs-about">{facts}</dl><div class="rs-pairs">{runs}</div>'
        f'<p class="rs-links"><a class="rs-button" href="playbook/{name}/zip" download>'
        f"{escape(say('library.download'))}</a>"
        f'<a class="rs-button" href="playbook/{name}/page" target="_blank" rel="noopener">'
        f"{escape(say('library.open_page'))}</a></p>{fold}</div>"
    )


def playbook_replay(view: PlaybookView) -> str:
    """Buttons that fill the form of Train with its run, adapted to the devices of here."""
    ways: list[tuple[str, str]] = [(way.kind, way.sentence) for way in view.ways]
    found = ways or [("", say("library.as_it_was"))]
    lines = "".join(
        f'<li>{with_code(sentence)} <button type="button" class="rs-button" '
        f'data-press="{escape(kind)}">{escape(say("library.replay"))}</button></li>'
        for kind, sentence in found
    )
    title = escape(say("library.replay_title"))
    return (
        f'<h3 class="rs-h3">{title}</h3><ul class="rs-list rs-ways">{lines}</ul>'
        f"{items(view.notes, 'rs-list rs-soft')}"
    )


def playbook_frame(name: str) -> str:
    """The playbook's own page; a stranger may have written it, so nothing in it runs."""
    title = escape(say("library.frame", name=name))
    return (
        f'<details class="rs-setup rs-frame"><summary>{escape(say("library.look"))}</summary>'
        f'<iframe sandbox="" loading="lazy" title="{title}" '
        f'src="playbook/{quote(name)}/page"></iframe></details>'
    )


def playbook_pairs_table(
    pairs: Sequence[tuple[str, str, str, str]], first: str, second: str
) -> str:
    """What two playbooks differ in, group by group."""
    if not pairs:
        return soft(say("library.same_playbooks"))
    rows = [
        [escape(group), f"<code>{escape(name)}</code>", escape(left), escape(right)]
        for group, name, left, right in pairs
    ]
    columns = (say("library.group"), say("library.setting"), first, second)
    return f'<div class="rs-pairs">{table(columns, rows, left=4)}</div>'


def making_line(state: MakingState) -> str:
    """The playbook under way, or what came of it; empty before there was any."""
    if state.kind == "none":
        return ""
    if state.kind == "running":
        gone = figures.since(state.started_t, time.time())
        line = escape(say("library.making", gone=gone))
        return (
            f'<div class="rs-progress" role="status"><span>{line}</span><progress></progress></div>'
        )
    if state.kind == "failed":
        return f'<p class="rs-bad" role="alert">{with_code(state.sentence)}</p>'
    link = f'<a href="library?playbook={quote(state.name)}">{escape(state.name)}</a>'
    words = escape(say("library.made", name="{name}")).replace("{name}", link)
    return f'<p class="rs-soft" role="status">{words}</p>'


def _line(row: PlaybookRow) -> str:
    name = escape(row.name)
    if row.fault is not None:
        return f'<li><b>{name}</b><p class="rs-bad">{with_code(row.fault)}</p></li>'
    tags = (row.place, row.model, row.hardware, row.preset, row.made)
    line = "".join(f"<span>{escape(tag)}</span>" for tag in tags)
    gain = say("library.gain", speedup=row.speedup, causes=row.causes)
    return (
        f'<li><a href="library?playbook={quote(row.name)}" data-choose="{name}">'
        f"<b>{escape(row.title)}</b> <code>{name}</code>"
        f'<span class="rs-line">{line}</span><em>{escape(gain)}</em></a></li>'
    )
