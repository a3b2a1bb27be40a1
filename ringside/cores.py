"""The CPU cores that this process may use."""

from __future__ import annotations

import os
from pathlib import Path

CPU_MAX = Path("/sys/fs/cgroup/cpu.max")


def num_cores() -> int:
    """Cores by the affinity of this process, no more than the quota of its container gives."""
    affinity = getattr(os, "sched_getaffinity", None)
    cores = len(affinity(0)) if affinity else (os.cpu_count() or 1)
    return min(cores, _quota_cores() or cores)


def _quota_cores() -> int | None:
    """The CPU quota of a container (cgroup v2 `cpu.max`: quota and period in microseconds)."""
    try:
        quota, period = CPU_MAX.read_text().split()
    except (OSError, ValueError):
        return None
    return max(1, int(quota) // int(period)) if quota != "max" else None
