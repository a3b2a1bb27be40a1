"""Somebody switched P2P off, which is often the remedy for an IOMMU that was left on.

Seen when NCCL_P2P_DISABLE is set, or NCCL_P2P_LEVEL forbids every way (LOC), and the GPUs talk
through host memory or sockets. The usual history: with VT-d or AMD-Vi translating, P2P hangs or
returns wrong data, and the variable makes the run start. On eight A100 over PCIe turning the IOMMU
off gave P2P back, at 8 to 21 GB/s. Whether an IOMMU translates is set at boot; Ringside does not
look at the kernel's command line.
What to do: `cat /proc/cmdline` (iommu=pt, intel_iommu, amd_iommu) and `dmesg | grep -i iommu`
decide it. Then run without the variable: if it hangs, turn the IOMMU off or to pass-through.
Sources: NVIDIA/nccl#841 and #631; 98 MiB between two H200s took 3.9 ms without P2P, 0.42 with it.
"""

from __future__ import annotations

from ringside.doctor.case import Case
from ringside.doctor.figures import transport_of
from ringside.doctor.findings import Finding
from ringside.doctor.phrasing import finding_of, seen
from ringside.doctor.shares import transfer_share
from ringside.doctor.variables import set_shown, taking_away
from ringside.nccl_log import NcclLog
from ringside.nccl_log.causes import listed, names_of, why_not_direct
from ringside.trace.findings import Cause

CODE = "LINK-011"
CAUSE: Cause = "link"
ORDER = 62


def check(case: Case) -> Finding | None:
    transport = transport_of(case)
    variables = _forbidding(case)
    if not variables or (transport or "").startswith("P2P"):
        return None
    remedy, how = taking_away(names_of(variables), case)
    evidence = list(set_shown(variables))
    if transport is not None:
        evidence.append(seen("way of the bytes", transport, "nccl"))
    return finding_of(
        CODE,
        CAUSE,
        "low" if transport is None else "medium",
        share_ratio=transfer_share(case),
        evidence=tuple(evidence),
        values={"names": listed(variables), "how": how},
        remedy=remedy,
    )


def _forbidding(case: Case) -> tuple[str, ...]:
    """Variables that forbid P2P, as `NAME=value`: by the log, else by the environment."""
    if case.nccl is not None:
        return why_not_direct(case.nccl).variables
    values = {one.name: one.value for one in case.variables}
    if values.get("NCCL_P2P_LEVEL") != "LOC":
        values.pop("NCCL_P2P_LEVEL", None)
    return why_not_direct(NcclLog(environment=values)).variables
