"""Whether a look at the machine says anything about the time of a run."""

from __future__ import annotations

import time

from ringside.doctor.case import Case

NEAR_S = 3600.0


def looked_in_time(case: Case) -> bool:
    """Load, clocks and other people's processes change: an hour before and after a run counts.

    True without a run: then the machine itself is the question.
    """
    if case.machine is None or case.record is None:
        return case.machine is not None
    begin = case.record.created_t or 0.0
    end = case.record.finished_t or time.time()
    return begin - NEAR_S <= case.machine.t <= end + NEAR_S
