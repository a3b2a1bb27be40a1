"""What is kept of one trace file: columns of GPU work and host calls, marks and collectives.

All moments are int64 nanoseconds of the file's own clock. Two files of one host share the clock,
but nothing here relies on it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ringside.trace.intervals import Times

COMPUTE, COMMUNICATION, MEMORY = 0, 1, 2  # codes of `GpuWork.kind`
NO_LAUNCH = -1


class CollectiveCall(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of one collective; `index` is its row in `GpuWork`.

    `num_bytes`: of this rank's input. `sequence`: counts the collectives of a group; only newer
    traces have it.
    """

    index: int
    operation: str | None = None
    num_bytes: int | None = None
    dtype: str | None = None
    group: str | None = None
    group_size: int | None = None
    sequence: int | None = None


class Mark(msgspec.Struct, frozen=True):
    """A named stretch of a host thread: a profiler step, `data`, `forward`."""

    name: str
    start: int
    end: int


@dataclass(frozen=True, eq=False)
class GpuWork:
    """Kernels, copies and sets, in the order of their starts.

    `launch`: when the host asked for it, `NO_LAUNCH` where the trace has no record of that.
    """

    start: Times
    end: Times
    kind: NDArray[np.int8]
    launch: Times

    def __len__(self) -> int:
        return len(self.start)


@dataclass(frozen=True, eq=False)
class HostCalls:
    """Calls of the same kind on host threads, in the order of their starts."""

    start: Times
    end: Times


@dataclass(frozen=True, eq=False)
class Trace:
    """One rank's trace.

    `data_waits`: the host waits for images. `synchronisations`: it waits for the GPU, on threads
    that train; `logging_syncs`: DDP does so for its log; `items`: single values of tensors are
    read, and waited for. `blocked`: calls of the driver that last a millisecond or more, on threads
    that train. `unused_searches`: DDP looks for parameters without a gradient. `num_operators`
    counts the operators that checks ask for, by name. `persistent`: when each kernel was launched
    that needs the whole GPU, see `kernels.PERSISTENT`; not sorted.
    `has_fractions`: the clock is finer than a microsecond. `is_cpu_estimate`: there was no GPU
    work; `work` then holds gloo's collectives as communication and operators as compute.
    """

    file: str
    rank: int
    world_size: int | None
    num_events: int
    num_devices: int
    has_fractions: bool
    is_cpu_estimate: bool
    work: GpuWork
    collectives: tuple[CollectiveCall, ...]
    steps: tuple[Mark, ...]
    data_waits: HostCalls
    synchronisations: HostCalls
    logging_syncs: HostCalls
    items: HostCalls
    blocked: HostCalls
    unused_searches: HostCalls
    num_operators: dict[str, int]
    persistent: Times
