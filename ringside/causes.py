"""The closed list of what a run can fail of; `ringside.remedies` says what to try for each."""

from __future__ import annotations

from typing import Literal, get_args

FailureKind = Literal[
    "out_of_memory", "out_of_memory_host", "nccl_timeout", "connection", "port", "data", "nan",
    "import", "killed", "disk_full", "config", "hang", "unknown",
]  # fmt: skip
FAILURE_KINDS: tuple[FailureKind, ...] = get_args(FailureKind)

_KINDS: dict[str, FailureKind] = {
    "gpu_memory": "out_of_memory",
    "memory": "out_of_memory_host",
    "shared_memory": "out_of_memory_host",
    "loader_worker": "killed",
    "timeout": "hang",
    "lost_connection": "connection",
    "gone": "connection",
    "port": "port",
    "data": "data",
    "not_finite": "nan",
    "import": "import",
    "killed": "killed",
    "disk_full": "disk_full",
    "setup": "config",
    "request": "config",
}


def kind_of(cause: str, *, nccl_gave_up: bool = False, memory_ran_out: bool = False) -> FailureKind:
    """The kind of a cause in one word.

    A timeout is NCCL's where NCCL itself gave up waiting (`nccl_gave_up`); a loader worker that was
    killed is a matter of memory where the kernel ended a process for lack of it.
    """
    if cause == "timeout" and nccl_gave_up:
        return "nccl_timeout"
    if cause == "loader_worker" and memory_ran_out:
        return "out_of_memory_host"
    return _KINDS.get(cause, "unknown")
