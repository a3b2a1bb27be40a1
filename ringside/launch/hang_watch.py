"""Notices long before `timeout_s` that a run stands still, and asks its ranks for their stacks.

Only training steps count, and scoring once it is known how long it takes: opening data, compiling,
saving and profiling are phases of their own and take what they need (`ringside.marks.is_timed`).
"""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress

from ringside.errors import RunDirError
from ringside.hang import Hang, Standstill
from ringside.identity import ProcessIdentity
from ringside.launch.pace import Pace
from ringside.launch.stack_dump import PATIENCE_S, Asked, ask_for_stacks, insist
from ringside.marks import Mark, is_timed, read_marks
from ringside.rundir import RunDir
from ringside.spec import RunSpec

LOOK_S = 1.0
# Who did not look for so long was stopped itself, and knows nothing of the time between.
MAX_GAP_S = 10.0
SHARE_OF_TIMEOUT = 0.5


class HangWatch:
    """Watches the marks of a run, for its owner; `processes` are those that may be asked.

    A look costs a hundred microseconds, and the ranks nothing: their marks are read as memory of
    the kernel's.
    """

    def __init__(self, run: RunDir, processes: Callable[[], set[ProcessIdentity]]) -> None:
        self._run, self._processes = run, processes
        spec = run.read(run.spec, RunSpec)
        self._timeout_s = spec.training.timeout_s if spec else float("inf")
        self._pace = Pace(run)
        self._seen: list[Mark] = []
        self._changed = self._looked = time.monotonic()
        self.hang = Hang()
        self._asked: list[Asked] = []
        self._asked_at = 0.0
        self._is_broken = False

    def look(self) -> None:
        """Call this as often as you like; it looks once a second and writes `hang.json`.

        Never raises: whoever only looks on must not end a run.
        """
        now = time.monotonic()
        if now - self._looked >= LOOK_S:
            self._carefully(now)

    def end(self) -> None:
        """A last look, at a run that has ended: its ranks may just have come on."""
        if self.hang.now is not None:
            self._carefully(time.monotonic())

    def _carefully(self, now: float) -> None:
        if self._is_broken:
            return
        try:
            self._look(now)
        except OSError:
            return  # The folder does not answer now.
        except Exception:
            traceback.print_exc()
            self._is_broken = True

    def _look(self, now: float) -> None:
        if now - self._looked > MAX_GAP_S:
            self._changed = now
        self._looked = now
        self._pace.refresh()
        marks = read_marks(self._run)
        if marks != self._seen:
            self._seen, self._changed = marks, now
            self._came_on()
        elif self._asked and now - self._asked_at >= PATIENCE_S:
            insist(self._run, self._asked)
            self._asked = []
        elif self.hang.now is None:
            limit_s = self._limit_s(marks)
            if limit_s is not None and now - self._changed >= limit_s:
                self._stands_still(marks, limit_s, now - self._changed)

    def _limit_s(self, marks: Sequence[Mark]) -> float | None:
        """How long all may stand where they stand; None: as long as they like."""
        if not marks or all(mark.activity == "finished" for mark in marks):
            return None
        if all(is_timed(mark.phase, mark.activity) for mark in marks):
            limit_s: float | None = self._pace.step_limit_s
        elif all(mark.phase == "evaluate" for mark in marks):
            limit_s = self._pace.scoring_limit_s
        else:
            return None
        # A rank that stands still ends itself then; it has to be said before.
        return limit_s and min(limit_s, SHARE_OF_TIMEOUT * self._timeout_s)

    def _stands_still(self, marks: Sequence[Mark], limit_s: float, still_s: float) -> None:
        now = time.time()
        self._asked = ask_for_stacks(self._run, self._processes())
        self._asked_at = time.monotonic()
        standstill = Standstill(
            since=now - still_s,
            limit_s=limit_s,
            step=max(mark.step for mark in marks),
            epoch=max(mark.epoch for mark in marks),
            marks=tuple(marks),
            p95_step_ms=self._pace.p95_step_ms,
            stacks_t=now if any(one.problem is None for one in self._asked) else None,
        )
        self._keep(self.hang.begun(standstill))

    def _came_on(self) -> None:
        self._asked = []
        if self.hang.now is not None:
            self._keep(self.hang.ended(time.time()))

    def _keep(self, hang: Hang) -> None:
        self.hang = hang
        # On a full disk nobody is told; the run itself is not touched.
        with suppress(RunDirError):
            self._run.write(self._run.hang, hang)
