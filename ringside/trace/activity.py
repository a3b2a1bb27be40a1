"""What a rank's device does, as spans of time over its whole trace."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ringside.trace.events import COMMUNICATION, COMPUTE, Trace
from ringside.trace.intervals import subtract, union
from ringside.trace.waiting import Transfers

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ringside.trace.intervals import Spans

    Rows = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Activity:
    """`transfer` and `wait` are the two parts of `comm`; `busy` is all work."""

    busy: Spans
    compute: Spans
    comm: Spans
    transfer: Spans

    @property
    def wait(self) -> Spans:
        """Communication while other ranks have not come yet."""
        return subtract(self.comm, self.transfer)


def activity_of(trace: Trace, moved: Transfers, rows: Rows | None = None) -> Activity:
    """All work of a trace, or only some rows of it."""
    import numpy as np

    work = trace.work
    keep = np.ones(len(work), bool) if rows is None else rows
    kind = work.kind[keep]
    start, end = work.start[keep], work.end[keep]
    calls = np.array([call.index for call in trace.collectives], np.int64)
    chosen = keep[calls]
    finish = work.end[calls][chosen]
    return Activity(
        busy=union(start, end),
        compute=union(start[kind == COMPUTE], end[kind == COMPUTE]),
        comm=union(start[kind == COMMUNICATION], end[kind == COMMUNICATION]),
        transfer=union(finish - moved.transfer[chosen], finish),
    )
