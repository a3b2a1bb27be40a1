"""The hosts talk over TCP because NCCL found no InfiniBand or RoCE.

Seen when a ring crosses hosts over sockets, and NCCL says that libibverbs is missing or that it
found no card, or NCCL_IB_DISABLE is set. The same machines reached 25 GB/s over RoCE and 5 over
sockets. Where there really is no such card this is no fault, only the limit.
What to do: `ibv_devinfo` on each host; install libibverbs or the network's plugin in the container,
and pass the devices through (/dev/infiniband). Name the interface with NCCL_SOCKET_IFNAME if not.
Sources: facebookresearch/detectron2#4730 (NVIDIA/nccl#766), areal-project/AReaL#639.
"""

from __future__ import annotations

from ringside.doctor.case import Case
from ringside.doctor.findings import Finding
from ringside.doctor.phrasing import finding_of, seen
from ringside.doctor.shares import transfer_share
from ringside.doctor.variables import set_shown, taking_away
from ringside.nccl_log import crosses_hosts, ring_edges
from ringside.nccl_log.causes import names_of, why_sockets
from ringside.trace.findings import Cause
from ringside.words import say

CODE = "LINK-015"
CAUSE: Cause = "link"
ORDER = 62


def check(case: Case) -> Finding | None:
    log = case.nccl
    if log is None:
        return None
    over = [e for e in ring_edges(log) if e.kind == "Socket" and crosses_hosts(log, e)]
    cause = why_sockets(log)
    if not over or not (cause.variables or cause.reasons):
        return None
    remedy, how = taking_away(names_of(cause.variables), case)
    return finding_of(
        CODE,
        CAUSE,
        "high" if cause.variables else "medium",
        share_ratio=transfer_share(case),
        evidence=(
            seen("connections over sockets", str(len(over)), "nccl"),
            seen("NCCL says", log.missing_infiniband or "-", "nccl"),
            *set_shown(cause.variables),
        ),
        values={"why": cause.clause, "how": say("doctor.then", how=how) if cause.variables else ""},
        remedy=remedy,
    )
