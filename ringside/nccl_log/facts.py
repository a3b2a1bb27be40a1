"""What a NCCL log says, as plain data. Nothing here was measured by Ringside.

Ranks are those inside their communicator. Missing is None: NCCL prints only what NCCL_DEBUG and
NCCL_DEBUG_SUBSYS ask for, and each version prints something else.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Literal

import msgspec

Transport = Literal["P2P", "SHM", "NET"]
WarningKind = Literal[
    "version", "algorithm", "shm", "p2p", "ib", "timeout", "socket", "cuda", "other"
]


class Rank(msgspec.Struct, frozen=True, kw_only=True):
    """One rank of a communicator; `device` is CUDA's index in its process, `bus_id` hexadecimal."""

    rank: int
    host: str
    pid: int
    device: int
    bus_id: str | None = None
    init_s: float | None = None


class Communicator(msgspec.Struct, frozen=True, kw_only=True):
    """A group of ranks. `id` is None before NCCL 2.17, which does not print what ranks share.

    `num_nodes` is NCCL's count: ranks that reach each other by P2P or shared memory. With both
    forbidden, two GPUs of one host are two nodes. `ranks` are those whose lines are in the log.
    """

    id: str | None
    num_ranks: int
    num_nodes: int | None = None
    ranks: tuple[Rank, ...] = ()

    @property
    def num_hosts(self) -> int | None:
        """Machines; None when the log does not tell.

        Machines may share a name (`localhost`), but no two ranks of one machine share a GPU.
        """
        if self.num_nodes == 1:
            return 1
        if len(self.ranks) < self.num_ranks:
            return None
        return sum(num_machines(self.ranks, host) for host in {rank.host for rank in self.ranks})


def num_machines(ranks: Sequence[Rank], host: str) -> int:
    """How many machines of that name there are: as many as ranks that have the same GPU."""
    buses = Counter(rank.bus_id for rank in ranks if rank.host == host and rank.bus_id)
    return max(buses.values(), default=1)


class Edge(msgspec.Struct, frozen=True, kw_only=True):
    """One connection of one channel, from rank `src` to rank `dst`.

    `kind` is what NCCL prints behind the transport: `CUMEM/read`, `direct/direct`, or the network's
    name. `nic` is the network's index of the card, `gpu_direct` whether the card reads and writes
    GPU memory itself (GDRDMA). Both ends of a network edge print it; it is one edge here.
    """

    communicator: str | None = None
    channel: int
    connection: int | None = None
    src: int
    dst: int
    transport: Transport
    kind: str
    nic: int | None = None
    gpu_direct: bool = False

    @property
    def name(self) -> str:
        """`P2P/CUMEM`, `SHM/direct/direct`, `NET/Socket`, `NET/IB/GDRDMA`."""
        return f"{self.transport}/{self.kind}" + ("/GDRDMA" if self.gpu_direct else "")


class RingLink(msgspec.Struct, frozen=True, kw_only=True, order=True):
    """A step of a ring: on `channel`, `src` sends to `dst`."""

    communicator: str | None = None
    channel: int
    src: int
    dst: int


class TreeNode(msgspec.Struct, frozen=True, kw_only=True):
    """The place of `rank` in the tree of `channel`; -1 stands for nobody and is left out."""

    communicator: str | None = None
    channel: int
    rank: int
    parent: int | None
    children: tuple[int, ...]


class Pattern(msgspec.Struct, frozen=True, kw_only=True):
    """A graph that NCCL searched: channels, GB/s a channel, and the worst kind of path it takes.

    Paths from near to far: LOC, NVL, NVB, C2C, PIX, PXB, P2C, PXN, PHB, SYS, NET, DIS. The
    bandwidths come from NCCL's table of links. NCCL 2.5 prints no path kinds.
    """

    name: str
    num_channels: int
    bandwidth_inside_gb_per_s: float
    bandwidth_between_gb_per_s: float
    path_inside: str | None
    path_between: str | None


class LinkPath(msgspec.Struct, frozen=True, kw_only=True):
    """The best path between two parts of a host by NCCL's table: hops, GB/s, kind of path."""

    src: str
    dst: str
    hops: int
    bandwidth_gb_per_s: float
    kind: str


class Nic(msgspec.Struct, frozen=True, kw_only=True):
    """A network card that NCCL found on `host`; `network` is Socket, IB or a plugin's name."""

    network: str
    index: int
    name: str
    host: str


class Choice(msgspec.Struct, frozen=True, kw_only=True):
    """How NCCL ran a collective of one size, how many times rank 0 did, and NCCL's *guess*.

    `predicted_us` is the output of NCCL's model (printed by 2.20 to 2.23), never a measured time.
    """

    function: str
    size_bytes: int
    algorithm: str
    protocol: str
    num_channels: int | None
    calls: int
    predicted_us: float | None = None


class Prediction(msgspec.Struct, frozen=True, kw_only=True):
    """One entry of NCCL's own model: predicted latency and bandwidth, not measured."""

    function: str
    algorithm: str
    protocol: str
    latency_us: float
    bandwidth_gb_per_s: float


class Operation(msgspec.Struct, frozen=True, kw_only=True):
    """A collective by function, element count and type; `calls` are those of one rank."""

    function: str
    count: int
    dtype: str
    size_bytes: int | None
    calls: int


class LogWarning(msgspec.Struct, frozen=True, kw_only=True):
    """A complaint of NCCL, how often it stands in the log, and the source line that printed it."""

    kind: WarningKind
    message: str
    times: int
    where: str | None = None
    host: str | None = None


class NcclLog(msgspec.Struct, frozen=True, kw_only=True):
    """Everything read from one or more logs of one job.

    `num_lines` counts NCCL's lines, `num_torn` those that another writer broke and that are not
    used. `missing_infiniband` is what NCCL says when it finds no InfiniBand.
    """

    version: str | None = None
    cuda: str | None = None
    hosts: tuple[str, ...] = ()
    communicators: tuple[Communicator, ...] = ()
    edges: tuple[Edge, ...] = ()
    ring_links: tuple[RingLink, ...] = ()
    trees: tuple[TreeNode, ...] = ()
    num_channels: int | None = None
    num_nvls_channels: int | None = None
    num_p2p_channels: int | None = None
    num_p2p_channels_per_peer: int | None = None
    nvls_available: bool | None = None
    patterns: tuple[Pattern, ...] = ()
    paths: tuple[LinkPath, ...] = ()
    network: str | None = None
    nics: tuple[Nic, ...] = ()
    missing_infiniband: str | None = None
    environment: dict[str, str] = {}
    choices: tuple[Choice, ...] = ()
    predictions: tuple[Prediction, ...] = ()
    operations: tuple[Operation, ...] = ()
    warnings: tuple[LogWarning, ...] = ()
    num_lines: int = 0
    num_torn: int = 0
    notes: tuple[str, ...] = ()

    @property
    def num_ranks(self) -> int | None:
        """Ranks of the largest communicator."""
        return max((group.num_ranks for group in self.communicators), default=None)

    @property
    def num_hosts(self) -> int | None:
        """Machines of the largest communicator; None when the log does not tell."""
        largest = max(self.communicators, key=lambda group: group.num_ranks, default=None)
        return None if largest is None else largest.num_hosts

    @property
    def init_s(self) -> float | None:
        """Seconds of the slowest initialisation of a communicator (printed since 2.22)."""
        times = [rank.init_s for group in self.communicators for rank in group.ranks]
        return max((time for time in times if time is not None), default=None)
