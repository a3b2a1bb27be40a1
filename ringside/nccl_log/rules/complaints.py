"""Warnings, sorted by what is wrong, and the few INFO lines that tell of a fault."""

from __future__ import annotations

import re

from ringside.nccl_log.collector import Collector
from ringside.nccl_log.facts import WarningKind
from ringside.nccl_log.lines import Line

# The first that fits counts: an IB queue that times out is a fault of IB, a full /dev/shm one of
# shm, although the system's message speaks of a device.
_KINDS: dict[WarningKind, str] = {
    "version": r"version mismatch|Mismatched NCCL version|too old|not backwards compatible",
    "algorithm": r"no algorithm/protocol available",
    "shm": r"shared memory|posix_fallocate|/dev/shm|shm_open",
    "p2p": r"peer query failed|enable P2P|P2P is disabled|peer ?access|IOMMU|Legacy IPC",
    "ib": r"NET/IB|libibverbs|ibv_|mlx5|InfiniBand|RoCE",
    "timeout": r"[Tt]ime[d ]*out|[Tt]imed out",
    "socket": r"NET/Socket|[Ss]ocket|[Cc]onnect|[Bb]ootstrap|[Ii]nterface|remote peer|[Cc]losed by",
    "cuda": r"[Cc]uda|CUDA",
}
_SORTED = re.compile("|".join(f"(?P<{kind}>{pattern})" for kind, pattern in _KINDS.items()))
# 2.20 made libibverbs' absence an INFO line; the others have always been.
_INFO_FAULTS = re.compile(
    r"Could not enable P2P between dev|peer query failed between dev|Legacy IPC not supported"
    r"|Failed to open libibverbs"
)


def kind_of(message: str) -> WarningKind:
    """What a complaint is about."""
    found = _SORTED.search(message)
    return found.lastgroup if found and found.lastgroup else "other"  # type: ignore[return-value]


def read(facts: Collector, line: Line) -> None:
    """Keep a WARN line, and an INFO line that tells of a fault."""
    if line.level != "WARN" and not _INFO_FAULTS.match(line.text):
        return
    if "libibverbs" in line.text:
        facts.missing_infiniband = facts.missing_infiniband or line.text
    facts.warn(kind_of(line.text), line, line.text)
