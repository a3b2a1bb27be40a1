"""GPUs of one host talk over network sockets.

Seen when NCCL's log shows a network on a ring between ranks of one host. Either NCCL_SHM_DISABLE=1
is set (often as a wrong remedy for a small /dev/shm), or NCCL could not make its segment of shared
memory. Between two H200s 98 MiB took 33 ms so, 3.9 ms through host memory, 0.42 ms over NVLink.
What to do: unset the variables, and enlarge /dev/shm where the log complains (docker: --shm-size).
Sources: NVIDIA/nccl#406, Mellanox/nv_peer_memory#78; the times were measured for Ringside.
"""

from __future__ import annotations

from ringside.doctor.case import Case
from ringside.doctor.findings import Finding
from ringside.doctor.phrasing import finding_of, seen
from ringside.doctor.shares import transfer_share
from ringside.doctor.variables import set_shown, taking_away
from ringside.nccl_log import crosses_hosts, ring_edges
from ringside.nccl_log.causes import names_of, why_not_direct, why_not_shared_memory
from ringside.trace.findings import Cause
from ringside.words import say

CODE = "LINK-014"
CAUSE: Cause = "link"
ORDER = 61


def check(case: Case) -> Finding | None:
    log = case.nccl
    if log is None:
        return None
    inside = [
        edge
        for edge in ring_edges(log)
        if edge.transport == "NET" and crosses_hosts(log, edge) is False
    ]
    if not inside:
        return None
    cause = why_not_direct(log) + why_not_shared_memory(log)
    remedy, how = taking_away(names_of(cause.variables), case)
    return finding_of(
        CODE,
        CAUSE,
        "high",
        share_ratio=transfer_share(case),
        evidence=(
            seen("connections over the network", str(len(inside)), "nccl"),
            *set_shown(cause.variables),
        ),
        remedy=remedy,
        values={
            "name": inside[0].name,
            "why": cause.clause or say("doctor.log_is_silent"),
            "remedy": how if cause.variables else say("doctor.enlarge_shm"),
        },
    )
