"""Looks at the variables of NCCL, OpenMP, CUDA, torch and gloo: what they do, and what they cost.

The table is `variables.toml`, each row with its source, and `variables.LANGUAGE.toml` has its
sentences in another language. Nothing is changed; a variable that is set may be right on this
machine, so each finding says when.
"""

from __future__ import annotations

import difflib
import functools
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import msgspec

from ringside.words import DEFAULT, remember, say, spoken

PREFIXES = ("NCCL_", "OMP_", "CUDA_", "TORCH_", "GLOO_")
Level = Literal["handicap", "leftover", "unknown", "setting"]
# A name this close to a known one is taken for a slip of the keyboard.
_CLOSE = 0.75
_FOLDER = Path(__file__).parent


class Rule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a value means: `values` are those meant (None: all), `unless` those that are not."""

    level: Literal["handicap", "leftover", "setting"]
    why: str
    values: tuple[str, ...] | None = None
    unless: tuple[str, ...] = ()

    def fits(self, value: str) -> bool:
        """Whether this rule speaks of `value`; upper and lower case do not matter."""
        value = value.strip().lower()
        if value in {one.lower() for one in self.unless}:
            return False
        return self.values is None or value in {one.lower() for one in self.values}


class Variable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A row of the table; `sources` are URLs, `successor` the name that replaced this one."""

    about: str
    sources: tuple[str, ...]
    rules: tuple[Rule, ...] = ()
    successor: str | None = None


class Told(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The sentences of a row; `why` has one for each of its rules."""

    about: str
    why: tuple[str, ...] = ()


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One variable that is set, in English; `in_words` says it in the language spoken.

    handicap: costs speed or stops a run; leftover: made for a search for faults, or an older name;
    unknown: no name that Ringside knows, `nearest` may be the one meant; setting: a choice.
    """

    name: str
    value: str
    level: Level
    about: str
    why: str | None = None
    sources: tuple[str, ...] = ()
    nearest: str | None = None

    @property
    def sentence(self) -> str:
        """`NAME=value: what it does. What follows.`, in the language that is spoken."""
        one = in_words(self)
        key = "variable.sentence_why" if one.why else "variable.sentence"
        return say(key, name=one.name, value=one.value, about=one.about, why=one.why)


def lint(environment: Mapping[str, str]) -> tuple[Finding, ...]:
    """A finding for each variable of these families that is set, what hurts most first."""
    order = ("handicap", "leftover", "unknown", "setting")
    found = [
        _find(name, value)
        for name, value in environment.items()
        if name.startswith(PREFIXES) or name in table()
    ]
    return tuple(sorted(found, key=lambda finding: (order.index(finding.level), finding.name)))


def _find(name: str, value: str) -> Finding:
    row = table().get(name)
    about, why = _words(name, value, DEFAULT)
    if row is None:
        nearest = _nearest(name)
        return Finding(
            name=name, value=value, level="unknown", about=about, why=why, nearest=nearest
        )
    rule = next((rule for rule in row.rules if rule.fits(value)), None)
    level: Level = rule.level if rule else "leftover" if row.successor else "setting"
    return Finding(name=name, value=value, level=level, about=about, why=why, sources=row.sources)


def in_words(finding: Finding) -> Finding:
    """The finding in the language that is spoken; what is kept, and JSON, has it in English."""
    if spoken() == DEFAULT:
        return finding
    about, why = _words(finding.name, finding.value, spoken())
    remember(about, lambda language: _words(finding.name, finding.value, language)[0])
    if why:
        remember(why, lambda language: _words(finding.name, finding.value, language)[1] or "")
    return msgspec.structs.replace(finding, about=about, why=why)


def _words(name: str, value: str, language: str) -> tuple[str, str | None]:
    """What the variable does, and what follows from its value."""
    row = table().get(name)
    if row is None:
        nearest = _nearest(name)
        meant = say("variable.meant", language, name=nearest) if nearest else None
        return say("variable.unknown", language), meant
    english = Told(row.about, tuple(rule.why for rule in row.rules))
    words = _translations(language).get(name, english)
    rule = next((number for number, rule in enumerate(row.rules) if rule.fits(value)), None)
    if rule is not None:
        return words.about, words.why[rule]
    if row.successor:
        return words.about, say("variable.successor", language, name=row.successor)
    return words.about, None


def _nearest(name: str) -> str | None:
    return next(iter(difflib.get_close_matches(name, table(), n=1, cutoff=_CLOSE)), None)


@functools.cache
def table() -> dict[str, Variable]:
    """All known variables by name."""
    text = (_FOLDER / "variables.toml").read_text(encoding="utf-8")
    rows: dict[str, Any] = tomllib.loads(text)
    sources: dict[str, str] = rows.pop("sources")
    further: dict[str, str] = rows.pop("known")
    known = {
        name: Variable(further["about"], (_source(name, sources),))
        for name in further["names"].split()
    }
    for name, row in rows.items():
        row["sources"] = [sources[key] for key in row.pop("source").split(", ")]
        known[name] = msgspec.convert(row, Variable)
    return known


@functools.cache
def _translations(language: str) -> dict[str, Told]:
    """All rows in another language; empty where it has no file."""
    path = _FOLDER / f"variables.{language}.toml"
    if not path.is_file():
        return {}
    rows = msgspec.toml.decode(path.read_bytes(), type=dict[str, Told])
    known = rows.pop("known")
    further = [name for name, row in table().items() if not row.rules and name not in rows]
    return rows | dict.fromkeys(further, known)


def _source(name: str, sources: Mapping[str, str]) -> str:
    families = {"NCCL": "nccl-source", "CUDA": "cuda-guide", "OMP": "openmp", "GLOO": "gloo-source"}
    return sources[families.get(name.partition("_")[0], "torch-source")]
