"""What healthy links reach: bus bandwidth of an all-reduce of 64 MiB and more, with its source.

    yardstick = yardstick_of("P2P/CUMEM", "NVIDIA H200", machine.links)
    standing = judge(269e9, yardstick)      # "healthy"

A range, not a target: the number of GPUs, the switch and the host move a figure inside it. Most
published figures are plateaus of 1 GiB and more; a sweep to 256 MiB stops short of them (8 x A100
and 8 x H200 both reach 72 % of theirs at 64 MiB), so a range begins 30 % below its only figure.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ringside.machine.facts import Link

FAR = 0.5

Standing = Literal["above", "healthy", "below", "far below"]
Route = Literal["nvlink", "pcie", "shm", "socket", "ib"]


@dataclass(frozen=True, kw_only=True)
class Yardstick:
    """From `low` to `high` bytes a second. `devices`: parts of a GPU's name; empty: any."""

    route: Route
    low_bytes_per_s: float
    high_bytes_per_s: float
    source: str
    devices: tuple[str, ...] = ()


def _gb(route: Route, low: float, high: float, source: str, *devices: str) -> Yardstick:
    return Yardstick(
        route=route,
        low_bytes_per_s=low * 1e9,
        high_bytes_per_s=high * 1e9,
        source=source,
        devices=devices,
    )  # fmt: skip


_ML_ENGINEERING = "stas00/ml-engineering, network/README.md"

# The first that fits counts.
YARDSTICKS = (
    _gb("nvlink", 590, 850, f"8 x B200: 846 GB/s; {_ML_ENGINEERING}", "B200"),
    _gb(
        "nvlink", 80, 120, "2 x H100 PCIe with a bridge: 115 GB/s; NVIDIA/nccl-tests#194",
        "H100 PCIe",
    ),
    _gb(
        "nvlink", 200, 482,
        "2 x H200: 211 GB/s at 64 MiB, 269 at 256 MiB, measured for Ringside; "
        f"8 x H200: 367 (ring) to 482 (NVLS); {_ML_ENGINEERING}",
        "H100", "H200", "H20",
    ),
    _gb(
        "nvlink", 145, 235,
        f"a pair: 208 GB/s; NVIDIA/nccl-tests#178; 8 x A100: 172 to 235; {_ML_ENGINEERING}",
        "A100", "A800",
    ),
    _gb("nvlink", 84, 120, "6 links of 20 GB/s in NCCL's own table, src/graph/topo.h", "V100"),
    _gb("nvlink", 14, 22, "2 x 2080 Ti with a bridge: 20 to 22 GB/s; NVIDIA/nccl-tests#44",
        "2080 Ti"),
    _gb(
        "pcie", 8, 24,
        "8 x A100 PCIe: 8 to 21 GB/s; NVIDIA/nccl#841; PCIe 4 x16: 24 in NCCL's table, "
        "src/graph/topo.h; PCIe 3 has half, PCIe 5 twice as much",
    ),
    _gb(
        "shm", 6, 29,
        "8 x L20: 6.1 GB/s; NVIDIA/nccl#1817; 2 x H200: 26 to 29, measured for Ringside",
    ),
    _gb("ib", 25, 57, "RoCE: 25 GB/s; areal-project/AReaL#639; 2 x p4d: 57; NVIDIA/nccl#527"),
    _gb(
        "socket", 2.5, 10,
        "2 x H200 on one host: 3 GB/s with NCCL's defaults, 10 with two threads of four sockets; "
        "measured for Ringside",
    ),
)  # fmt: skip


def yardstick_of(
    transport: str | None, device_name: str, links: tuple[Link, ...]
) -> Yardstick | None:
    """The range for the way that a series went; None where nobody published one.

    `transport` is NCCL's word, such as `P2P/CUMEM`; gloo has none.
    """
    return yardstick_of_route(route_of(transport, links), device_name)


def yardstick_of_route(route: Route | None, device_name: str) -> Yardstick | None:
    """The same by what carries the bytes."""
    fits = (
        one
        for one in YARDSTICKS
        if one.route == route
        and (not one.devices or any(part in device_name for part in one.devices))
    )
    return next(fits, None)


def route_of(transport: str | None, links: tuple[Link, ...]) -> Route | None:
    """What carries the bytes, from NCCL's word for it; P2P goes over NVLink where there is any."""
    kind = (transport or "").upper()
    if kind.startswith("P2P"):
        if not links:
            return None
        return "nvlink" if all(link.kind == "nvlink" for link in links) else "pcie"
    if kind.startswith("SHM"):
        return "shm"
    if kind.startswith("NET/SOCKET"):
        return "socket"
    return "ib" if kind.startswith("NET/IB") else None


def judge(busbw_bytes_per_s: float, yardstick: Yardstick) -> Standing:
    """far below: less than half of the low end."""
    if busbw_bytes_per_s < FAR * yardstick.low_bytes_per_s:
        return "far below"
    if busbw_bytes_per_s < yardstick.low_bytes_per_s:
        return "below"
    return "above" if busbw_bytes_per_s > yardstick.high_bytes_per_s else "healthy"
