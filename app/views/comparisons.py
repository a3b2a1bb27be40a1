"""Comparisons that the page shows, made once for any number of viewers."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from app.views.desk import Desk
from app.views.noise import Noise, predictions_time
from app.views.table import choose
from ringside.compare import Comparison, compare
from ringside.run import RunRecord
from ringside.rundir import list_run_dirs
from ringside.words import spoken

MAX_KEPT = 32


@dataclass(frozen=True)
class Compared:
    """A comparison with the records behind it, windows included.

    `version` changes whenever it does; `waiting`: runs whose intervals are being worked out;
    `failed`: those for which that failed lately.
    """

    comparison: Comparison
    records: tuple[RunRecord, ...]
    version: tuple[Any, ...]
    waiting: frozenset[str]
    failed: frozenset[str]

    @property
    def is_live(self) -> bool:
        """Whether one of the runs is still going."""
        return any(not record.final for record in self.records)


class Comparisons:
    """All comparisons of one server; safe to use from many threads."""

    def __init__(self, desk: Desk) -> None:
        self.desk = desk
        self._noise = Noise()
        self._lock = threading.Lock()
        self._known: OrderedDict[tuple[Any, ...], Compared] = OrderedDict()

    def look(self, ids: Sequence[str], baseline: str | None = None) -> Compared:
        """The comparison now; a RingsideError says why there is none."""
        records = [self.desk.record(run_id, with_windows=True) for run_id in choose(ids)]
        chosen = next((record for record in records if record.id == baseline), None)
        # A comparison says in words why something is missing.
        key = (tuple(record.id for record in records), chosen.id if chosen else None, spoken())
        reference = chosen or records[0]
        version = (key, *map(_version, records), self._ended())
        with self._lock:
            known = self._known.get(key)
        waiting, failed = self._unknown(reference, records)
        if known is not None and known.version == (*version, *map(_sorted, (waiting, failed))):
            return known
        made = compare(self.desk.root, records, chosen, differ=self._noise.differences)
        waiting, failed = self._unknown(reference, records)
        version = (*version, *map(_sorted, (waiting, failed)))
        found = Compared(made, tuple(records), version, waiting, failed)
        with self._lock:
            self._known[key] = found
            self._known.move_to_end(key)
            while len(self._known) > MAX_KEPT:
                self._known.popitem(last=False)
        return found

    def _unknown(
        self, reference: RunRecord, records: Sequence[RunRecord]
    ) -> tuple[frozenset[str], frozenset[str]]:
        """The runs whose intervals are waited for, and those for which they failed."""
        others = [record for record in records if record is not reference]
        waiting = frozenset(one.id for one in others if self._noise.is_waiting(reference, one))
        failed = frozenset(one.id for one in others if self._noise.has_failed(reference, one))
        return waiting, failed - waiting

    def _ended(self) -> tuple[str, ...]:
        """What may be a baseline since."""
        return tuple(run.id for run in list_run_dirs(self.desk.root) if run.exit.exists())


def _sorted(ids: frozenset[str]) -> tuple[str, ...]:
    return tuple(sorted(ids))


def _version(record: RunRecord) -> tuple[Any, ...]:
    return (
        record.state, record.last_event_t, len(record.windows), len(record.epochs),
        record.exit is not None, predictions_time(record),
    )  # fmt: skip
