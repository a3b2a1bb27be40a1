"""How often the pages of a run ask: each second, but less where training needs every core."""

from __future__ import annotations

import math
import os
import threading
import time
from collections.abc import Callable

PERIOD_S, MAX_PERIOD_S = 1.0, 10.0
ANSWERS_PER_S = 5
"""Of all pages together while no core is free; one costs a core some 10 ms (benchmarks/page.py)."""

FULL_BELOW, FREE_ABOVE = 0.5, 0.8
"""Free cores. Apart, because pages that ask less leave more of a core free."""

LOOK_S = 2.0
FORGET_S = 60.0
"""A page that has not asked for so long is closed, or hidden and slowed down by its browser."""


def free_cores() -> float:
    """Cores of this machine that nobody used since the last call."""
    import psutil

    used_ratio = psutil.cpu_percent(None) / 100
    return (1 - used_ratio) * (os.cpu_count() or 1)


class Pace:
    """The seconds between two questions of each page; safe to use from many threads."""

    def __init__(
        self, free: Callable[[], float] = free_cores, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._free, self._clock = free, clock
        self._lock = threading.Lock()
        self._asked: dict[str, float] = {}
        self._told: dict[str, float] = {}
        self._looked, self._is_full = -math.inf, False

    def news(self, viewer: str) -> float | None:
        """The page of `viewer` asks now; the seconds to its next question, unless it knows them.

        One that is not remembered may have been told anything, perhaps by an earlier server.
        """
        now = self._clock()
        with self._lock:
            self._asked[viewer] = now
            if now - self._looked >= LOOK_S:
                self._look(now)
            seconds = self._period_s()
            if self._told.get(viewer) == seconds:
                return None
            self._told[viewer] = seconds
            return seconds

    def _look(self, now: float) -> None:
        self._looked = now
        self._is_full = self._free() < (FREE_ABOVE if self._is_full else FULL_BELOW)
        for viewer in [one for one, asked in self._asked.items() if now - asked > FORGET_S]:
            del self._asked[viewer]
            self._told.pop(viewer, None)

    def _period_s(self) -> float:
        if not self._is_full:
            return PERIOD_S
        shared = math.ceil(len(self._asked) / ANSWERS_PER_S)
        return min(max(PERIOD_S, float(shared)), MAX_PERIOD_S)
