"""Fewer CPU cores than processes and loader workers.

Seen for a run when its ranks and their workers together are more than the cores that this process
may use, by its affinity and its container's quota. Seen for a machine, as a note, when there are
fewer than 4 cores a GPU: decoding JPEGs took 16 cores for 2,777 images a second on one H200, and
with 4 workers it was 660, with 88 % of the step spent waiting for images.
What to do: fewer workers per rank, more cores for the container, decoding on the GPU where there is
one and it does not decode yet, or images prepared once (`ringside data prepare`).
Sources: Lightning#5773, microsoft/hi-ml#268, pytorch#105841; the H200 figures were measured for
Ringside.
"""

from __future__ import annotations

from ringside.doctor.case import Case
from ringside.doctor.decoding import decoding_to_try
from ringside.doctor.findings import Finding
from ringside.doctor.phrasing import finding_of, seen
from ringside.trace.findings import Cause
from ringside.words import say

CODE = "MACHINE-005"
CAUSE: Cause = "data"
ORDER = 52

CORES_PER_GPU = 4


def check(case: Case) -> Finding | None:
    if case.machine is None:
        return None
    return _of_run(case, case.machine.num_cores) or _of_machine(case, case.machine.num_cores)


def _of_run(case: Case, num_cores: int) -> Finding | None:
    """The workers of the run as it was set up, not as it was asked for."""
    record = case.record
    if record is None or record.spec is None or record.started is None:
        return None
    ranks, workers = record.spec.num_processes, record.started.num_workers
    if not workers or ranks * (workers + 1) <= num_cores:
        return None
    return finding_of(
        CODE,
        CAUSE,
        "medium",
        evidence=(
            seen("cores", str(num_cores), "affinity and cgroup"),
            seen("ranks x (1 + workers)", f"{ranks} x (1 + {workers})", "events.jsonl"),
        ),
        values={
            "what": say("machine.cores_run", need=ranks * (workers + 1), cores=num_cores),
            "decoding": decoding_to_try(case),
        },
    )


def _of_machine(case: Case, num_cores: int) -> Finding | None:
    num_gpus = len(case.machine.gpus) if case.machine else 0
    if case.record is not None or not num_gpus or num_cores >= CORES_PER_GPU * num_gpus:
        return None
    return finding_of(
        CODE,
        CAUSE,
        "medium",
        severity="note",
        evidence=(
            seen("cores", str(num_cores), "affinity and cgroup"),
            seen("GPUs", str(num_gpus), "NVML"),
        ),
        values={
            "what": say(
                "machine.cores_few", gpus=num_gpus, cores=num_cores, need=CORES_PER_GPU * num_gpus
            ),
            "decoding": decoding_to_try(case),
        },
    )
