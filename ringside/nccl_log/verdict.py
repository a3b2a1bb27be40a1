"""The verdict on a log in plain words: how the GPUs talk, whether that is a handicap, and why."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ringside.nccl_log.causes import (
    Cause,
    listed,
    names_of,
    why_not_direct,
    why_not_shared_memory,
    why_sockets,
)
from ringside.nccl_log.derive import (
    asymmetric_pairs,
    cards,
    crosses_hosts,
    has_nvlink,
    ring_edges,
    slowness,
    transports,
)
from ringside.nccl_log.facts import Edge, NcclLog

ALONE = "There is one rank only, and nobody to talk to."
NO_CHANNELS = (
    "The log does not say how the GPUs talk: it has no line of a channel. "
    "Set NCCL_DEBUG=INFO, with INIT in NCCL_DEBUG_SUBSYS if that is set, and run one collective."
)
HARMLESS_SOCKET = (
    "Harmless: NCCL says `Using network Socket`, but the network is for other hosts only, "
    "and no connection here uses it."
)
UNUSED_NVLINK = "The GPUs have NVLink, which is not used."
UNKNOWN_REASON = (
    "The log does not say why; GeForce cards, virtual machines, GPUs under different CPUs and "
    "ranks in separate containers are the usual reasons."
)
# Through the CPU, P2P may be slower than host memory (NVIDIA/nccl issues 428 and 1817).
_OVER = {
    "NVL": " over NVLink",
    "NVB": " over NVLink, through a GPU between them,",
    "C2C": " over NVLink-C2C",
    "PIX": " over PCIe",
    "PXB": " over PCIe",
    "PHB": " over PCIe, through the CPU,",
    "SYS": " over PCIe, from one CPU to another,",
}
_THROUGH_CPU = ("PHB", "SYS")


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """One sentence, what to do next, and what else is worth knowing.

    `is_handicap`: a faster way exists or existed; None when the log does not tell.
    """

    sentence: str
    is_handicap: bool | None = None
    next_step: str | None = None
    notes: tuple[str, ...] = ()


class _Way(msgspec.Struct, frozen=True, kw_only=True):
    """How one group of edges goes: a phrase, why, and whether that is a handicap."""

    phrase: str
    cause: Cause = Cause()
    is_handicap: bool | None = False
    notes: tuple[str, ...] = ()


def judge(log: NcclLog) -> Verdict:
    """The verdict on one job's log."""
    edges = ring_edges(log)
    if not edges:
        return Verdict(sentence=_without_edges(log), notes=log.notes)
    places = {id(edge): crosses_hosts(log, edge) for edge in edges}
    inside = [edge for edge in edges if places[id(edge)] is False]
    between = [edge for edge in edges if places[id(edge)]]
    unknown = [edge for edge in edges if places[id(edge)] is None]
    ways = [_inside(log, inside)] if inside else []
    ways += [_between(log, between)] if between else []
    ways += [_unknown(log, unknown)] if unknown else []
    return Verdict(
        sentence=_sentence(ways, bool(inside), bool(between)),
        is_handicap=_worst(ways),
        next_step=_next_step(ways),
        notes=(*(note for way in ways for note in way.notes), *_notes(log, edges), *log.notes),
    )


def _without_edges(log: NcclLog) -> str:
    if log.num_ranks == 1:
        return ALONE
    if log.warnings:
        first = log.warnings[0].message.rstrip(".")
        return f"NCCL made no connection; its first complaint: {first}."
    return NO_CHANNELS


def _sentence(ways: Sequence[_Way], has_inside: bool, has_between: bool) -> str:
    """The ways stand in the order inside, between, unknown."""
    said = [way.phrase + way.cause.clause for way in ways]
    if has_inside and has_between:
        first, second, *rest = said
        return f"Inside a host the GPUs talk {'; the hosts talk '.join((first, second))}." + (
            f" Others talk {rest[0]}." if rest else ""
        )
    who = "The hosts talk" if has_between else "The GPUs talk"
    return f"{who} {'; others talk '.join(said)}."


