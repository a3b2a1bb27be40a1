"""What a set of traces says, as plain numbers: what the report prints and the checks judge."""

from __future__ import annotations

import msgspec

from ringside.trace.totals import Totals


class Breakdown(msgspec.Struct, frozen=True, kw_only=True):
    """Where the time of a window goes, in microseconds; the parts add up to `wall_us`.

    Compute goes before communication, that before copies. Communication is what compute does not
    hide, split into transfer and waiting for other ranks. Idle is split by its reason.
    """

    wall_us: float
    compute_us: float
    exposed_transfer_us: float
    exposed_wait_us: float
    memory_us: float
    data_idle_us: float
    host_wait_us: float
    kernel_wait_us: float
    other_idle_us: float

    def ratio(self, part: str) -> float:
        """A part as a share of the window: `ratio("host_wait")`."""
        return float(getattr(self, f"{part}_us")) / self.wall_us if self.wall_us else 0.0


class HostFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What the host did in the counted steps; counts are per step, times are sums over them.

    Synchronisations are those of threads that train, without `num_logging_syncs`: DDP's own, in
    its first steps and every hundredth. Items are values that were waited for. `blocked_us`: in
    driver calls of a millisecond or more, which wait.
    `search_us`: DDP's search for unused parameters.
    """

    data_wait_us: float
    num_synchronisations: float
    synchronised_us: float
    num_logging_syncs: float
    logging_us: float
    num_items: float
    item_us: float
    blocked_us: float
    num_searches: float
    search_us: float
    num_sync_batchnorms: float


class Bucket(msgspec.Struct, frozen=True, kw_only=True):
    """The collectives of one kind and size in the counted steps of one rank.

    `num_bytes` of this rank's input, None where the trace does not say. `transfer_us` is the
    median; `busbw_bytes_per_s` = factor · bytes / transfer, see `bus_bandwidth`.
    """

    operation: str | None
    num_bytes: int | None
    dtype: str | None
    group_size: int | None
    num_per_step: float
    duration_us: float
    transfer_us: float
    busbw_bytes_per_s: float | None


class StepFacts(msgspec.Struct, frozen=True, kw_only=True):
    """One profiler step of one rank: host time, and the GPU work that it launched."""

    name: str
    step_us: float
    comm_us: float
    exposed_us: float
    compute_us: float


class RankFacts(msgspec.Struct, frozen=True, kw_only=True):
    """Everything about one rank. `num_steps`: marked ones; shares leave out the last of several.

    `num_data_parallel` counts the forwards of nn.DataParallel per step.
    `transfer_us` and `wait_us` are the two parts of communication; `hidden_transfer_us` is what of
    the transfer runs beside compute. `num_persistent`: kernels a step that need the whole GPU.
    `reduce_stretch_us`: first to last all-reduce of each step, less the compute between them.
    `num_all_reduces` and `all_reduce_bytes` (None: unknown) are per step and mean.
    """

    rank: int
    file: str
    world_size: int | None
    num_events: int
    num_steps: int
    num_devices: int
    num_data_parallel: float
    is_cpu_estimate: bool
    num_collectives: int
    num_matched: int
    totals: Totals
    transfer_us: float
    wait_us: float
    hidden_transfer_us: float
    num_persistent: float
    breakdown: Breakdown
    host: HostFacts
    steps: tuple[StepFacts, ...]
    buckets: tuple[Bucket, ...]
    num_all_reduces: float
    all_reduce_bytes: float | None
    all_reduce_us: float | None
    reduce_stretch_us: float

    @property
    def is_wait_estimate(self) -> bool:
        """Whether waiting is estimated from repetitions, as no other rank's trace matched."""
        return self.num_collectives > 0 and not self.num_matched

    @property
    def hidden_ratio(self) -> float:
        """The part of the transfer that runs beside compute; 0 without a transfer."""
        return self.hidden_transfer_us / self.transfer_us if self.transfer_us else 0.0

    @property
    def num_counted_steps(self) -> int:
        """Windows that the shares are taken over; a trace without marks is one."""
        return max(self.num_steps - 1, 1)


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """All ranks, in the order of their numbers. At least one."""

    ranks: tuple[RankFacts, ...]

    @property
    def pace(self) -> RankFacts:
        """The rank that sets the pace: the others wait for it, it waits least.

        What fills its step is the cause; the waiting of the others is a consequence.
        """
        return min(self.ranks, key=lambda rank: rank.breakdown.ratio("exposed_wait"))

    @property
    def is_matched(self) -> bool:
        """Whether waiting is known from several ranks, not estimated from one."""
        return all(rank.num_matched for rank in self.ranks) and len(self.ranks) > 1
