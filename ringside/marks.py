"""Where each rank stands: `ranks/rankN.mark`, 42 bytes that a rank rewrites in mapped memory.

No call to the system is made for a mark, and what was written survives a SIGKILL: the pages belong
to the kernel. `training.progress_mark` writes, everybody else reads here.
"""

from __future__ import annotations

import struct

import msgspec

from ringside.rundir import RunDir, iter_files

MAGIC = b"RSM1"
LAYOUT = struct.Struct("<4sIIBBIQQd")
"""magic, rank, pid, phase, activity, epoch, step, batch, seconds since 1970."""

PHASES = ("start", "data", "setup", "compile", "train", "evaluate", "save", "profile")
"""In the order of an epoch; `compile` is the first training step of a process that compiles."""

ACTIVITIES = (
    "begin", "data", "forward", "backward", "optimizer", "evaluate", "save", "exchange", "finished",
    "profile",
)  # fmt: skip
"""In the order of a step; `exchange` is where ranks compare notes, `finished` ends a run.

`profile` is the writing of traces; newer ones come last, so that older marks stay readable."""


def is_timed(phase: str, activity: str) -> bool:
    """Whether standing still here for `timeout_s` is a fault.

    Only training steps are: opening data, compiling, scoring, saving and writing traces
    take the time they need.
    """
    return phase == "train" and activity not in ("save", "profile")


class Mark(msgspec.Struct, frozen=True, kw_only=True):
    """What one rank does since `t` (seconds since 1970).

    `step` is the optimizer step under way or just done, `batch` the micro-batch in it, or the
    batch of an evaluation; both count from 1, and 0 is before the first.
    """

    rank: int
    pid: int
    phase: str
    activity: str
    epoch: int
    step: int
    batch: int
    t: float

    @property
    def position(self) -> tuple[int, ...]:
        """Grows as a rank goes on; equal work has equal positions on all ranks."""
        finished = self.activity == "finished"
        phase, activity = PHASES.index(self.phase), ACTIVITIES.index(self.activity)
        return finished, self.epoch, phase, self.step, self.batch, activity


def unpack(data: bytes) -> Mark | None:
    """The mark in `data`; None when it is none."""
    if len(data) < LAYOUT.size:
        return None
    magic, rank, pid, phase, activity, epoch, step, batch, t = LAYOUT.unpack_from(data)
    if magic != MAGIC or phase >= len(PHASES) or activity >= len(ACTIVITIES):
        return None
    return Mark(
        rank=rank, pid=pid, phase=PHASES[phase], activity=ACTIVITIES[activity], epoch=epoch,
        step=step, batch=batch, t=t,
    )  # fmt: skip


def read_marks(run: RunDir) -> list[Mark]:
    """The marks of a run by rank; a missing or damaged one is left out."""
    marks = []
    for path in iter_files(run.ranks, "rank*.mark"):
        try:
            mark = unpack(path.read_bytes())
        except OSError:
            continue
        if mark is not None:
            marks.append(mark)
    return sorted(marks, key=lambda mark: mark.rank)
