"""A variable is set that costs speed, or stops a run.

Seen when the environment holds one that the table of variables calls a handicap at its value, such
as NCCL_P2P_DISABLE=1, NCCL_SHM_DISABLE=1 or a forced algorithm: since NCCL 2.24 nothing falls back,
and NCCL_ALGO=Tree ends DDP at its start (seen with 2.28.9). What one costs depends on the machine:
between two H200s an all-reduce of 98 MiB took 0.42 ms as it is, 3.9 ms without P2P and 33 ms
without shared memory too.
What to do: unset it and measure again; keep it only where it is faster.
Sources: NVIDIA's guide to NCCL variables, and the source that the table gives for each.
"""

from __future__ import annotations

from collections.abc import Collection

from ringside.doctor.case import Case
from ringside.doctor.findings import Finding
from ringside.doctor.variables import found_at
from ringside.trace.findings import Cause

CODE = "ENVIRONMENT-001"
CAUSE: Cause = "environment"
ORDER = 98


def check(case: Case, told: Collection[str] = ()) -> Finding | None:
    """`told`: names that another finding speaks of."""
    return found_at(case, "handicap", CODE, CAUSE, "medium", can_unset=True, told=told)
