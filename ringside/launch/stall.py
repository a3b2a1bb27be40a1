"""When no rank of a run comes on any more, and none can say so.

A rank that stands still ends itself (`training.watchdog`). This covers ranks that cannot: stopped
ones, and those that hold Python's lock in a call that never returns.
"""

from __future__ import annotations

import time

from ringside.marks import is_timed, read_marks
from ringside.rundir import RunDir
from ringside.spec import RunSpec

LOOK_S = 1.0
# The ranks' own watchdogs come first: they know more.
MARGIN_S = 30.0


class StallWatch:
    """Watches the marks of a run; only training steps count, for setting up may take its time."""

    def __init__(self, run: RunDir) -> None:
        self._run = run
        spec = run.read(run.spec, RunSpec)
        self.limit_s = spec.training.timeout_s + MARGIN_S if spec else float("inf")
        self._seen: object = None
        self._changed = self._looked = time.monotonic()

    def stalled_s(self) -> float | None:
        """Seconds since a rank came on, when that is beyond the limit; else None.

        Counted on this process's own clock, which stands still while the machine sleeps.
        """
        now = time.monotonic()
        if now - self._looked < LOOK_S:
            return None
        self._looked = now
        try:
            marks = read_marks(self._run)
        except OSError:
            return None  # The folder does not answer now, which is no reason to end the run.
        timed = all(is_timed(mark.phase, mark.activity) for mark in marks)
        if marks != self._seen or not timed:
            self._seen, self._changed = marks, now
        still_s = now - self._changed
        return still_s if marks and still_s >= self.limit_s else None
