"""`hang.json`: when the ranks of a run stand still much longer than their steps take.

Whoever owns the run writes it: its supervisor, or rank 0 of a run started in a terminal. A
standstill that ends stays as a note; one that does not ends the run when `timeout_s` is over.
"""

from __future__ import annotations

import msgspec

from ringside.marks import Mark
from ringside.rundir import RunDir, check_format
from ringside.spec import FORMAT

MAX_PAST = 20


class Standstill(msgspec.Struct, frozen=True, kw_only=True):
    """No rank came on for `limit_s` or longer; times in seconds since 1970.

    `since` is when the last rank moved, `until` when one moved again: None while all stand.
    `limit_s` is how long it had to take, `p95_step_ms` the 95th percentile of the run's steps by
    then (None before the first). `marks` tell where each rank stood, and `ringside.launch.blame`
    says it in words. `stacks_t` is when the ranks were asked for their stacks.
    """

    since: float
    limit_s: float
    step: int
    epoch: int
    marks: tuple[Mark, ...]
    until: float | None = None
    p95_step_ms: float | None = None
    stacks_t: float | None = None

    def lasted_s(self, now: float) -> float:
        """How long it lasted, or has lasted at `now`."""
        return max(0.0, (now if self.until is None else self.until) - self.since)


class Hang(msgspec.Struct, frozen=True, kw_only=True):
    """`now`: the run probably hangs; None when it does not. `past`: the newest that ended."""

    format: int = FORMAT
    now: Standstill | None = None
    past: tuple[Standstill, ...] = ()

    def begun(self, standstill: Standstill) -> Hang:
        """With a standstill that goes on."""
        return Hang(now=standstill, past=self.past)

    def ended(self, until: float) -> Hang:
        """The ranks came on; of many standstills the newest are kept."""
        if self.now is None:
            return self
        over = msgspec.structs.replace(self.now, until=until)
        return Hang(past=(*self.past, over)[-MAX_PAST:])


def read_hang(run: RunDir) -> Hang | None:
    """What the owner noted; None where it noted nothing. RunDirError for a newer format."""
    found = run.read(run.hang, Hang)
    if found is not None:
        check_format(found.format, str(run.hang))
    return found
