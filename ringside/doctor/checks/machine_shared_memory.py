"""Shared memory (/dev/shm) is too small.

Seen when /dev/shm has less than 1 GiB in all, or less than 256 MiB left. A container of Docker gets
64 MiB. NCCL lays about 10 MB per connection there (an error named a segment of 9,637,888 bytes),
and each loader worker its finished batches: 64 images of 224 px are 39 MB in fp32. When it is full,
NCCL stops with `No space left on device`, or a worker dies of a bus error.
What to do: start the container with `--shm-size=8g` or `--ipc=host`; in Kubernetes mount an
emptyDir with `medium: Memory` at /dev/shm. Not NCCL_SHM_DISABLE=1: that moves the traffic to
sockets, 3 instead of 26 GB/s between two H200s.
Of a run it is said when the machine was looked at within an hour of it.
Sources: NVIDIA/nccl#290, #342, #525; pytorch/ci-infra#490.
"""

from __future__ import annotations

from ringside.doctor.case import Case
from ringside.doctor.findings import Finding
from ringside.doctor.looking import looked_in_time
from ringside.doctor.phrasing import finding_of, seen
from ringside.trace.findings import Cause
from ringside.words import say

CODE = "MACHINE-004"
CAUSE: Cause = "environment"
ORDER = 96

MIB = 2**20
LEAST_TOTAL_BYTES = 1024 * MIB
LEAST_FREE_BYTES = 256 * MIB


def check(case: Case) -> Finding | None:
    machine = case.machine if looked_in_time(case) else None
    if machine is None or machine.shm_total_bytes is None:
        return None
    total, free = machine.shm_total_bytes, machine.shm_free_bytes
    if total >= LEAST_TOTAL_BYTES and (free is None or free >= LEAST_FREE_BYTES):
        return None
    evidence = [seen("/dev/shm", say("seen.in_all", amount=f"{total / MIB:,.0f} MiB"), "statvfs")]
    if free is not None:
        evidence.append(seen("free", f"{free / MIB:,.0f} MiB", "statvfs"))
    return finding_of(
        CODE, CAUSE, "high", evidence=tuple(evidence), values={"mib": total / MIB, "free": free}
    )
