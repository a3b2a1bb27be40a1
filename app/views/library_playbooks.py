"""The playbooks as the page shows them: the list, one of them, and what two differ in."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from app.views import figures
from ringside.adaptation import Adaptation
from ringside.errors import PlaybookError, RingsideError
from ringside.hardware import Hardware
from ringside.playbook import store, tables
from ringside.playbook.content import Playbook
from ringside.playbook.differences import differences
from ringside.playbook.replay import replay
from ringside.playbook.store import Entry
from ringside.words import say


@dataclass(frozen=True)
class PlaybookRow:
    """A line of the list; of one that cannot be read only `fault` says more than its name."""

    name: str
    title: str = ""
    preset: str = ""
    model: str = ""
    hardware: str = ""
    speedup: str = ""
    causes: str = ""
    made: str = ""
    place: str = ""
    fault: str | None = None


@dataclass(frozen=True)
class PlaybookView:
    """One playbook opened.

    `runs` are (name, preset, verdict, speed-up, AUC, F1); `is_packed` tells that its
    recorded runs cannot be looked at before it is imported.
    """

    row: PlaybookRow
    summary: str
    facts: tuple[tuple[str, str], ...]
    runs: tuple[tuple[str, ...], ...]
    left_out: tuple[str, ...]
    is_own: bool
    is_packed: bool
    ways: tuple[Adaptation, ...] = ()
    notes: tuple[str, ...] = ()


def kept_playbooks() -> list[Entry]:
    """All of them, newest first."""
    return store.list_playbooks()


def kept_playbook(name: str | None) -> Entry:
    """The kept playbook of exactly this name; a path is none. PlaybookError where there is none."""
    found = next((one for one in store.list_playbooks() if one.name == name), None)
    if found is None:
        raise PlaybookError(say("library.no_playbook", name=name or ""))
    return found


def playbook_rows(entries: Sequence[Entry]) -> list[PlaybookRow]:
    """All of them, in the order given."""
    return [_row(entry) for entry in entries]


def playbook_view(entry: Entry, hardware: Hardware) -> PlaybookView:
    """One playbook with what may be done with it here; PlaybookError for one without content."""
    playbook = store.require(entry)
    run = playbook.run
    facts = (
        (say("library.preset"), entry.receipt.preset if entry.receipt else playbook.preset),
        (say("library.hardware"), playbook.hardware.label),
        (say("library.data"), playbook.data.title or playbook.data.name),
        (say("library.command"), run.command),
    )
    ways, notes = _replayed(entry, hardware)
    return PlaybookView(
        row=_row(entry),
        summary=tables.summary(playbook),
        facts=facts,
        runs=tuple(_run(playbook, at) for at in range(len(playbook.runs))),
        left_out=tuple(f"{one.path}: {one.why}" for one in playbook.left_out),
        is_own=entry.place == "yours",
        is_packed=entry.path.is_file(),
        ways=ways,
        notes=notes,
    )


def playbook_pairs(first: Entry, second: Entry) -> list[tuple[str, str, str, str]]:
    """(group, name, value, value) of everything in which the two differ."""
    found = differences(store.require(first), store.require(second))
    return [
        (say(f"library.group_{one.group}"), one.name, _value(one.first), _value(one.second))
        for one in found
    ]


def _replayed(entry: Entry, hardware: Hardware) -> tuple[tuple[Adaptation, ...], tuple[str, ...]]:
    try:
        found = replay(entry, hardware)
    except RingsideError as error:
        return (), (str(error),)
    return found.ways, found.notes[1:] if found.ways else found.notes


def _row(entry: Entry) -> PlaybookRow:
    place = say(f"origin.{entry.place}")
    playbook = entry.playbook
    if playbook is None:
        return PlaybookRow(name=entry.name, place=place, fault=entry.fault)
    return PlaybookRow(
        name=entry.name,
        title=playbook.title,
        preset=playbook.preset,
        model=playbook.run.model,
        hardware=playbook.hardware.label,
        speedup=figures.ratio(playbook.run.result.speedup.value),
        causes=", ".join(say(f"cause.{cause}") for cause in playbook.causes),
        made=figures.clock(playbook.made),
        place=place,
    )


def _run(playbook: Playbook, at: int) -> tuple[str, ...]:
    run = playbook.runs[at]
    result, verdict = run.result, run.diagnosis.verdict
    return (
        run.name, result.preset, verdict.sentence, figures.ratio(result.speedup.value),
        figures.score(result.auc_macro), figures.score(result.f1_macro),
    )  # fmt: skip


def _value(value: Any) -> str:
    if value is None:
        return figures.DASH
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 300 else f"{text[:300]}…"
