"""The marks that ranks leave of where they are."""

from __future__ import annotations

from ringside.marks import ACTIVITIES, LAYOUT, MAGIC, PHASES, Mark
from ringside.rundir import RunDir


def leave_marks(run: RunDir, *marks: Mark) -> None:
    """Write the mark of each rank, as the ranks themselves do."""
    for mark in marks:
        data = LAYOUT.pack(
            MAGIC, mark.rank, mark.pid, PHASES.index(mark.phase), ACTIVITIES.index(mark.activity),
            mark.epoch, mark.step, mark.batch, mark.t,
        )  # fmt: skip
        (run.ranks / f"rank{mark.rank}.mark").write_bytes(data)
