"""A drawn chart on the page: what it shows in a sentence, in numbers, and as files."""

from __future__ import annotations

import base64
from html import escape

from app.page.draw import heading, table
from app.views.charts.figure import Picture
from ringside.words import say


def picture_card(picture: Picture, about: str) -> str:
    """The card of a chart; `about` names its files, such as a run."""
    rows = [[escape(cell) for cell in row] for row in picture.rows]
    name = f"ringside-{picture.name}{f'-{about}' if about else ''}"
    files = (("svg", "image/svg+xml", picture.svg.encode()), ("png", "image/png", picture.png))
    links = "".join(
        file_link(f"{name}.{kind}", mime, data, say(f"consult.as_{kind}"))
        for kind, mime, data in files
    )
    numbers = (
        f'<details class="rs-setup"><summary>{escape(say("consult.in_numbers"))}</summary>'
        f"{table(picture.columns, rows)}</details>"
    )
    return (
        f'<figure class="rs-card rs-figure" id="chart-{picture.name}">{heading(picture.title)}'
        f"<figcaption>{escape(picture.headline)}</figcaption>"
        f'<div class="rs-wide">{picture.wide}</div><div class="rs-narrow">{picture.narrow}</div>'
        f'<div class="rs-under rs-figure-foot">{numbers}'
        f'<span class="rs-files">{links}</span></div></figure>'
    )


def file_link(name: str, mime: str, data: bytes, word: str) -> str:
    """A link that saves a small file; nothing is asked from the server."""
    content = base64.b64encode(data).decode()
    return f'<a download="{escape(name)}" href="data:{mime};base64,{content}">{escape(word)}</a>'
