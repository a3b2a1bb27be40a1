"""How often the kernel has ended a process because memory ran out: evidence for a bare SIGKILL."""

from __future__ import annotations

from pathlib import Path

# The kernel's own counters: of the machine, and of this container where it has a limit.
COUNTERS = (Path("/proc/vmstat"), Path("/sys/fs/cgroup/memory.events"))


def num_memory_kills() -> int | None:
    """The larger of the counters, which only grow; None where the system does not tell."""
    counts = [count for path in COUNTERS if (count := _read(path)) is not None]
    return max(counts, default=None)


def _read(path: Path) -> int | None:
    try:
        lines = path.read_text().splitlines()
    except OSError:
        return None
    found = (line.split()[1] for line in lines if line.startswith("oom_kill "))
    return next((int(value) for value in found), None)
