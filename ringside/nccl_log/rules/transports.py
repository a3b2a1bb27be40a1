"""The lines `Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM`: which way the bytes go.

Connection indices came with 2.11; in the brackets stood CUDA's index, then (2.5) the bus id, since
2.18 NVML's index; up to 2.6 a channel was called a ring (src/transport/{p2p,shm,net}.cc).
"""

from __future__ import annotations

import re

from ringside.nccl_log.collector import Collector
from ringside.nccl_log.facts import Edge
from ringside.nccl_log.lines import Line
from ringside.nccl_log.rules.rule import Rule

_FROM_TO = (
    r"(?:Channel|Ring) (?P<channel>\d+)(?:/(?P<connection>\d+))? : "
    r"(?P<src>\d+)(?:\[[0-9a-f]+\])? -> (?P<dst>\d+)(?:\[[0-9a-f]+\])? "
)
_P2P = (
    r"via P2P/(?P<p2p>(?:direct pointer|common device|IPC|CUMEM|MNNVL|indirect/\d+\[[0-9a-f]+\])"
    r"(?:/read)?(?:/CE)?)$"
)
_SHM = r"via (?:direct (?P<old_shm>shared) memory|SHM/(?P<shm>(?:direct|CE)(?:/(?:direct|CE))?))$"
_NET = (
    r"\[(?:send|receive)\] via NET/(?P<net>[^/]+)/(?P<nic>\d+)(?:\(\d+\))?"
    r"(?P<gdr>/GDRDMA(?:\(PCI\))?)?(?:/Shared)?$"
)
_CHANNEL = re.compile(f"{_FROM_TO}(?:{_P2P}|{_SHM}|{_NET})")


def _read(facts: Collector, line: Line, found: re.Match[str]) -> None:
    connection = found["connection"]
    transport, kind = "NET", found["net"]
    if found["p2p"]:
        transport, kind = "P2P", re.sub(r"\[[0-9a-f]+\]", "", found["p2p"])
    elif found["shm"] or found["old_shm"]:
        transport, kind = "SHM", found["shm"] or "direct"
    facts.add_edge(
        Edge(
            communicator=facts.communicator(line),
            channel=int(found["channel"]),
            connection=None if connection is None else int(connection),
            src=int(found["src"]),
            dst=int(found["dst"]),
            transport=transport,  # type: ignore[arg-type]
            kind=kind,
            nic=int(found["nic"]) if found["nic"] else None,
            gpu_direct=bool(found["gdr"]),
        )
    )


RULES: tuple[Rule, ...] = ((_CHANNEL, _read),)
