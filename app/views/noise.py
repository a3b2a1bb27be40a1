"""The intervals of differences between runs, worked out beside the page, which does not wait.

For large validation splits they take a minute, so a process of its own does them, pair by pair, and
each pair is kept until a run's predictions change.
"""

from __future__ import annotations

import logging
import sys
import threading
from collections import OrderedDict
from pathlib import Path

import msgspec

from app.views.child import Child
from app.views.noise_worker import Pair, Worked
from ringside.run import RunRecord
from ringside.rundir import RunDir
from ringside.scores import Differences

log = logging.getLogger("ringside.page")

TIMEOUT_S = 900.0
MAX_KEPT = 256

Key = tuple[str, int, str, int]


class Noise:
    """Known intervals of one server; safe to use from many threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: OrderedDict[Key, Differences | None] = OrderedDict()
        self._waiting: list[Key] = []
        self._is_working = False

    def differences(self, first: RunRecord, second: RunRecord) -> Differences | None:
        """The intervals if they are known; else None, and they are being worked out."""
        key = key_of(first, second)
        if key is None:
            return None
        with self._lock:
            if key in self._known:
                self._known.move_to_end(key)
                return self._known[key]
            if key not in self._waiting:
                self._waiting.append(key)
            if not self._is_working:
                self._is_working = True
                threading.Thread(target=self._work, daemon=True).start()
        return None

    def is_waiting(self, first: RunRecord, second: RunRecord) -> bool:
        """Whether the intervals of the two are still to come."""
        with self._lock:
            return key_of(first, second) in self._waiting

    def _work(self) -> None:
        while True:
            with self._lock:
                if not self._waiting:
                    self._is_working = False
                    return
                key = self._waiting[0]
            found = _ask(Pair(key[0], key[2]))
            with self._lock:
                self._waiting.remove(key)
                self._known[key] = found
                while len(self._known) > MAX_KEPT:
                    self._known.popitem(last=False)


def key_of(first: RunRecord, second: RunRecord) -> Key | None:
    """Names the two runs and their predictions; None where one of them kept none."""
    before, after = predictions_time(first), predictions_time(second)
    if before is None or after is None:
        return None
    return first.path, before, second.path, after


def predictions_time(record: RunRecord) -> int | None:
    """When the run last kept predictions, in nanoseconds; None before that."""
    try:
        return RunDir(Path(record.path)).predictions.stat().st_mtime_ns
    except OSError:
        return None


def _ask(pair: Pair) -> Differences | None:
    argv = [sys.executable, "-m", "app.views.noise_worker"]
    try:
        child = Child(argv, request=msgspec.json.encode(pair), timeout_s=TIMEOUT_S)
        lines = list(child.lines())
        code, errors = child.finish()
    except OSError:
        log.exception("The noise of %s could not be worked out", pair)
        return None
    try:
        return msgspec.json.decode(lines[-1], type=Worked).differences
    except (IndexError, msgspec.DecodeError):
        log.error("Working out the noise of %s ended with code %d: %s", pair, code, errors)
        return None
