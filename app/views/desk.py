"""What the server keeps of the runs in one folder, so that ten viewers cost one read.

Everything here can be thrown away: it is folded from the files of the runs, and a new server folds
it again.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from app.views import figures
from app.views.run import RunView, progress, run_view, sign_of_life, with_time_left
from ringside.compare import find_baseline, scaling_of
from ringside.errors import RingsideError
from ringside.run import RunReader, RunRecord
from ringside.rundir import RunDir, find_run, list_run_dirs
from ringside.spec import RunSpec

MAX_READERS = 64
MAX_ROWS = 100


@dataclass(frozen=True)
class ListRow:
    """One line of the list of runs."""

    id: str
    name: str
    state: str
    preset: str
    model: str
    data: str
    started: str
    progress: str


@dataclass(frozen=True)
class BaselineState:
    """Whether a request has a baseline: `measured`, `measuring`, `none`, or `itself`."""

    kind: str
    run_id: str | None = None
    name: str | None = None


@dataclass
class _Watched:
    """One run that somebody looks at; the lock guards reader and view."""

    reader: RunReader
    lock: threading.Lock = field(default_factory=threading.Lock)
    seen: tuple[Any, ...] = ()
    view: RunView | None = None


class Desk:
    """The runs below `root`, as views; safe to use from many threads."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._lock = threading.Lock()
        self._watched: OrderedDict[str, _Watched] = OrderedDict()
        self._final_rows: dict[str, ListRow] = {}
        self._baselines: dict[bytes, tuple[frozenset[str], RunRecord | None]] = {}

    def find(self, text: str | None) -> RunDir | None:
        """The run that `?run=` names (id or its two words), else the newest; None without runs."""
        if text:
            return find_run(self.root, text)
        return next(iter(list_run_dirs(self.root)), None)

    def look(self, run_id: str) -> tuple[RunView, str]:
        """The run now, and its last sign of life; reads only what is new."""
        watched = self._watch(run_id)
        now = time.time()
        with watched.lock:
            watched.reader.poll()
            record = watched.reader.record
            baseline = self._baseline(record)
            seen = (*_version(record), baseline and baseline.id)
            if watched.view is None or watched.seen != seen:
                watched.view, watched.seen = run_view(record, baseline), seen
            return with_time_left(watched.view, record, now), sign_of_life(record, now)

    def rows(self) -> list[ListRow]:
        """The newest runs, newest first; finished ones are read once."""
        found = []
        for run in list_run_dirs(self.root)[:MAX_ROWS]:
            try:
                found.append(self._final_rows.get(run.id) or self._row(run))
            except RingsideError:
                continue  # a folder that is being made, or not a run
        return found

    def record(self, run_id: str) -> RunRecord:
        """A copy of the record as it is now, for a comparison."""
        watched = self._watch(run_id)
        with watched.lock:
            watched.reader.poll()
            return msgspec.structs.replace(
                watched.reader.record,
                epochs=list(watched.reader.record.epochs),
                windows=[],
            )

    def baseline_state(self, spec: RunSpec) -> BaselineState:
        """Whether a request could be measured against something."""
        if spec.preset == "single":
            return BaselineState("itself")
        found = self._baseline(RunRecord(id="", name="", path="", spec=spec))
        if found is not None:
            return BaselineState("measured", found.id, found.name)
        for run in list_run_dirs(self.root)[:MAX_ROWS]:
            other = run.read(run.spec, RunSpec)
            if other is not None and not run.exit.exists() and scaling_of(spec, other):
                return BaselineState("measuring", run.id, run.name)
        return BaselineState("none")

    def baseline_id(self, run_id: str) -> str | None:
        """The run that this one is measured against."""
        found = self._baseline(self.record(run_id))
        return found.id if found else None

    def _watch(self, run_id: str) -> _Watched:
        with self._lock:
            if run_id not in self._watched:
                self._watched[run_id] = _Watched(RunReader(find_run(self.root, run_id)))
            self._watched.move_to_end(run_id)
            while len(self._watched) > MAX_READERS:
                self._watched.popitem(last=False)
            return self._watched[run_id]

    def _row(self, run: RunDir) -> ListRow:
        # Not through `_watch`: a long list would push the runs out that somebody looks at.
        reader = RunReader(run)
        reader.poll()
        record = reader.record
        row = _list_row(record)
        if record.final and record.exit is not None:
            self._final_rows[run.id] = row
        return row

    def _baseline(self, record: RunRecord) -> RunRecord | None:
        """Searched again only when another run has ended since the last search."""
        if record.spec is None:
            return None
        key = record.id.encode() or msgspec.json.encode(record.spec)
        ended = frozenset(run.id for run in list_run_dirs(self.root) if run.exit.exists())
        known = self._baselines.get(key)
        if known is None or known[0] != ended:
            if len(self._baselines) > 1000:
                self._baselines.clear()
            known = self._baselines[key] = (ended, find_baseline(self.root, record))
        return known[1]


def _version(record: RunRecord) -> tuple[Any, ...]:
    """Changes whenever a view of the record would."""
    return (
        record.state,
        record.last_event_t,
        len(record.windows),
        len(record.epochs),
        record.failure is not None,
        record.exit is not None,
        record.started is not None,
    )


def _list_row(record: RunRecord) -> ListRow:
    done = progress(record)
    spec = record.spec
    assert spec is not None
    return ListRow(
        id=record.id,
        name=record.name,
        state=record.state,
        preset=spec.preset,
        model=spec.model,
        data=spec.data.label,
        started=figures.clock(record.owner.started if record.owner else record.created_t),
        progress=done,
    )
