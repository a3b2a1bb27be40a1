"""Which way the bytes went, as NCCL itself logged it."""

from __future__ import annotations

from pathlib import Path

from ringside.errors import RingsideError
from ringside.nccl_log import read_nccl_log, worst_ring_edge


def log_variables(folder: Path) -> dict[str, str]:
    """Have NCCL say into `folder/nccl/` what it sets up; it prints nothing for each call.

    NCCL reads %h as the host, %p as the process, and %% as a percent sign.
    """
    return {
        "NCCL_DEBUG": "INFO",
        "NCCL_DEBUG_SUBSYS": "INIT,ENV,GRAPH,P2P,SHM,NET",
        "NCCL_DEBUG_FILE": str(folder / "nccl").replace("%", "%%") + "/%h.%p.log",
    }


def transport_of(folder: Path) -> str | None:
    """The slowest edge of the rings in `folder/nccl/*.log`, such as `P2P/CUMEM`; None without one.

    gloo leaves no log, and one rank talks to nobody.
    """
    logs = sorted((folder / "nccl").glob("*.log"))
    if not logs:
        return None
    try:
        edge = worst_ring_edge(read_nccl_log(logs))
    except RingsideError:
        return None
    return edge.name if edge else None
