"""More threads than cores, or one thread where the processes decode images themselves.

Seen when processes times OpenMP threads exceed the cores: all of them then spin for each other, and
setting OMP_NUM_THREADS=1 restored the speed of several users. The opposite trap: torchrun silently
sets it to 1 when it is unset, which slows transforms where there are no loader workers.
What to do: OMP_NUM_THREADS = cores / processes, less what the loader's workers need.
Sources: pytorch#19825 and #20969; torch/distributed/run.py.
"""

from __future__ import annotations

from ringside.doctor.bands import WARNING
from ringside.doctor.case import Case
from ringside.doctor.clocks import window_share
from ringside.doctor.figures import spec_of
from ringside.doctor.findings import Finding
from ringside.doctor.phrasing import finding_of, seen
from ringside.trace.findings import Cause
from ringside.words import say

CODE = "ENVIRONMENT-012"
CAUSE: Cause = "environment"
ORDER = 96


def check(case: Case) -> Finding | None:
    spec, record, machine = spec_of(case), case.record, case.machine
    if spec is None or record is None or machine is None or record.observed is None:
        return None
    threads, num = _threads(case), spec.num_processes
    workers = record.started.num_workers if record.started is not None else None
    starved = (window_share(case, "data") or 0.0) >= WARNING
    is_crowded = threads is not None and threads > 1 and threads * num > machine.num_cores
    is_alone = threads == 1 and workers == 0 and starved and machine.num_cores > num
    if not is_crowded and not is_alone:
        return None
    return finding_of(
        CODE,
        CAUSE,
        "medium" if is_crowded else "low",
        severity="warning",
        evidence=(
            seen("threads of a process", str(threads), "events.jsonl"),
            seen("processes", str(num), "spec.json"),
            seen("cores", str(machine.num_cores), "affinity and cgroup"),
        ),
        values={
            "what": say(
                f"doctor.threads_{'crowded' if is_crowded else 'alone'}",
                num=num,
                threads=threads,
                cores=machine.num_cores,
            ),
            "each": max(1, machine.num_cores // num),
        },
    )


def _threads(case: Case) -> int | None:
    """OMP_NUM_THREADS as the run got it; on a CPU what torch said."""
    record = case.record
    if record is None or record.observed is None:
        return None
    if record.observed.device == "cpu":
        return record.observed.threads
    value = record.observed.environment.get("OMP_NUM_THREADS", "")
    return int(value) if value.isdecimal() else None
