"""From the file names in a table, as they were written on some machine, to files of the folder."""

from __future__ import annotations

import os
import posixpath
import re
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from ringside.data.folder.listing import Listing
from ringside.data.folder.records import Problem
from ringside.data.notes import InformationCode, Note
from ringside.words import say, say_count


def folders_of(names: Iterable[str], root: Path) -> set[str]:
    """The folders below `root` that hold the named files, relative to it."""
    paths = {_relative(s, "", root.resolve()) for name in names for s in _spellings(name)}
    return {posixpath.dirname(path) for path in paths if path}


def _spellings(name: str) -> Iterator[str]:
    """As written, and with the slashes of this system."""
    yield name
    if "\\" in name:
        yield name.replace("\\", "/")


def _relative(name: str, folder: str, root: Path) -> str:
    """Relative to the root and normalised; empty when it would leave the root."""
    if re.match(r"[A-Za-z]:[/\\]", name) or "\0" in name:  # a Windows path
        return ""
    if posixpath.isabs(name):
        path = os.path.relpath(os.path.realpath(name), root)
    else:
        path = posixpath.normpath(posixpath.join(folder, name))
    return "" if path.split("/")[0] in ("..", ".") else path


@dataclass
class NamedFiles:
    """Finds the files that a table in `folder` names, and collects what is wrong."""

    listing: Listing
    folder: str
    problems: list[Problem] = field(default_factory=list)
    num_without_ending: int = 0
    num_in_other_form: int = 0

    def find(self, name: str, where: Callable[[], str], labels: tuple[str, ...] = ()) -> str:
        """The relative path of the file `name`; an empty text and a problem when there is none.

        `where` says the place that names it.
        """
        path = ""
        for spelling in _spellings(name):
            path = _relative(spelling, self.folder, self.listing.root)
            if path in self.listing.sizes_bytes:
                return path
            endings = self._by_stem.get(path, [])
            if len(endings) == 1:
                self.num_without_ending += 1
                return endings[0]
            alike = self._by_form.get(unicodedata.normalize("NFC", path), [])
            if len(alike) == 1:
                self.num_in_other_form += 1
                return alike[0]
        if "://" in name:
            reason = say("picture.web_address", where=where())
            self.problems.append(Problem("missing", name, reason, labels))
        elif not path or self._is_beyond_link(path):
            reason = say("picture.outside", where=where())
            self.problems.append(Problem("outside", path or name, reason, labels))
        else:
            self.problems.append(
                Problem("missing", path, say("picture.missing", where=where()), labels)
            )
        return ""

    def _is_beyond_link(self, path: str) -> bool:
        parts = path.split("/")
        outside = self._outside
        return any("/".join(parts[: n + 1]) in outside for n in range(len(parts)))

    @cached_property
    def _outside(self) -> frozenset[str]:
        return frozenset(self.listing.outside)

    @cached_property
    def _by_stem(self) -> dict[str, list[str]]:
        stems: dict[str, list[str]] = defaultdict(list)
        for path in self.listing.images():
            stems[posixpath.splitext(path)[0]].append(path)
        return stems

    @cached_property
    def _by_form(self) -> dict[str, list[str]]:
        """macOS writes an accent as a character of its own, others do not."""
        forms: dict[str, list[str]] = defaultdict(list)
        for path in self.listing.images():
            forms[unicodedata.normalize("NFC", path)].append(path)
        return forms

    def notes(self) -> list[Note]:
        """Sentences about names that had to be completed or read another way."""
        found: tuple[tuple[str, InformationCode, int], ...] = (
            ("ending_added", "ending-added", self.num_without_ending),
            ("other_form", "other-form", self.num_in_other_form),
        )
        return [
            Note(code, say(f"data_note.{key}", count=say_count("name", count)))
            for key, code, count in found
            if count
        ]
