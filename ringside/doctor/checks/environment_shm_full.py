"""A segment of shared memory could not be made: /dev/shm is full.

Seen when NCCL's log or the processes' output says so: posix_fallocate, "No space left on device"
below /dev/shm, "insufficient shared memory", or a loader worker that a bus error killed. Docker
gives a container 64 MiB unless told otherwise; a segment of NCCL has 9.6 MB per connection.
What to do: `docker run --shm-size=8g` or `--ipc=host`; in Kubernetes an emptyDir of medium Memory
at /dev/shm. Not NCCL_SHM_DISABLE=1: the traffic then goes over sockets, eight times slower.
Sources: NVIDIA/nccl#342, #290 and #525, pytorch/ci-infra#490.
"""

from __future__ import annotations

import re

from ringside.doctor.case import Case
from ringside.doctor.findings import Finding
from ringside.doctor.phrasing import finding_of, seen
from ringside.trace.findings import Cause

CODE = "ENVIRONMENT-010"
CAUSE: Cause = "environment"
ORDER = 15

SAYS_SO = re.compile(
    r"posix_fallocate failed|/dev/shm/\S*.{0,80}No space left|insufficient shared memory"
    r"|killed by signal: Bus error",
    re.IGNORECASE,
)


def check(case: Case) -> Finding | None:
    logged = [w for w in case.nccl.warnings if w.kind == "shm"] if case.nccl is not None else []
    said = SAYS_SO.search(case.console)
    if not logged and said is None:
        return None
    if logged:
        evidence = seen("NCCL says", logged[0].message, "nccl")
    else:
        evidence = seen("printed", _line_of(case.console, said), "console.log")
    return finding_of(CODE, CAUSE, "high", severity="critical", evidence=(evidence,))


def _line_of(text: str, found: re.Match[str] | None) -> str:
    """The whole line of a match, at most 200 characters of it."""
    if found is None:
        return ""
    start = text.rfind("\n", 0, found.start()) + 1
    end = text.find("\n", found.end())
    return text[start : end if end >= 0 else None].strip()[:200]
