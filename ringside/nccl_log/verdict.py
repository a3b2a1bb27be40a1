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
from ringside.words import say, say_count

# Through the CPU, P2P may be slower than host memory (NVIDIA/nccl issues 428 and 1817).
_PATHS = ("NVL", "NVB", "C2C", "PIX", "PXB", "PHB", "SYS")
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
        return say("nccl.alone")
    if log.warnings:
        first = log.warnings[0].message.rstrip(".")
        return say("nccl.complaint", first=first)
    return say("nccl.no_channels")


def _sentence(ways: Sequence[_Way], has_inside: bool, has_between: bool) -> str:
    """The ways stand in the order inside, between, unknown."""
    said = [way.phrase + way.cause.clause for way in ways]
    if has_inside and has_between:
        first, second, *rest = said
        both = say("nccl.both", first=first, second=second)
        return say("nccl.besides", sentence=both, way=rest[0]) if rest else both
    who, (way, *others) = "hosts" if has_between else "gpus", said
    if others:
        return say(f"nccl.{who}_and_others", way=way, other=others[0])
    return say(f"nccl.{who}", way=way)


def _inside(log: NcclLog, edges: Sequence[Edge]) -> _Way:
    worst = max(edges, key=slowness)
    if worst.transport == "P2P":
        return _direct(log, edges)
    unused = (say("nccl.unused_nvlink"),) if has_nvlink(log) else ()
    cause = why_not_direct(log)
    some = _share(edges, worst)
    if worst.transport == "SHM":
        phrase = say("nccl.host_memory", some=some)
    else:
        cause += why_not_shared_memory(log)
        phrase = f"{_over_network(log, edges, worst)}{some}{_although(log)}"
    notes = unused if cause.clause else (*unused, say("nccl.unknown_reason"))
    return _Way(phrase=phrase, cause=cause, is_handicap=True, notes=notes)


def _direct(log: NcclLog, edges: Sequence[Edge]) -> _Way:
    rings = [pattern for pattern in log.patterns if pattern.name == "ring"]
    path = rings[0].path_inside if rings else None
    kinds = listed(sorted({edge.name for edge in edges}))
    num = len({edge.channel for edge in edges})
    over = say(f"nccl.over_{path.lower()}") if path in _PATHS else ""
    channels = say_count("channel", num)
    phrase = say("nccl.directly", over=over, kinds=kinds, channels=channels)
    if path not in _THROUGH_CPU:
        return _Way(phrase=phrase)
    note = say("nccl.through_cpu", path=path)
    return _Way(phrase=phrase, is_handicap=None, notes=(note,))


def _between(log: NcclLog, edges: Sequence[Edge]) -> _Way:
    worst = max(edges, key=slowness)
    phrase = _over_network(log, edges, worst)
    if worst.kind == "Socket":
        return _Way(phrase=phrase, cause=why_sockets(log), is_handicap=True)
    if worst.gpu_direct:
        return _Way(phrase=say("nccl.with_rdma", way=phrase))
    return _Way(phrase=say("nccl.without_rdma", way=phrase), is_handicap=True)


def _unknown(log: NcclLog, edges: Sequence[Edge]) -> _Way:
    phrase = _over_network(log, edges, max(edges, key=slowness))
    notes = [say("nccl.hosts_unknown")]
    if forbidden := (why_not_direct(log) + why_not_shared_memory(log)).variables:
        notes.append(say("nccl.forbidden", names=listed(forbidden)))
    return _Way(phrase=phrase, is_handicap=None, notes=tuple(notes))


def _over_network(log: NcclLog, edges: Sequence[Edge], worst: Edge) -> str:
    names = cards(log, [edge for edge in edges if edge.kind == worst.kind])
    if worst.kind == "Socket":
        return say("nccl.sockets_on", names=listed(names)) if names else say("nccl.sockets")
    if not names:
        return say("nccl.network", kind=worst.kind)
    return say("nccl.network_on", kind=worst.kind, names=listed(names))


def _although(log: NcclLog) -> str:
    if log.num_hosts != 1:
        return ""
    return say("nccl.although_two" if log.num_ranks == 2 else "nccl.although_all")


def _share(edges: Sequence[Edge], worst: Edge) -> str:
    """How many connections go the worst way, when not all do."""
    num = sum(slowness(edge) == slowness(worst) for edge in edges)
    return "" if num == len(edges) else say("nccl.some", num=num, total=len(edges))


def _worst(ways: Sequence[_Way]) -> bool | None:
    if any(way.is_handicap for way in ways):
        return True
    return None if any(way.is_handicap is None for way in ways) else False


def _next_step(ways: Sequence[_Way]) -> str | None:
    names = [name for way in ways for name in names_of(way.cause.variables)]
    return say("nccl.unset", names=listed(dict.fromkeys(names))) if names else None


def _notes(log: NcclLog, edges: Sequence[Edge]) -> list[str]:
    notes = []
    uses_network = any(edge.transport == "NET" for edge in edges)
    if log.network == "Socket" and not uses_network:
        notes.append(say("nccl.harmless"))
    if len(transports(edges)) > 1:
        counted = listed(f"{num} {name}" for name, num in transports(edges).items())
        notes.append(say("nccl.mixed", kinds=counted))
    if pairs := asymmetric_pairs(log):
        named = listed(listed(map(str, pair)) for pair in pairs[:3])
        notes.append(say("nccl.directions", pairs=named))
    here = max((len(group.ranks) for group in log.communicators), default=0)
    num_ranks = log.num_ranks or 0
    if 0 < here < num_ranks:
        notes.append(say("nccl.partial", here=here, num_ranks=num_ranks))
    return notes
