"""The network between the ranks is what the step waits for.

Seen when a ring crosses hosts over sockets and the exposed transfer is 10 % of the step or more. A
link of 625 Mbit/s turned 9 hours into 22 when two remote GPUs were added. With TCP a few threads
and sockets more may help: 33 ms became 10.4 for 98 MiB between two H200s, 15 to 30 % elsewhere, and
it hurt on a network of 100 Gbit/s; so it is measured, and kept only where it is faster.
What to do: fewer bytes (a 16-bit hook), or fewer exchanges (a larger batch per device, then
accumulation); compare the bandwidth with `iperf3`, which shows what the network can do.
Sources: speechbrain#1096, Lightning#7179, NVIDIA/nccl#450; the H200 times were measured here.
"""

from __future__ import annotations

from ringside.doctor.bands import WARNING
from ringside.doctor.case import Case
from ringside.doctor.figures import best_busbw, trial_of
from ringside.doctor.findings import Finding
from ringside.doctor.gains import fewer_bytes_of
from ringside.doctor.phrasing import finding_of, seen
from ringside.doctor.shares import transfer_share
from ringside.nccl_log import crosses_hosts, ring_edges
from ringside.trace.findings import Cause
from ringside.words import say

CODE = "LINK-016"
CAUSE: Cause = "link"
ORDER = 65

TUNED = {"NCCL_SOCKET_NTHREADS": "2", "NCCL_NSOCKS_PERTHREAD": "4"}


def check(case: Case) -> Finding | None:
    share, best = transfer_share(case), best_busbw(case)
    if not _is_between_hosts(case) or best is None:
        return None
    if share is None or share < WARNING:
        return None
    busbw, source = best
    evidence = [
        seen("bus bandwidth", f"{busbw / 1e9:.2f} GB/s = {busbw * 8 / 1e9:.0f} Gbit/s", source)
    ]
    trial = trial_of(case, **TUNED)
    faster = max(trial.ratios.items())[1] if trial and trial.outcome == "faster" else None
    if faster is not None:
        evidence.append(
            seen("with 2 threads of 4 sockets", say("seen.times_faster", ratio=faster), "sweep")
        )
    return finding_of(
        CODE,
        CAUSE,
        "high",
        share_ratio=share,
        evidence=tuple(evidence),
        values={
            "busbw": busbw / 1e9,
            "tune": say("doctor.sockets_tuned", ratio=faster)
            if faster
            else say("doctor.sockets_untried"),
        },
        remedy=fewer_bytes_of(case),
    )


def _is_between_hosts(case: Case) -> bool:
    """Inside one host sockets are a detour, which LINK-014 tells."""
    log = case.nccl
    edges = ring_edges(log) if log is not None else ()
    return log is not None and any(e.kind == "Socket" and crosses_hosts(log, e) for e in edges)
