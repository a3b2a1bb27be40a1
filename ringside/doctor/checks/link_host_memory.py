"""GPUs of one host talk through its memory although nobody asked for that.

Seen when NCCL's log shows SHM on a ring and no variable forbids P2P. GeForce cards have no P2P by
NVIDIA's choice; on other cards a virtual machine, GPUs under different CPUs, the IOMMU, or ranks in
separate containers are the usual reasons. With three cards of one kind the way may be SHM where
two of them had P2P.
What to do: `nvidia-smi topo -p2p r` says what the driver allows (NS: not supported). Where P2P
cannot be had, send fewer bytes: a 16-bit hook, or a larger batch per device.
Sources: NVIDIA/nccl#1309 and #1086, nccl-tests#307; tinygrad/open-gpu-kernel-modules#17.
"""

from __future__ import annotations

from ringside.doctor.case import Case
from ringside.doctor.figures import device_name
from ringside.doctor.findings import Finding
from ringside.doctor.gains import fewer_bytes_of
from ringside.doctor.phrasing import finding_of, seen
from ringside.doctor.shares import transfer_share
from ringside.nccl_log import worst_ring_edge
from ringside.nccl_log.causes import why_not_direct
from ringside.trace.findings import Cause
from ringside.words import say

CODE = "LINK-012"
CAUSE: Cause = "link"
ORDER = 63


def check(case: Case) -> Finding | None:
    if case.nccl is None or why_not_direct(case.nccl).variables:
        return None
    edge = worst_ring_edge(case.nccl)
    if edge is None or edge.transport != "SHM":
        return None
    gpus = case.machine.gpus if case.machine is not None else ()
    name = next((gpu.name for gpu in gpus), device_name(case))
    is_geforce = "GeForce" in name
    return finding_of(
        CODE,
        CAUSE,
        "high" if is_geforce else "medium",
        share_ratio=transfer_share(case),
        evidence=(
            seen("slowest way in a ring", edge.name, "nccl"),
            seen("device", name or "-", "driver"),
        ),
        values={"why": say("doctor.no_p2p_geforce" if is_geforce else "doctor.no_p2p_unknown")},
        remedy=fewer_bytes_of(case),
    )
