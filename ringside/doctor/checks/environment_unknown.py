"""A variable is set that nothing reads: a slip of the keyboard.

Seen when a name begins like one of NCCL, OpenMP, CUDA, torch or gloo, is unknown, and is close to a
known one. Libraries say nothing about such a name, so what was meant has not happened.
What to do: write the name that was meant, or unset it.
Source: the table of variables, with the names in the sources of NCCL, torch and gloo.
Sources: the table of variables gives one for each name that it knows.
"""

from __future__ import annotations

from ringside.doctor.case import Case
from ringside.doctor.findings import Finding
from ringside.doctor.variables import found_at
from ringside.trace.findings import Cause

CODE = "ENVIRONMENT-003"
CAUSE: Cause = "environment"
ORDER = 111


def check(case: Case) -> Finding | None:
    return found_at(case, "unknown", CODE, CAUSE, "medium", severity="note")
