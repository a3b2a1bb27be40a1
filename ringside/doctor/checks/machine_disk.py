"""The disk of the runs is nearly full.

Seen when less than 5 GiB are left where runs are kept. A ResNet-50 with its optimizer takes about
0.2 GB a checkpoint, and a run keeps two of them, traces and logs; a run whose disk fills up fails
at its next checkpoint.
What to do: remove old runs or their checkpoints (`ringside list` names the folder), or set
RINGSIDE_RUNS to another disk.
Of a run it is said when the machine was looked at within an hour of it.
Source: 23.7 million parameters with momentum in fp32; the limit is Ringside's choice.
Sources: a choice; it is room for ten runs.
"""

from __future__ import annotations

from ringside.doctor.case import Case
from ringside.doctor.findings import Finding
from ringside.doctor.looking import looked_in_time
from ringside.doctor.phrasing import finding_of, seen
from ringside.trace.findings import Cause

CODE = "MACHINE-009"
CAUSE: Cause = "environment"
ORDER = 97

LEAST_BYTES = 5 * 2**30


def check(case: Case) -> Finding | None:
    free = case.machine.disk_free_bytes if case.machine and looked_in_time(case) else None
    if free is None or free >= LEAST_BYTES:
        return None
    gib = free / 2**30
    return finding_of(
        CODE,
        CAUSE,
        "high",
        evidence=(seen("free", f"{gib:.1f} GiB", "statvfs"),),
        values={"gib": gib},
    )
