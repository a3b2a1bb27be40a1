"""The intervals of differences between runs, worked out beside the page, which does not wait.

For large validation splits they take a minute, so a process of its own does them, pair by pair, and
each pair is kept until a run's predictions change. A calculation that failed is no answer: it is
tried again after a pause.
"""

from __future__ import annotations

import logging
import sys
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path

import msgspec

from app.views.child import Child
from app.views.noise_worker import Pair, Worked
from ringside.run import RunRecord
from ringside.rundir import RunDir
from ringside.scores import Differences

log = logging.getLogger("ringside.page")

TIMEOUT_S = 900.0
RETRY_S = 30.0  # after a failure
MAX_KEPT = 256

Key = tuple[str, int, str, int]


class Noise:
    """Known intervals of one server; safe to use from many threads.

    `ask` works out a pair, None when that failed; `clock` gives seconds.
    """

    def __init__(
        self,
        ask: Callable[[Pair], Worked | None] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._ask, self._clock = ask or _ask, clock
        self._lock = threading.Lock()
        self._known: OrderedDict[Key, Differences | None] = OrderedDict()
        self._failed: OrderedDict[Key, float] = OrderedDict()  # when
        self._waiting: list[Key] = []
        self._is_working = False

    def differences(self, first: RunRecord, second: RunRecord) -> Differences | None:
        """The intervals if they are known; else None, and they are being worked out.

        None too where the two are not of the same images, and for RETRY_S after a failure.
        """
        key = key_of(first, second)
        if key is None:
            return None
        with self._lock:
            if key in self._known:
                self._known.move_to_end(key)
                return self._known[key]
            if self._is_paused(key):
                return None
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

    def has_failed(self, first: RunRecord, second: RunRecord) -> bool:
        """Whether working them out failed, less than RETRY_S ago."""
        key = key_of(first, second)
        with self._lock:
            return key is not None and self._is_paused(key)

    def _is_paused(self, key: Key) -> bool:
        at = self._failed.get(key)
        return at is not None and self._clock() < at + RETRY_S

    def _work(self) -> None:
        while True:
            with self._lock:
                if not self._waiting:
                    self._is_working = False
                    return
                key = self._waiting[0]
            found = self._ask(Pair(key[0], key[2]))
            with self._lock:
                self._waiting.remove(key)
                self._failed.pop(key, None)
                if found is None:
                    self._failed[key] = self._clock()
                else:
                    self._known[key] = found.differences
                for kept in (self._known, self._failed):
                    while len(kept) > MAX_KEPT:
                        kept.popitem(last=False)


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


def _ask(pair: Pair) -> Worked | None:
    """The answer of a process of its own; None, and a line in the log, when it gave none."""
    argv = [sys.executable, "-m", "app.views.noise_worker"]
    try:
        child = Child(argv, request=msgspec.json.encode(pair), timeout_s=TIMEOUT_S)
        lines = list(child.lines())
        code, errors = child.finish()
    except OSError:
        log.exception("The noise of %s could not be worked out", pair)
        return None
    try:
        return msgspec.json.decode(lines[-1], type=Worked)
    except (IndexError, msgspec.DecodeError):
        log.error("Working out the noise of %s ended with code %d: %s", pair, code, errors)
        return None
