"""What an import gives: the preset, what became of every key, what a person should know."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

import msgspec

from ringside.presets import Preset
from ringside.words import say
from ringside.yaml_text import Document

Action = Literal["kept", "mapped", "translated", "stripped", "dropped"]
"""kept: as written. mapped: the same in another spelling. translated: what does the same here.
stripped: a fact of one machine. dropped: it has no effect here."""

MAX_SHOWN = 60


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """What became of one key, dotted; `line` counts from 1 in the file that was read."""

    key: str
    action: Action
    note: str = ""
    line: int | None = None


class Import(msgspec.Struct, frozen=True, kw_only=True):
    """A file that was read. `preset` is None exactly where `refused` says why.

    `text` is the preset file as it would be saved: a preset's own bytes, or what was made of an
    Accelerate configuration.
    """

    name: str
    kind: Literal["preset", "accelerate"] | None = None
    preset: Preset | None = None
    text: bytes = b""
    changes: tuple[Change, ...] = ()
    warnings: tuple[str, ...] = ()
    refused: str | None = None


class Ledger:
    """Notes, key by key, what an import does with a document."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self.changes: list[Change] = []
        self.warnings: list[str] = []
        self._written_as: dict[str, str] = {}

    def note(self, key: str, action: Action, note: str = "") -> None:
        """One line about a key."""
        line = self._line(self._written_as.get(key, key))
        self.changes.append(Change(key=shown(key), action=action, note=note, line=line))

    def keep(self, key: str) -> None:
        """The key stays as it is written."""
        self.note(key, "kept")

    def rename(self, old: str, new: str) -> None:
        """The key has another name by now; what becomes of it is said of the new one."""
        self._written_as[new] = old
        name = new if "." not in old and "." in new else _last(new)
        self.note(old, "mapped", say("importing.renamed", old=shown(_last(old)), new=name))

    def rest(self, key: str, value: Any, action: Action, note: str) -> None:
        """The same note for a key and for all that stands below it."""
        for leaf, inner in leaves(key, value):
            self.note(leaf, action, say("importing.empty") if _is_empty(inner) else note)

    def warn(self, sentence: str) -> None:
        """Something to act on; said once."""
        if sentence not in self.warnings:
            self.warnings.append(sentence)

    def is_bare(self, key: str) -> bool:
        """Whether the value stands without quotes, so that YAML 1.1 may read a word as a bool."""
        path = tuple(self._written_as.get(key, key).split("."))
        return path not in self.document.quoted

    def _line(self, key: str) -> int | None:
        return self.document.lines.get(tuple(key.split(".")))


def leaves(key: str, value: Any) -> Iterator[tuple[str, Any]]:
    """(dotted key, value) of everything below `key`; a list and an empty mapping are one value."""
    if isinstance(value, dict) and value:
        for name, inner in value.items():
            yield from leaves(f"{key}.{name}" if key else name, inner)
    else:
        yield key, value


def shown(value: Any) -> str:
    """A value or a key of a stranger's file on one line, and not for ever."""
    text = str(value).lower() if isinstance(value, bool) else str(value)
    short = text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}…"
    return short if short.isprintable() and short else repr(short)


def _is_empty(value: Any) -> bool:
    return value is None or value in ("", [], {})


def _last(key: str) -> str:
    return key.rpartition(".")[2]
