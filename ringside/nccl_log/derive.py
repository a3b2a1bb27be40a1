"""What follows from the facts: the ways of the rings, their worst edge, one-way differences."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable

from ringside.nccl_log.facts import Edge, NcclLog, num_machines


def transports(edges: Iterable[Edge]) -> dict[str, int]:
    """Edges of each kind, the most frequent first, such as {"P2P/CUMEM": 48}."""
    counted = Counter(edge.name for edge in edges)
    return dict(sorted(counted.items(), key=lambda item: (-item[1], item[0])))


def ring_edges(log: NcclLog) -> list[Edge]:
    """The edges that the rings use; all edges when the log names no ring."""
    links = {(link.communicator, link.channel, link.src, link.dst) for link in log.ring_links}
    found = [
        edge
        for edge in log.edges
        if (edge.communicator, edge.channel, edge.src, edge.dst) in links
        and edge.connection in (None, 0)
    ]
    return found or list(log.edges)


def rings(log: NcclLog) -> dict[int, list[int]]:
    """The order of the ranks in each ring of the largest communicator, where all of it is known."""
    largest = max(log.communicators, key=lambda group: group.num_ranks, default=None)
    following: defaultdict[int, dict[int, int]] = defaultdict(dict)
    for link in log.ring_links:
        if largest is None or link.communicator == largest.id:
            following[link.channel][link.src] = link.dst
    found = {}
    for channel, after in sorted(following.items()):
        order, here = [], min(after)
        while here in after and here not in order:
            order.append(here)
            here = after[here]
        is_closed = here == order[0] and len(order) == len(after)
        if is_closed and largest is not None and len(order) == largest.num_ranks:
            found[channel] = order
    return found


def slowness(edge: Edge) -> int:
    """Order of the transports by what they usually reach: P2P, SHM, GDRDMA, a card, sockets."""
    if edge.transport == "NET":
        if edge.kind == "Socket":
            return 4
        return 2 if edge.gpu_direct else 3
    return 1 if edge.transport == "SHM" else 0


def worst_ring_edge(log: NcclLog) -> Edge | None:
    """The edge that a ring waits for: every byte of a ring passes each of its edges."""
    return max(ring_edges(log), key=slowness, default=None)


def asymmetric_pairs(log: NcclLog) -> list[tuple[int, int]]:
    """Pairs of ranks that talk one way by another transport than the other way.

    Pairs of which only one direction is in the log (one rank's file of two) are left out.
    """
    ways: defaultdict[tuple[str | None, int, int], set[str]] = defaultdict(set)
    for edge in log.edges:
        ways[edge.communicator, edge.src, edge.dst].add(edge.transport)
    return sorted(
        {
            (src, dst)
            for (group, src, dst), there in ways.items()
            if src < dst and (back := ways.get((group, dst, src))) and back != there
        }
    )


def crosses_hosts(log: NcclLog, edge: Edge) -> bool | None:
    """Whether an edge leaves its host; None when the log does not say where its ends are."""
    if edge.transport != "NET":
        return False
    group = next((one for one in log.communicators if one.id == edge.communicator), None)
    if group is None:
        return None
    if group.num_hosts == 1:
        return False
    ranks = {rank.rank: rank for rank in group.ranks}
    src, dst = ranks.get(edge.src), ranks.get(edge.dst)
    if src is None or dst is None:
        return None
    if src.host != dst.host:
        return True
    return None if num_machines(group.ranks, src.host) > 1 else False


def cards(log: NcclLog, edges: Iterable[Edge]) -> list[str]:
    """The names of the network cards that edges use."""
    used = {(edge.kind, edge.nic) for edge in edges if edge.nic is not None}
    return sorted({nic.name for nic in log.nics if (nic.network, nic.index) in used})


def has_nvlink(log: NcclLog) -> bool:
    """Whether a GPU has an NVLink, even one that is not used."""
    return any(path.kind == "NVL" and path.src.startswith("GPU") for path in log.paths) or any(
        pattern.path_inside == "NVL" for pattern in log.patterns
    )
