"""What only torch can tell of a machine; `training.describe_torch` writes it."""

from __future__ import annotations

import msgspec


class TorchReport(msgspec.Struct, frozen=True, kw_only=True):
    """`num_devices`: GPUs that torch can use. `peers`: pairs of ordinals that may read each
    other's memory, one way. `copy_bytes_per_s`: from pinned host memory to each GPU, by ordinal,
    None where the copy failed; empty where none was asked for. `problems`: sentences."""

    version: str
    arch_list: tuple[str, ...] = ()
    cuda: str | None = None
    nccl: str | None = None
    num_devices: int = 0
    peers: tuple[tuple[int, int], ...] = ()
    copy_bytes_per_s: tuple[float | None, ...] = ()
    problems: tuple[str, ...] = ()
