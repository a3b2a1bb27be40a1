"""The way between the devices of a run, in one word, from NCCL's log of the run."""

from __future__ import annotations

from ringside.errors import RingsideError
from ringside.rundir import RunDir, iter_files

_ROUTES = {"SHM": "shared memory", "NET": "network"}


def route_of_run(run: RunDir, backend: str | None) -> str | None:
    """`NVLink`, `PCIe`, `shared memory`, `network`, `gloo`; None where nothing tells.

    The slowest connection of a ring speaks for all.
    """
    if backend == "gloo":
        return "gloo"
    files = list(iter_files(run.nccl, "*"))
    if backend != "nccl" or not files:
        return None
    from ringside.nccl_log import read_nccl_log, worst_ring_edge
    from ringside.nccl_log.derive import has_nvlink

    try:
        log = read_nccl_log(files)
    except RingsideError:
        return None
    edge = worst_ring_edge(log)
    if edge is None or edge.transport != "P2P":
        return _ROUTES.get(edge.transport) if edge is not None else None
    if not (log.paths or log.patterns):
        return None
    return "NVLink" if has_nvlink(log) else "PCIe"
