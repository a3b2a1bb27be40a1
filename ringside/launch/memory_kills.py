"""How often the kernel has ended a process because memory ran out: evidence for a bare SIGKILL.

The count of this process's own control group goes first: `oom_kill` in its `memory.events` counts
the processes of the group that any of the kernel's out-of-memory killers ended (Linux,
Documentation/admin-guide/cgroup-v2.rst). The machine's count, which other programs and other
containers raise too, is for systems without such a group.
"""

from __future__ import annotations

from pathlib import Path

OWN_GROUP = Path("/proc/self/cgroup")
GROUPS = Path("/sys/fs/cgroup")
MACHINE = Path("/proc/vmstat")


def num_memory_kills() -> int | None:
    """A count that only grows; None where the system does not tell."""
    group = _own_group()
    own = _read(group / "memory.events") if group else None
    return _read(MACHINE) if own is None else own


def _own_group() -> Path | None:
    """The folder of this process's group, version 2: the line `0::/path`."""
    try:
        lines = OWN_GROUP.read_text().splitlines()
    except OSError:
        return None
    paths = (line.removeprefix("0::/") for line in lines if line.startswith("0::/"))
    return next((GROUPS / path for path in paths), None)


def _read(path: Path) -> int | None:
    try:
        lines = path.read_text().splitlines()
    except OSError:
        return None
    found = (line.split()[1] for line in lines if line.startswith("oom_kill "))
    return next((int(value) for value in found), None)
