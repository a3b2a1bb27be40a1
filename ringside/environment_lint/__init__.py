"""Looks at the variables of NCCL, OpenMP, CUDA, torch and gloo: what they do, and what they cost.

The table is `variables.toml`, each row with its source. Nothing is changed; a variable that is set
may be right on this machine, so each finding says when.
"""

from __future__ import annotations

import difflib
import functools
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import msgspec

PREFIXES = ("NCCL_", "OMP_", "CUDA_", "TORCH_", "GLOO_")
Level = Literal["handicap", "leftover", "unknown", "setting"]
# A name this close to a known one is taken for a slip of the keyboard.
_CLOSE = 0.75
_ADVANCED = "An advanced variable; its documentation says more."


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


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One variable that is set.

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
        """`NAME=value: what it does. What follows.`"""
        return " ".join(
            part for part in (f"{self.name}={self.value}:", self.about, self.why) if part
        )


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
    if row is None:
        return _unknown(name, value)
    rule = next((rule for rule in row.rules if rule.fits(value)), None)
    level: Level = rule.level if rule else "setting"
    why = rule.why if rule else None
    if row.successor and rule is None:
        level, why = "leftover", f"Say {row.successor} instead."
    return Finding(
        name=name, value=value, level=level, about=row.about, why=why, sources=row.sources
    )


def _unknown(name: str, value: str) -> Finding:
    close = difflib.get_close_matches(name, table(), n=1, cutoff=_CLOSE)
    nearest = close[0] if close else None
    return Finding(
        name=name,
        value=value,
        level="unknown",
        about="No variable that Ringside knows.",
        why=f"Is {nearest} meant?" if nearest else None,
        nearest=nearest,
    )


@functools.cache
def table() -> dict[str, Variable]:
    """All known variables by name."""
    text = (Path(__file__).parent / "variables.toml").read_text(encoding="utf-8")
    rows: dict[str, Any] = tomllib.loads(text)
    sources: dict[str, str] = rows.pop("sources")
    further: str = rows.pop("known")["names"]
    known = {name: Variable(_ADVANCED, (_source(name, sources),)) for name in further.split()}
    for name, row in rows.items():
        row["sources"] = [sources[key] for key in row.pop("source").split(", ")]
        known[name] = msgspec.convert(row, Variable)
    return known


def _source(name: str, sources: Mapping[str, str]) -> str:
    families = {"NCCL": "nccl-source", "CUDA": "cuda-guide", "OMP": "openmp", "GLOO": "gloo-source"}
    return sources[families.get(name.partition("_")[0], "torch-source")]
