"""HTML for what is read, not filled in: tiles, badges, tables, cards. Every text is escaped.

The classes are those of `style.css`; nothing here decides what to show.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from html import escape

from ringside.words import say

PAGES = (
    ("train", "./"), ("runs", "runs"), ("compare", "compare"), ("doctor", "doctor"),
    ("library", "library"),
)  # fmt: skip

# A sign beside the word, so that a state is never told by colour alone.
SIGNS = {
    "queued": "…",
    "launching": "○",
    "running": "●",
    "stopping": "◐",
    "completed": "✓",
    "stopped": "■",
    "failed": "✕",
    "lost": "?",
}

_CODE = re.compile("`([^`]+)`")


def header(active: str, machine: tuple[str, str], aside: str = "") -> str:
    """Brand, navigation, the machine, and the HTML `aside`."""
    links = "".join(
        f'<a href="{path}"{_CURRENT if name == active else ""}>{escape(say(f"page.{name}"))}</a>'
        for name, path in PAGES
    )
    lines = "".join(f"<span>{escape(line)}</span>" for line in machine if line)
    return (
        f'<header class="rs-header"><a class="rs-brand" href="./"><i aria-hidden="true"></i>'
        f"{escape(say('page.title'))}</a>"
        f'<nav aria-label="{escape(say("page.navigation"))}">{links}</nav>'
        f'<div class="rs-machine" aria-label="{escape(say("page.machine"))}">{lines}</div>'
        f"{aside}</header>"
    )


_CURRENT = ' class="on" aria-current="page"'


def title(text: str, lead: str = "") -> str:
    """The heading of a page with one line under it."""
    under = f'<p class="rs-soft">{escape(lead)}</p>' if lead else ""
    return f'<div class="rs-title"><h1>{escape(text)}</h1>{under}</div>'


def heading(text: str, aside: str = "") -> str:
    """The small heading of a card."""
    extra = f' <span class="rs-aside">{escape(aside)}</span>' if aside else ""
    return f'<h2 class="rs-h2">{escape(text)}{extra}</h2>'


def badge(state: str) -> str:
    """A state as sign, word and colour."""
    word = escape(say(f"state.{state}"))
    return (
        f'<span class="rs-badge rs-{escape(state)}" data-state="{escape(state)}">'
        f'<span aria-hidden="true">{SIGNS.get(state, "·")}</span> {word}</span>'
    )


def table(columns: Sequence[str], rows: Iterable[Sequence[str]], *, left: int = 1) -> str:
    """A table of cells that are HTML already; the first `left` columns are words."""

    def line(cells: Sequence[str], tag: str) -> str:
        classes = ("l" if i < left else "r" for i in range(len(cells)))
        return "".join(
            f'<{tag} class="{side}">{cell}</{tag}>'
            for side, cell in zip(classes, cells, strict=True)
        )

    body = "".join(f"<tr>{line(cells, 'td')}</tr>" for cells in rows)
    head = line([escape(column) for column in columns], "th")
    return (
        f'<div class="rs-scroll"><table class="rs-table"><thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def with_code(text: str) -> str:
    """A sentence with its `commands` in the type of code."""
    return _CODE.sub(r'<code class="rs-code">\1</code>', escape(text))


def items(texts: Iterable[str], css: str = "rs-list") -> str:
    """A list of sentences; empty without any."""
    found = "".join(f"<li>{with_code(text)}</li>" for text in texts)
    return f'<ul class="{css}">{found}</ul>' if found else ""


def soft(text: str) -> str:
    """A quiet sentence."""
    return f'<p class="rs-soft">{with_code(text)}</p>'
