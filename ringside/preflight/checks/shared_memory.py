"""Whether /dev/shm holds what loader workers put there; Docker gives a container 64 MiB.

A rank keeps about 32 finished batches of bytes [n, side, side, 3] (`training.input.loading`), and
NCCL lays about 10 MB per connection there (NVIDIA/nccl#290).
"""

from __future__ import annotations

from ringside.machine.host import shared_memory
from ringside.preflight.case import Case
from ringside.preflight.items import Remark, remark
from ringside.spec import RunSpec

CODE, ORDER = "shared-memory", 50

BATCHES = 32
NCCL_BYTES = 10_000_000
MIB = 2**20


def check(case: Case) -> Remark | None:
    need = None if case.spec is None else bytes_of(case.spec)
    if not need:
        return None  # on a CPU no worker runs unless asked for
    _, free = shared_memory()
    if free is None:
        return None
    values = {"free": free / MIB, "need": need / MIB}
    return (
        remark("warning", "shm_small", **values)
        if free < need
        else remark("fine", "shm_fine", **values)
    )


def bytes_of(spec: RunSpec) -> int:
    """What the workers of all ranks and NCCL put there at most."""
    workers = spec.training.num_workers
    has_workers = bool(workers) if spec.device == "cpu" else workers != 0
    batch = spec.loader_batch * spec.data.image_size**2 * 3
    pictures = spec.num_readers * BATCHES * batch if has_workers else 0
    return pictures + (spec.num_devices * NCCL_BYTES if spec.device == "cuda" else 0)
