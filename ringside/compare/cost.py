"""What a run cost: how long its devices were held, whether they worked or waited.

From the trainer's first line to its last: data, set-up, compiling, warm-up, evaluation and saving
count, and so does every device. What a run that this one continues had cost before does not.
"""

from __future__ import annotations

import time
from typing import Literal

import msgspec

from ringside.run import RunRecord

Until = Literal["finished", "ended", "now"]


class Cost(msgspec.Struct, frozen=True, kw_only=True):
    """`wall_time_s`, and until when: the trainer's last line, the end of a broken run, or now."""

    wall_time_s: float
    until: Until
    device_hours: float


def cost_of(record: RunRecord, now: float | None = None) -> Cost | None:
    """What it cost so far; None before the first sign of it. `now` in seconds since 1970."""
    spec, found = record.spec, _wall_time(record, now or time.time())
    if spec is None or found is None:
        return None
    wall_time_s, until = found
    return Cost(
        wall_time_s=wall_time_s, until=until, device_hours=wall_time_s * spec.num_devices / 3600
    )


def _wall_time(record: RunRecord, now: float) -> tuple[float, Until] | None:
    if record.total_time_s is not None:
        return record.total_time_s, "finished"
    if record.exit is not None:
        return max(0.0, record.exit.finished - record.exit.started), "ended"
    if record.owner is not None:
        began = record.owner.started
    elif record.started is not None:
        began = record.started.t
    else:
        return None
    # Of a run whose owner is gone nobody knows more than its last line.
    until = (record.last_event_t or began) if record.final else now
    return max(0.0, until - began), "ended" if record.final else "now"
