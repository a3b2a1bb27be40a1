"""In what runs differ, as lines of text: requested, and where it is another, what really ran."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from app.views import figures
from ringside.compare import Difference
from ringside.words import say

MAX_TEXT = 80
IN_BYTES = re.compile(r"_bytes(_|$)")


@dataclass(frozen=True)
class ContrastLine:
    """One setting: its part, its name, and a text for each run."""

    group: str
    name: str
    values: tuple[str, ...]


def contrast_lines(differences: Sequence[Difference]) -> tuple[ContrastLine, ...]:
    """All lines in the order of their parts."""
    return tuple(
        ContrastLine(say(f"compare.group_{one.group}"), _name(one), _values(one))
        for one in differences
    )


def _name(one: Difference) -> str:
    name = one.name.replace("_", " ") if one.group != "environment" else one.name
    return say("compare.observed_only", name=name) if one.requested is None else name


def _values(one: Difference) -> tuple[str, ...]:
    asked, seen = one.requested, one.observed
    if asked is None or seen is None:
        return tuple(_text(one.name, value) for value in (asked or seen or ()))
    return tuple(_both(one.name, *pair) for pair in zip(asked, seen, strict=True))


def _both(name: str, asked: Any, seen: Any) -> str:
    """What was asked for; what really ran beside it, where that is known and another."""
    if seen is None or seen == asked:
        return _text(name, asked)
    return say("compare.really", value=_text(name, asked), seen=_text(name, seen))


def _text(name: str, value: Any) -> str:
    if value is None or value == "":
        return figures.DASH
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int) and IN_BYTES.search(name):
        return figures.size(value)
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, list | tuple):
        value = ", ".join(_text(name, one) for one in value) or figures.DASH
    text = str(value)
    return text if len(text) <= MAX_TEXT else text[: MAX_TEXT - 1] + "…"
