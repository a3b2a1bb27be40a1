"""Says a sentence from a file in another language: files of runs are in English.

A sentence was once filled into a template of the catalogue, so it matches that template, and what
stands in the places of its values is filled into the template of the other language. Values that
are sentences or places themselves are told again as well. What matches nothing stays as it is.
"""

from __future__ import annotations

import functools
import re
import string
from collections.abc import Iterator
from typing import Any, NamedTuple

from ringside.words import DEFAULT, catalogue, spoken, templates

PARTS = ("ended", "place", "count")
"""Sections whose short templates are found, too: within a sentence."""

MIN_LITERAL = 10
"""Characters of its own that a template of another section needs."""

BARE = 2
"""A template of so few characters fits nearly everything: it counts where its values are known."""

NUMBERS = frozenset({
    "rank", "other", "last", "step", "epoch", "n", "num", "code", "seconds", "minutes",
})  # fmt: skip

_PARSER = string.Formatter()


class _Template(NamedTuple):
    """An English template: the text between its values, and the names of these."""

    key: str
    texts: tuple[str, ...]
    names: tuple[str | None, ...]

    @property
    def num_literal(self) -> int:
        """Characters that do not come from values."""
        return sum(map(len, self.texts))

    @property
    def chunk(self) -> str:
        """The longest text of its own, by which most templates are ruled out."""
        return max(self.texts, key=len)


class _AsItStands(string.Formatter):
    """Values were formatted when they were said first."""

    def format_field(self, value: Any, _format_spec: str) -> str:
        return str(value)

    def convert_field(self, value: Any, _conversion: str | None) -> Any:
        return value


_FILLING = _AsItStands()


def retold(text: str, language: str | None = None) -> str:
    """The sentence in a language, by default the one spoken now; unchanged where it is unknown."""
    language = language or spoken()
    if language == DEFAULT:
        return text
    for template in _templates():
        if template.chunk in text and (found := _pattern(template).fullmatch(text)):
            values = found.groupdict()
            told = {name: retold(value, language) for name, value in values.items()}
            if told != values or template.num_literal > BARE:
                return _FILLING.vformat(catalogue(language)[template.key], (), told)
    return text


@functools.cache
def _templates() -> tuple[_Template, ...]:
    """Those with most text of their own first: the closest one tells."""
    return tuple(sorted(_known(), key=lambda one: (-one.num_literal, one.key)))


def _known() -> Iterator[_Template]:
    for key, text in templates(DEFAULT).items():
        parts = list(_PARSER.parse(text))
        one = _Template(key, tuple(part[0] for part in parts), tuple(part[1] for part in parts))
        if one.num_literal >= (1 if key.partition(".")[0] in PARTS else MIN_LITERAL):
            yield one


@functools.cache
def _pattern(template: _Template) -> re.Pattern[str]:
    seen: set[str] = set()
    found = []
    for text, name in zip(template.texts, template.names, strict=True):
        found.append(re.escape(text))
        if name:
            value = r"-?\d[\d.,]*" if name in NUMBERS else ".+?"
            found.append(f"(?P={name})" if name in seen else f"(?P<{name}>{value})")
            seen.add(name)
    return re.compile("".join(found), re.DOTALL)
