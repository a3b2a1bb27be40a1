"""Says a sentence from a file in another language: files of runs are in English.

A sentence was once filled into a template of the catalogue, so it matches that template, and what
stands in the places of its values is filled into the template of the other language. Values that
hold a sentence, a place or a name of several ranks are told again as well; every other value is
somebody's own word and stays. So does what matches nothing, and what a library says.
"""

from __future__ import annotations

import functools
import re
import string
from collections.abc import Iterator
from typing import Any, NamedTuple

from ringside.words import DEFAULT, catalogue, spoken, templates

WITHIN = ("ended", "place", "rank_error", "refused")
"""Sections whose sentences stand within others; their short templates are found, too."""

RETOLD = frozenset({"where", "there", "who", "others", "why", "sentence", "processes"})
"""Values that are such sentences."""

NUMBERS = frozenset({
    "rank", "other", "last", "step", "epoch", "n", "num", "code", "seconds", "minutes",
})  # fmt: skip

MIN_LITERAL = 10
"""Characters of its own that a template of another section needs."""

BARE = 2
"""A template of so few characters fits nearly everything: it counts where a value is known."""

QUOTING = "ended.rank_said"
MAX_KEPT = 2048
_FOREIGN = re.compile(r"[A-Za-z_][\w.]*(?:Error|Exception|Exit|Interrupt|Warning)\b")
_PARSER = string.Formatter()


class _Template(NamedTuple):
    """An English template: the text between its values, their names, and what rules it out."""

    key: str
    texts: tuple[str, ...]
    names: tuple[str | None, ...]
    num_literal: int
    chunk: str


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
    return text if language == DEFAULT else _retold(text, language)


@functools.lru_cache(MAX_KEPT)
def _retold(text: str, language: str) -> str:
    return text if _FOREIGN.match(text) else _told(text, language, _all())


def _told(text: str, language: str, candidates: tuple[_Template, ...]) -> str:
    for template in candidates:
        if template.chunk in text and (found := _pattern(template).fullmatch(text)):
            values = found.groupdict()
            told = {name: _value(name, value, language) for name, value in values.items()}
            if told != values or template.num_literal > BARE:
                return _FILLING.vformat(catalogue(language)[template.key], (), told)
    return text


def _value(name: str, value: str, language: str) -> str:
    return _told(value, language, _within()) if name in RETOLD else value


@functools.cache
def _all() -> tuple[_Template, ...]:
    """Those with most text of their own first: the closest one tells.

    Before all what puts a rank's own words, which may be a library's, into a sentence.
    """
    found = (one for one in _known() if one.num_literal >= MIN_LITERAL or _is_within(one))
    return tuple(sorted(found, key=lambda one: (one.key != QUOTING, -one.num_literal, one.key)))


@functools.cache
def _within() -> tuple[_Template, ...]:
    return tuple(one for one in _all() if _is_within(one) and one.num_literal > BARE)


def _is_within(one: _Template) -> bool:
    return one.key.partition(".")[0] in WITHIN


def _known() -> Iterator[_Template]:
    for key, text in templates(DEFAULT).items():
        parts = list(_PARSER.parse(text))
        texts = tuple(part[0] for part in parts)
        num = sum(map(len, texts))
        if num:
            yield _Template(key, texts, tuple(part[1] for part in parts), num, max(texts, key=len))


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
