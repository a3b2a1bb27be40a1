"""Gathers the facts of many lines, in any order of processes, into one `NcclLog`."""

from __future__ import annotations

from collections import Counter, defaultdict

import msgspec

from ringside.nccl_log.facts import (
    Choice,
    Communicator,
    Edge,
    LinkPath,
    LogWarning,
    NcclLog,
    Nic,
    Operation,
    Pattern,
    Prediction,
    Rank,
    RingLink,
    TreeNode,
    WarningKind,
)
from ringside.nccl_log.lines import Line

Process = tuple[str, int, int | None]
EdgeKey = tuple[str | None, int, int | None, int, int, str]


class Collector:
    """What is known so far; the rules write into it.

    A channel's line does not say which communicator it belongs to: it is that which its process
    has begun last.
    """

    def __init__(self) -> None:
        self.version: tuple[str, str | None] | None = None
        self.hosts: dict[str, None] = {}
        self.num_ranks: dict[str | None, int] = {}
        self.num_nodes: dict[str | None, int] = {}
        self.ranks: dict[tuple[str | None, int], Rank] = {}
        self.edges: dict[EdgeKey, Edge] = {}
        self.ring_links: dict[RingLink, None] = {}
        self.trees: dict[tuple[str | None, int, int], TreeNode] = {}
        self.num_channels: dict[str, int] = {}
        self.nvls_available: bool | None = None
        self.patterns: dict[Pattern, None] = {}
        self.paths: dict[tuple[str, str, str], LinkPath] = {}
        self.network: str | None = None
        self.nics: dict[Nic, None] = {}
        self.missing_infiniband: str | None = None
        self.environment: dict[str, str] = {}
        self.choices: Counter[Choice] = Counter()
        self.predictions: dict[tuple[str, str, str], Prediction] = {}
        self.columns: dict[Process, tuple[list[tuple[str, str]], set[str]]] = {}
        self.operations: defaultdict[Operation, Counter[Process]] = defaultdict(Counter)
        self.warnings: Counter[tuple[WarningKind, str]] = Counter()
        self.first_warned: dict[tuple[WarningKind, str], Line] = {}
        self.num_lines = 0
        self.num_torn = 0
        self._current: dict[Process, str | None] = {}

    def host(self, line: Line) -> str:
        """The line's host, without the rest of a torn line that may stick to its name."""
        if line.clean or line.host in self.hosts:
            return line.host
        known = [host for host in self.hosts if line.host.endswith(host)]
        return max(known, key=len, default=line.host)

    def process(self, line: Line) -> Process:
        """Who wrote the line."""
        return self.host(line), line.pid, line.device

    def begin(self, line: Line, communicator: str | None) -> None:
        """The process of this line goes on with `communicator`."""
        self._current[self.process(line)] = communicator

    def communicator(self, line: Line) -> str | None:
        """The communicator that the process of this line is in."""
        return self._current.get(self.process(line))

    def add_edge(self, edge: Edge) -> None:
        """Keep an edge; the second end of a network edge completes the first."""
        _merge(self.edges, edge)

    def warn(self, kind: WarningKind, line: Line, message: str) -> None:
        """Keep a complaint once, and count it."""
        self.warnings[kind, message] += 1
        self.first_warned.setdefault((kind, message), line)

    def finish(self, notes: tuple[str, ...] = ()) -> NcclLog:
        """Everything as it stands now."""
        self._name_the_only_communicator()
        version, cuda = self.version or (None, None)
        channels = self.num_channels
        return NcclLog(
            version=version,
            cuda=cuda,
            hosts=tuple(sorted(self.hosts)),
            communicators=self._communicators(),
            edges=tuple(sorted(self.edges.values(), key=_order)),
            ring_links=tuple(self.ring_links),
            trees=tuple(self.trees.values()),
            num_channels=channels.get("coll", channels.get("listed")),
            num_nvls_channels=channels.get("nvls"),
            num_p2p_channels=channels.get("p2p"),
            num_p2p_channels_per_peer=channels.get("p2p per peer"),
            nvls_available=self.nvls_available,
            patterns=tuple(self.patterns),
            paths=tuple(self.paths.values()),
            network=self.network,
            nics=tuple(self.nics),
            missing_infiniband=self.missing_infiniband,
            environment=dict(sorted(self.environment.items())),
            choices=self._choices(),
            predictions=tuple(self.predictions.values()),
            operations=self._operations(),
            warnings=self._warnings(),
            num_lines=self.num_lines,
            num_torn=self.num_torn,
            notes=notes,
        )

    def _name_the_only_communicator(self) -> None:
        """NCCL 2.17 connects before it prints the communicator's name."""
        if len(self.num_ranks) != 1 or None in self.num_ranks:
            return
        (name,) = self.num_ranks
        replace = msgspec.structs.replace
        edges: dict[EdgeKey, Edge] = {}
        for edge in self.edges.values():
            _merge(edges, replace(edge, communicator=name))
        self.edges = edges
        self.ring_links = {replace(link, communicator=name): None for link in self.ring_links}
        nodes = [replace(node, communicator=name) for node in self.trees.values()]
        self.trees = {(name, node.channel, node.rank): node for node in nodes}

    def _communicators(self) -> tuple[Communicator, ...]:
        members: defaultdict[str | None, list[Rank]] = defaultdict(list)
        for (name, _), rank in sorted(self.ranks.items(), key=lambda item: item[1].rank):
            members[name].append(rank)
        return tuple(
            Communicator(
                id=name,
                num_ranks=num_ranks,
                num_nodes=self.num_nodes.get(name),
                ranks=tuple(members[name]),
            )
            for name, num_ranks in self.num_ranks.items()
        )

    def _choices(self) -> tuple[Choice, ...]:
        found = [
            msgspec.structs.replace(choice, calls=calls) for choice, calls in self.choices.items()
        ]
        return tuple(sorted(found, key=lambda one: (one.function, one.size_bytes, -one.calls)))

    def _operations(self) -> tuple[Operation, ...]:
        """Every rank prints its own calls: those of the busiest rank are the job's."""
        found = [
            msgspec.structs.replace(operation, calls=max(calls.values()))
            for operation, calls in self.operations.items()
        ]
        return tuple(sorted(found, key=lambda one: (one.function, one.count, one.dtype)))

    def _warnings(self) -> tuple[LogWarning, ...]:
        return tuple(
            LogWarning(
                kind=kind,
                message=message,
                times=times,
                where=self.first_warned[kind, message].where,
                host=self.first_warned[kind, message].host or None,
            )
            for (kind, message), times in self.warnings.items()
        )


def _merge(edges: dict[EdgeKey, Edge], edge: Edge) -> None:
    """The card works on GPU memory only when it does so at both ends."""
    way = f"{edge.transport}/{edge.kind}"
    key = edge.communicator, edge.channel, edge.connection, edge.src, edge.dst, way
    other = edges.get(key)
    if other is not None:
        both = other.gpu_direct and edge.gpu_direct
        edge = msgspec.structs.replace(other, gpu_direct=both)
    edges[key] = edge


def _order(edge: Edge) -> tuple[str, int, int, int, int]:
    connection = -1 if edge.connection is None else edge.connection
    return edge.communicator or "", edge.channel, connection, edge.src, edge.dst
