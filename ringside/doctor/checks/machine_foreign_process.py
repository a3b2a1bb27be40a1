"""Somebody else's process on a GPU.

Seen when a process that belongs to no run of Ringside holds 256 MiB or more of a GPU, or when more
than 2 GiB are taken that no visible process accounts for: a container does not see the processes
outside. The driver's own reserve is below 1 GiB. What it costs depends on what the other process
does; a step waits for the slowest GPU, so one busy GPU holds back all ranks.
What to do: ask its owner, or choose other GPUs with CUDA_VISIBLE_DEVICES.
Of a run it is said when the machine was looked at within an hour of it.
Source: the process list and the memory of NVML.
"""

from __future__ import annotations

from ringside.doctor.case import Case
from ringside.doctor.findings import Evidence, Finding
from ringside.doctor.looking import looked_in_time
from ringside.doctor.phrasing import finding_of, seen
from ringside.machine import GpuState, Process
from ringside.trace.findings import Cause
from ringside.words import say

CODE = "MACHINE-001"
CAUSE: Cause = "environment"
ORDER = 95

LEAST_BYTES = 256 * 2**20
UNSEEN_BYTES = 2 * 2**30


def check(case: Case) -> Finding | None:
    gpus = case.machine.gpus if case.machine and looked_in_time(case) else ()
    strangers = [line for gpu in gpus for line in _strangers(gpu)]
    unseen = [line for gpu in gpus if (line := _unseen(gpu))]
    if not strangers and not unseen:
        return None
    indices = sorted({gpu.index for gpu in gpus if any(_strangers(gpu)) or _unseen(gpu)})
    return finding_of(
        CODE,
        CAUSE,
        "high" if any(_named(gpu) for gpu in gpus) else "medium",
        evidence=(*strangers, *unseen),
        values={"gpus": ", ".join(map(str, indices))},
    )


def _foreign(gpu: GpuState) -> list[Process]:
    return [
        one
        for one in gpu.processes
        if not one.is_ours and (one.memory_bytes is None or one.memory_bytes >= LEAST_BYTES)
    ]


def _named(gpu: GpuState) -> bool:
    """Whether one of the strangers is visible here; a container cannot name those outside, and one
    of them may be a run of Ringside in another container."""
    return any(one.name or one.user for one in _foreign(gpu))


def _strangers(gpu: GpuState) -> list[Evidence]:
    found = []
    for one in _foreign(gpu):
        key = "stranger" if one.name or one.user else "stranger_unnamed"
        known = one.name or one.user
        if one.name and one.user:
            known = say("seen.of_user", name=one.name, user=one.user)
        who = say(f"doctor.{key}", who=known, pid=one.pid)
        if one.memory_bytes is not None:
            who = say("seen.with_memory", who=who, gib=one.memory_bytes / 2**30)
        found.append(seen(f"GPU {gpu.index}", who, "NVML"))
    return found


def _unseen(gpu: GpuState) -> Evidence | None:
    """Memory that no process accounts for; unknown where one of them hides its share."""
    shares = [one.memory_bytes for one in gpu.processes]
    if gpu.memory_used_bytes is None or None in shares:
        return None
    rest = gpu.memory_used_bytes - sum(share or 0 for share in shares)
    if rest <= UNSEEN_BYTES:
        return None
    return seen(f"GPU {gpu.index}", say("seen.unseen", gib=rest / 2**30), "NVML")