def _inside(log: NcclLog, edges: Sequence[Edge]) -> _Way:
    worst = max(edges, key=slowness)
    if worst.transport == "P2P":
        return _direct(log, edges)
    unused = (UNUSED_NVLINK,) if has_nvlink(log) else ()
    cause = why_not_direct(log)
    some = _share(edges, worst)
    if worst.transport == "SHM":
        phrase = f"through host memory{some}"
    else:
        cause += why_not_shared_memory(log)
        phrase = f"{_over_network(log, edges, worst)}{some}{_although(log)}"
    notes = unused if cause.clause else (*unused, UNKNOWN_REASON)
    return _Way(phrase=phrase, cause=cause, is_handicap=True, notes=notes)


def _direct(log: NcclLog, edges: Sequence[Edge]) -> _Way:
    rings = [pattern for pattern in log.patterns if pattern.name == "ring"]
    path = rings[0].path_inside if rings else None
    kinds = listed(sorted({edge.name for edge in edges}))
    num = len({edge.channel for edge in edges})
    phrase = f"directly{_OVER.get(path or '', '')} ({kinds}, {num} channel{'s' * (num != 1)})"
    if path not in _THROUGH_CPU:
        return _Way(phrase=phrase)
    note = f"P2P takes the path {path}: host memory may be faster; try once NCCL_P2P_DISABLE=1."
    return _Way(phrase=phrase, is_handicap=None, notes=(note,))


def _between(log: NcclLog, edges: Sequence[Edge]) -> _Way:
    worst = max(edges, key=slowness)
    phrase = _over_network(log, edges, worst)
    if worst.kind == "Socket":
        return _Way(phrase=phrase, cause=why_sockets(log), is_handicap=True)
    if worst.gpu_direct:
        return _Way(phrase=f"{phrase} with GPUDirect RDMA")
    without = f"{phrase} without GPUDirect RDMA, every byte through host memory"
    return _Way(phrase=without, is_handicap=True)


def _unknown(log: NcclLog, edges: Sequence[Edge]) -> _Way:
    phrase = _over_network(log, edges, max(edges, key=slowness))
    notes = ["The log does not say which ranks share a host; give the logs of all ranks."]
    if forbidden := (why_not_direct(log) + why_not_shared_memory(log)).variables:
        notes.append(f"Inside a host {listed(forbidden)} would forbid a faster way.")
    return _Way(phrase=phrase, is_handicap=None, notes=tuple(notes))


def _over_network(log: NcclLog, edges: Sequence[Edge], worst: Edge) -> str:
    names = cards(log, [edge for edge in edges if edge.kind == worst.kind])
    if worst.kind == "Socket":
        return "over TCP sockets" + (f" on {listed(names)}" if names else "")
    return f"over {worst.kind}" + (f" ({listed(names)})" if names else "")


def _although(log: NcclLog) -> str:
    if log.num_hosts != 1:
        return ""
    gpus = "both GPUs" if log.num_ranks == 2 else "all GPUs"
    return f" although {gpus} are in one host"


def _share(edges: Sequence[Edge], worst: Edge) -> str:
    """How many connections go the worst way, when not all do."""
    num = sum(slowness(edge) == slowness(worst) for edge in edges)
    return "" if num == len(edges) else f" on {num} of {len(edges)} connections"


def _worst(ways: Sequence[_Way]) -> bool | None:
    if any(way.is_handicap for way in ways):
        return True
    return None if any(way.is_handicap is None for way in ways) else False


def _next_step(ways: Sequence[_Way]) -> str | None:
    names = [name for way in ways for name in names_of(way.cause.variables)]
    return f"Unset {listed(dict.fromkeys(names))} and run again." if names else None


def _notes(log: NcclLog, edges: Sequence[Edge]) -> list[str]:
    notes = []
    uses_network = any(edge.transport == "NET" for edge in edges)
    if log.network == "Socket" and not uses_network:
        notes.append(HARMLESS_SOCKET)
    if len(transports(edges)) > 1:
        counted = listed(f"{num} {name}" for name, num in transports(edges).items())
        notes.append(f"The connections of the rings are mixed: {counted}.")
    if pairs := asymmetric_pairs(log):
        named = listed(f"{src} and {dst}" for src, dst in pairs[:3])
        notes.append(f"The two directions differ between ranks {named}.")
    here = max((len(group.ranks) for group in log.communicators), default=0)
    num_ranks = log.num_ranks or 0
    if 0 < here < num_ranks:
        notes.append(f"The log is of {here} of {num_ranks} ranks; connections of others may lack.")
    return notes
