"""GPUs without NVLink that cannot reach each other directly, or only across the CPUs.

Seen when the driver refuses peer access (P2P) between two GPUs: all their traffic then goes through
host memory, 26 instead of 269 GB/s between two H200s. GeForce cards have no P2P by NVIDIA's choice;
on other cards a virtual machine, the IOMMU or a switch's access control (ACS) may forbid it. Seen
as a note when P2P exists but crosses the CPUs (`node`, `sys`): there it was slower than host memory
on L20, A40 and RTX 8000, and faster elsewhere.
What to do: measure both. `ringside doctor` times an all-reduce with NCCL_P2P_DISABLE=1 beside the
default; keep the variable only where it is faster. Where P2P cannot be had, send fewer bytes.
Sources: NVIDIA/nccl#1309, #1086 (GeForce); NVIDIA/nccl#1817, #428; nccl-tests#74.
"""

from __future__ import annotations

from ringside.doctor.case import Case
from ringside.doctor.findings import Finding
from ringside.doctor.phrasing import finding_of, seen
from ringside.machine import Link, Machine
from ringside.trace.findings import Cause
from ringside.words import say

CODE = "MACHINE-007"
CAUSE: Cause = "link"
ORDER = 63

MAX_PAIRS = 8


def check(case: Case) -> Finding | None:
    machine = case.machine
    if machine is None:
        return None
    by_pcie = [link for link in machine.links if link.kind != "nvlink"]
    refused = [link for link in by_pcie if link.p2p is False]
    across = [link for link in by_pcie if link.p2p and link.kind in ("node", "sys")]
    if not refused and not across:
        return None
    links = refused or across
    return finding_of(
        CODE,
        CAUSE,
        "high" if refused else "low",
        severity="warning" if refused else "note",
        evidence=tuple(
            seen(say("seen.two_gpus", a=link.a, b=link.b), _value(link), "NVML")
            for link in links[:MAX_PAIRS]
        ),
        values={"what": _what(machine, links, is_refused=bool(refused)), "num": len(links)},
    )


def _what(machine: Machine, links: list[Link], *, is_refused: bool) -> str:
    if not is_refused:
        return say("machine.p2p_across", num=len(links))
    names = {gpu.name for gpu in machine.gpus}
    is_geforce = any("GeForce" in name for name in names)
    return say("machine.p2p_geforce" if is_geforce else "machine.p2p_refused", num=len(links))


def _value(link: Link) -> str:
    return say(f"machine.link_{link.kind}") + ("" if link.p2p else ", " + say("machine.no_p2p"))
