"""How long the steps and the scoring of a run take, by its own account, and what is too long."""

from __future__ import annotations

from collections import deque

from ringside.events import Evaluated, WindowTimed, decode_lines
from ringside.rundir import RunDir, read_new_lines

NUM_WINDOWS = 500
PERCENTILE = 0.95

TIMES = 10.0
"""A step ten times as long as 95 % of the others is no slow step any more."""

FLOOR_S = 20.0
"""Short steps: a disk, a network or a garbage collection may hold one up for some seconds.

Where ten steps exceed this, a step takes two seconds or more, and a window of events (a second) is
one step: the percentile is then that of single steps and not of means."""

FIRST_STEPS_S = 120.0
"""Before there is a percentile: the first steps start loader workers and connections, and let
cuDNN choose."""
MIN_WINDOWS = 3

SCORING_FLOOR_S = 60.0


class Pace:
    """Follows the events of a run; `refresh` reads what is new."""

    def __init__(self, run: RunDir) -> None:
        self._path, self._offset = run.events, 0
        self._steps_ms: deque[float] = deque(maxlen=NUM_WINDOWS)
        self._longest_scoring_s: float | None = None

    def refresh(self) -> None:
        """Read the lines that have come since."""
        data, self._offset = read_new_lines(self._path, self._offset)
        for event in decode_lines(data):
            if isinstance(event, WindowTimed) and not event.profiled:
                self._steps_ms.append(event.step_ms)
            elif isinstance(event, Evaluated):
                so_far = self._longest_scoring_s or 0.0
                self._longest_scoring_s = max(so_far, event.evaluation_time_s)

    @property
    def p95_step_ms(self) -> float | None:
        """Of the newest windows; None before the first few."""
        if len(self._steps_ms) < MIN_WINDOWS:
            return None
        return sorted(self._steps_ms)[int(PERCENTILE * (len(self._steps_ms) - 1))]

    @property
    def step_limit_s(self) -> float:
        """A step that takes longer stands still."""
        p95_ms = self.p95_step_ms
        return FIRST_STEPS_S if p95_ms is None else max(FLOOR_S, TIMES * p95_ms / 1000)

    @property
    def scoring_limit_s(self) -> float | None:
        """A batch of an evaluation, or its end, that takes longer stands still; None before the
        first one: nobody knows how long scoring takes."""
        longest = self._longest_scoring_s
        return None if longest is None else max(SCORING_FLOOR_S, TIMES * longest)
