"""A variable is set that a search for faults left behind, or that has a new name.

Seen when the environment holds one that the table of variables calls a leftover, such as
NCCL_DEBUG=TRACE, or a name that NCCL has replaced. It rarely costs much; it surprises later.
What to do: unset it, or say its new name.
Source: NVIDIA's guide to NCCL variables: those for debugging belong in no script.
"""

from __future__ import annotations

from ringside.doctor.case import Case
from ringside.doctor.findings import Finding
from ringside.doctor.variables import found_at
from ringside.trace.findings import Cause

CODE = "ENVIRONMENT-002"
CAUSE: Cause = "environment"
ORDER = 110


def check(case: Case) -> Finding | None:
    return found_at(case, "leftover", CODE, CAUSE, "high", severity="note")
