"""What the server keeps of the runs in one folder, so that ten viewers cost one read.

Everything here can be thrown away: it is folded from the files of the runs, and a new server folds
it again.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections import OrderedDict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from app.views import figures
from app.views.life import Life, life_of
from app.views.listing import Listing, ListRow
from app.views.run import RunView, progress, run_view
from app.views.series import RunSeries
from app.views.strip import NUM_SAMPLES, StripRow, strip_rows
from ringside.errors import RingsideError
from ringside.launch.reconcile import NEVER_STARTED_S, reconcile
from ringside.run import RunReader, RunRecord
from ringside.rundir import RunDir, find_run, list_run_dirs
from ringside.samples import SampleReader, read_samples
from ringside.spec import RunSpec
from ringside.speedup import find_baseline, scaling_of
from ringside.words import spoken

__all__ = ["BaselineState", "Desk", "ListRow"]

log = logging.getLogger("ringside.page")

MAX_READERS = 64
"""Of runs that have ended; each run under way keeps its reader, which the list needs too."""

MAX_ROWS = 1000
"""A folder of more runs than that is not for a page."""

FRESH_S = 0.5
"""So long what was read serves every viewer; a page asks once a second."""

RECONCILE_PAUSE_S = 30.0
SETTLED_NS = 100_000_000


@dataclass(frozen=True)
class BaselineState:
    """Whether a request has a baseline: `measured`, `measuring`, `none`, or `itself`."""

    kind: str
    run_id: str | None = None
    name: str | None = None


@dataclass
class _Watched:
    """A run under way, or one that somebody looks at; the lock guards all of it.

    Views and rows hold words, so there is one for each language that somebody reads.
    """

    reader: RunReader
    lock: threading.Lock = field(default_factory=threading.Lock)
    polled: float = -FRESH_S
    seen: tuple[Any, ...] = ()
    views: dict[str, RunView] = field(default_factory=dict)
    series: RunSeries = field(default_factory=RunSeries)
    samples: SampleReader | None = None
    is_whole: bool = False
    strips: dict[str, tuple[StripRow, ...]] = field(default_factory=dict)


class Desk:
    """The runs below `root`, as views; safe to use from many threads."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._lock = threading.Lock()
        self._watched: OrderedDict[str, _Watched] = OrderedDict()
        self._ended: dict[str, RunRecord] = {}
        self._listing = Listing()
        self._baselines: dict[bytes, tuple[tuple[Any, ...], RunRecord | None]] = {}
        self._reconciled: dict[str, float] = {}
        self._listed_dirs: tuple[int, list[RunDir]] | None = None
        self._exited: frozenset[str] = frozenset()
        self._ended_rows: dict[tuple[str, str], ListRow] = {}
        self._rows: dict[str, tuple[float, list[ListRow]]] = {}

    def find(self, text: str | None) -> RunDir | None:
        """The run that `?run=` names (id or its two words), else the newest; None without runs."""
        if text:
            return find_run(self.root, text)
        return next((run for run in list_run_dirs(self.root) if run.spec.exists()), None)

    def exact(self, run_id: str | None) -> RunDir | None:
        """The run with exactly this id, or None; what acts on a run does not guess."""
        return next((run for run in self._dirs() if run.id == run_id), None)

    def _dirs(self) -> list[RunDir]:
        """All runs, newest first; the folder is listed again when its entries changed.

        The clock of a file system is coarse, so a listing right after a change is not kept.
        """
        try:
            changed_ns = self.root.stat().st_mtime_ns
        except OSError:
            return []
        known = self._listed_dirs
        if known is None or known[0] != changed_ns:
            known = (changed_ns, list_run_dirs(self.root))
            is_settled = time.time_ns() - changed_ns > SETTLED_NS
            self._listed_dirs = known if is_settled else None
        return known[1]

    def _ended_runs(self) -> frozenset[str]:
        """The runs that have an exit record; none of them loses it but by being deleted."""
        known = self._exited
        found = (run.id for run in self._dirs() if run.id in known or os.path.exists(run.exit))
        self._exited = frozenset(found)
        return self._exited

    def look(self, run_id: str) -> tuple[RunView, Life]:
        """The run now, and its last sign of life; reads only what is new.

        While nothing changed it is the same object, whoever asks.
        """
        watched = self._watch(self.exact(run_id) or find_run(self.root, run_id))
        with watched.lock:
            record = self._poll(watched)
            baseline = self._baseline(record)
            seen = (*_version(record), baseline and baseline.id)
            if watched.seen != seen:
                watched.views, watched.seen = {}, seen
            language = spoken()
            if language not in watched.views:
                watched.views[language] = run_view(record, baseline)
            return watched.views[language], life_of(record, time.time())

    def curves(self, run_id: str, cursors: object) -> tuple[dict[str, Any], dict[str, Any]]:
        """What a viewer with `cursors` lacks of the run's curves (`RunSeries.since`)."""
        watched = self._watch(self.exact(run_id) or find_run(self.root, run_id))
        with watched.lock:
            watched.series.take(watched.reader.record)
            return watched.series.since(cursors)

    def strip(self, run_id: str) -> tuple[StripRow, ...]:
        """How busy the run's devices were in the last minutes, or in all of a run that is over.

        The same object until there is news.
        """
        watched = self._watch(self.exact(run_id) or find_run(self.root, run_id))
        with watched.lock:
            is_over = watched.reader.record.final
            if watched.samples is None or watched.is_whole != is_over:
                watched.samples, watched.is_whole = SampleReader(watched.reader.run), is_over
                watched.strips = {}
            language = spoken()
            if is_over:
                if language not in watched.strips:
                    samples = read_samples(watched.reader.run)
                    watched.strips[language] = strip_rows(samples, is_over=True)
                return watched.strips[language]
            if watched.samples.poll():
                watched.strips = {}
                del watched.samples.samples[:-NUM_SAMPLES]
            if language not in watched.strips:
                watched.strips[language] = strip_rows(watched.samples.samples)
            return watched.strips[language]

    def rows(self) -> list[ListRow]:
        """All runs, newest first; ended ones are read once, others only what is new."""
        language, now = spoken(), time.monotonic()
        made, rows = self._rows.get(language, (-FRESH_S, []))
        if now - made >= FRESH_S:
            rows = self._read_rows()
            self._rows[language] = (now, rows)
        return rows

    def _read_rows(self) -> list[ListRow]:
        found = []
        for run in self._dirs()[:MAX_ROWS]:
            try:
                ended = self._ended.get(run.id)
                found.append((ended, self._ended_row(ended)) if ended else self._listed(run))
            except (RingsideError, OSError):
                continue  # a folder that is being made or deleted, or not a run
        for run_id in set(self._ended) - {record.id for record, _ in found}:
            self._ended.pop(run_id, None)
            for key in [key for key in self._ended_rows if key[0] == run_id]:
                self._ended_rows.pop(key, None)
        return self._listing.complete(self.root, found)

    def _ended_row(self, record: RunRecord) -> ListRow:
        """The same object every time, in the language that is spoken."""
        key = (record.id, spoken())
        if key not in self._ended_rows:
            self._ended_rows[key] = _list_row(record)
        return self._ended_rows[key]

    def record(self, run_id: str, *, with_windows: bool = False) -> RunRecord:
        """A copy of the record as it is now, for a comparison; curves need its windows too."""
        watched = self._watch(self.exact(run_id) or find_run(self.root, run_id))
        with watched.lock:
            self._poll(watched)
            return msgspec.structs.replace(
                watched.reader.record,
                epochs=list(watched.reader.record.epochs),
                windows=list(watched.reader.record.windows) if with_windows else [],
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
            if other is not None and scaling_of(spec, other) and self._is_under_way(run):
                return BaselineState("measuring", run.id, run.name)
        return BaselineState("none")

    def baseline_id(self, run_id: str) -> str | None:
        """The run that this one is measured against."""
        found = self._baseline(self.record(run_id))
        return found.id if found else None

    def _watch(self, run: RunDir) -> _Watched:
        with self._lock:
            if run.id not in self._watched:
                self._watched[run.id] = _Watched(RunReader(run))
                self._forget()
            self._watched.move_to_end(run.id)
            return self._watched[run.id]

    def _forget(self) -> None:
        """Let go of the ended runs that nobody looked at for longest, and of deleted ones."""
        ended = []
        for run_id, watched in list(self._watched.items()):
            if not watched.reader.run.path.exists():
                del self._watched[run_id]
            elif watched.reader.record.exit is not None:
                ended.append(run_id)
        for run_id in ended[: max(0, len(ended) - MAX_READERS)]:
            del self._watched[run_id]

    def _listed(self, run: RunDir) -> tuple[RunRecord, ListRow]:
        """A copy of the record without what only its own page shows, and its line."""
        if run.exit.exists() and run.id not in self._watched:
            # Read once and let go: a long list must not push out the runs that somebody looks at.
            watched = _Watched(RunReader(run))
        else:
            watched = self._watch(run)
        with watched.lock:
            record = self._poll(watched)
            row = _list_row(record)
            kept = msgspec.structs.replace(record, epochs=list(record.epochs), windows=[])
        if record.final and record.exit is not None:
            self._ended[run.id] = kept
        return kept, row

    def _is_under_way(self, run: RunDir) -> bool:
        if run.exit.exists():
            return False
        try:
            return self._listed(run)[1].state in ("queued", "launching", "running")
        except (RingsideError, OSError):
            return False

    def _poll(self, watched: _Watched) -> RunRecord:
        """The record as it is now; one whose owner is gone is closed behind the viewer's back."""
        reader, now = watched.reader, time.monotonic()
        if now - watched.polled >= FRESH_S:
            reader.poll()
            watched.polled = now
            if _is_abandoned(reader.record):
                self._reconcile(reader.run)
        return reader.record

    def _reconcile(self, run: RunDir) -> None:
        """At most one thread a run, and a pause before the next: it may be another user's."""
        now = time.monotonic()
        with self._lock:
            if now - self._reconciled.get(run.id, -RECONCILE_PAUSE_S) < RECONCILE_PAUSE_S:
                return
            self._reconciled[run.id] = now
        threading.Thread(target=_reconcile, args=(run,), daemon=True).start()

    def _baseline(self, record: RunRecord) -> RunRecord | None:
        """Searched again when a run has ended since, and once the run knows its data and device."""
        if record.spec is None:
            return None
        key = record.id.encode() or msgspec.json.encode(record.spec)
        state = (self._ended_runs(), record.started is not None)
        known = self._baselines.get(key)
        if known is None or known[0] != state:
            if len(self._baselines) > 1000:
                self._baselines.clear()
            known = self._baselines[key] = (state, find_baseline(self.root, record))
        return known[1]


def _is_abandoned(record: RunRecord) -> bool:
    """Whether nobody is left to write its exit record, or nobody ever took it."""
    if record.exit is not None:
        return False
    if record.owner is not None:
        return record.final
    return record.created_t is not None and time.time() - record.created_t > NEVER_STARTED_S


def _reconcile(run: RunDir) -> None:
    try:
        reconcile(run)
    except (RingsideError, OSError) as error:
        log.warning("%s could not be closed: %s", run.id, error)


def _version(record: RunRecord) -> tuple[Any, ...]:
    """Changes whenever a view of the record would."""
    return (
        record.state,
        record.last_event_t,
        len(record.windows),
        record.epochs[-1].epoch if record.epochs else 0,
        record.failure is not None,
        record.exit is not None,
        record.started is not None,
        record.hang,
        record.asked,
        len(record.checkpoints),
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
