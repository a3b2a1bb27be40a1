"""The list of runs as the page shows it: each run with what is said about it and its figures."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from operator import is_not
from pathlib import Path
from typing import NamedTuple

from app.views.queue import tries_of
from ringside.launch.claims import Claims
from ringside.launch.queue import Place, places
from ringside.run import RunRecord
from ringside.rundir import RunDir
from ringside.shelf.figures import Figures, baselines_among, figures_of
from ringside.shelf.finding import Query, in_order, matches
from ringside.shelf.notes import NOTHING, Notes, read_notes

State = list[tuple[str, bool, bool]]
"""Which runs there are, and which have started and ended."""

MAX_SHOWN = 100
"""Lines of the list; a search finds the others."""


@dataclass(frozen=True)
class ListRow:
    """One line of the list of runs.

    `place` is that in the queue; `tries` are the other tries of the same run, see `tries_of`.
    """

    id: str
    name: str
    state: str
    preset: str
    model: str
    data: str
    started: str
    progress: str
    notes: Notes = NOTHING
    figures: Figures | None = None
    place: Place | None = None
    tries: tuple[tuple[str, str], ...] = ()

    @property
    def is_waiting(self) -> bool:
        """Whether it stands in the queue."""
        return self.place is not None


@dataclass(frozen=True)
class Found:
    """The lines to show, how many fit, how many runs there are, and what was asked."""

    rows: tuple[ListRow, ...]
    num_found: int
    num_runs: int
    query: Query


class Said(NamedTuple):
    """A line, and what it is completed with."""

    row: ListRow
    place: Place | None
    tries: tuple[tuple[str, str], ...]
    notes: Notes
    figures: Figures

    def complete(self) -> ListRow:
        """The line with all of it."""
        return replace(self.row, **{name: getattr(self, name) for name in self._fields[1:]})


class Listing:
    """Completes lines with notes and figures; what did not change is not read or counted again."""

    def __init__(self) -> None:
        self._notes: dict[str, tuple[tuple[int, ...], Notes]] = {}
        self._baselines: tuple[State, dict[str, str | None]] = ([], {})
        self._figures: dict[str, tuple[str | None, Figures]] = {}
        self._claims: Claims | None = None
        self._rows: dict[str, tuple[Said, ListRow]] = {}
        self._newest: list[ListRow] = []

    def complete(self, root: Path, listed: Sequence[tuple[RunRecord, ListRow]]) -> list[ListRow]:
        """The lines with their notes and figures, in the same order (newest first).

        While nothing changed it is the same list of the same lines, whoever asks.
        """
        records = {record.id: record for record, _ in listed}
        for kept in (self._notes, self._figures, self._rows):
            for run_id in set(kept) - records.keys():
                kept.pop(run_id, None)
        baselines = self._baselines_of(list(records.values()))
        waits = any(row.state == "queued" for _, row in listed)
        places = self._places(root) if waits else {}
        found = []
        for record, row in listed:
            figures = self._figures_of(record, records.get(baselines.get(row.id) or ""))
            notes = self._notes_of(root, row.id)
            said = Said(row, places.get(row.id), tries_of(record), notes, figures)
            known = self._rows.get(row.id)
            if known is None or known[0] != said:
                known = self._rows[row.id] = (said, said.complete())
            found.append(known[1])
        if len(found) != len(self._newest) or any(map(is_not, found, self._newest)):
            self._newest = found
        return self._newest

    def _places(self, root: Path) -> dict[str, Place]:
        if self._claims is None or self._claims.root != root:
            self._claims = Claims(root)
        return {place.run_id: place for place in places(self._claims)}

    def _notes_of(self, root: Path, run_id: str) -> Notes:
        run = RunDir(root / run_id)
        try:
            found = os.stat(run.notes)
        except OSError:
            return NOTHING
        signature = (found.st_mtime_ns, found.st_size, found.st_ino)
        known = self._notes.get(run.id)
        if known is None or known[0] != signature:
            known = self._notes[run.id] = (signature, read_notes(run))
        return known[1]

    def _baselines_of(self, records: Sequence[RunRecord]) -> dict[str, str | None]:
        """Looked for again when a run has come, gone, started or ended since."""
        state = [(r.id, r.started is not None, r.exit is not None) for r in records]
        if self._baselines[0] != state:
            found = baselines_among(records)
            ids = {run_id: baseline.id if baseline else None for run_id, baseline in found.items()}
            self._baselines = (state, ids)
        return self._baselines[1]

    def _figures_of(self, record: RunRecord, baseline: RunRecord | None) -> Figures:
        """Of a run that has ended counted once for each baseline."""
        key = baseline.id if baseline else None
        known = self._figures.get(record.id)
        if known is not None and known[0] == key and _has_ended(record, baseline):
            return known[1]
        figures = figures_of(record, baseline)
        self._figures[record.id] = (key, figures)
        return figures


def find(rows: Sequence[ListRow], query: Query) -> Found:
    """The lines that are asked for, in their order."""
    fitting = in_order((row for row in rows if matches(row, query)), query.sort)
    return Found(tuple(fitting[:MAX_SHOWN]), len(fitting), len(rows), query)


def presets_of(rows: Iterable[ListRow]) -> list[str]:
    """All presets of the runs, in the order of the alphabet."""
    return sorted({row.preset for row in rows})


def tags_of(rows: Iterable[ListRow]) -> list[str]:
    """All tags of the runs, each once however it is written."""
    found: dict[str, str] = {}
    for row in rows:
        for tag in row.notes.tags:
            found.setdefault(tag.casefold(), tag)
    return [found[key] for key in sorted(found)]


def num_measured_against(rows: Iterable[ListRow], run_id: str) -> int:
    """How many runs have this one as their baseline."""
    return sum(row.figures is not None and row.figures.baseline_id == run_id for row in rows)


def _has_ended(*records: RunRecord | None) -> bool:
    return all(record is None or record.exit is not None for record in records)
