"""How long ago the two halves of a run, its trainer and its supervisor, gave a sign of life."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import msgspec

from ringside.marks import is_timed, read_marks
from ringside.run import RunRecord
from ringside.rundir import RunDir

Silent = Literal["trainer", "supervisor"]

# A supervisor touches owner.json every 10 s (ringside.launch.supervisor.HEARTBEAT_S).
OWNER_SILENT_S = 40.0
# Where nobody watches the marks (a supervisor that is silent), so long in a step is suspicious.
TRAINER_SILENT_S = 60.0


class SignOfLife(msgspec.Struct, frozen=True, kw_only=True):
    """Seconds since each half was heard of; None when it never was, or cannot be heard.

    `trainer_s` counts from the newest event, or the newest mark of a rank on this machine.
    `supervisor_s` from the last touch of owner.json; None in a terminal, where nobody touches it.
    `silent`: the halves that are silent for longer than they should. `phase` and `activity` are
    those of the rank that moved last.
    """

    trainer_s: float | None = None
    supervisor_s: float | None = None
    silent: tuple[Silent, ...] = ()
    phase: str | None = None
    activity: str | None = None


def sign_of_life(record: RunRecord, now: float) -> SignOfLife:
    """When a run was last heard of at `now` (seconds since 1970).

    A trainer that scores, compiles or saves says nothing for minutes and is not silent for that;
    one that stands still in its steps is. A run that is over has no sign of life.
    """
    if record.final:
        return SignOfLife()
    run = RunDir(Path(record.path))
    marks = read_marks(run)
    newest = max(marks, key=lambda mark: mark.t, default=None)
    heard = [t for t in (record.last_event_t, newest.t if newest else None) if t is not None]
    trainer_s = max(0.0, now - max(heard)) if heard else None
    supervisor_s = _supervisor_s(record, run, now)
    silent: list[Silent] = []
    timed = bool(marks) and all(is_timed(mark.phase, mark.activity) for mark in marks)
    hangs = record.hang is not None and record.hang.now is not None
    is_heard = supervisor_s is not None and supervisor_s <= OWNER_SILENT_S
    # A supervisor that is there watches the steps itself, and knows how long they take.
    is_long = timed and trainer_s is not None and trainer_s > TRAINER_SILENT_S
    if hangs or (is_long and not is_heard):
        silent.append("trainer")
    if supervisor_s is not None and not is_heard:
        silent.append("supervisor")
    return SignOfLife(
        trainer_s=trainer_s, supervisor_s=supervisor_s, silent=tuple(silent),
        phase=newest.phase if newest else None, activity=newest.activity if newest else None,
    )  # fmt: skip


def _supervisor_s(record: RunRecord, run: RunDir, now: float) -> float | None:
    owner = record.owner
    if owner is None or owner.kind != "supervisor":
        return None
    path: Path = run.owner
    try:
        return max(0.0, now - path.stat().st_mtime)
    except OSError:
        return None
