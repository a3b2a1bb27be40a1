"""The machine around the GPUs: shared memory, disk, load, ports, threads."""

from __future__ import annotations

import os
import shutil
import socket
from contextlib import suppress
from pathlib import Path

SHARED_MEMORY = Path("/dev/shm")
# Where launchers look for a rendezvous: torch's default port and those after it.
FIRST_PORT, NUM_PORTS = 29500, 16


def shared_memory() -> tuple[int | None, int | None]:
    """Bytes of /dev/shm, all and free; None where the system has none."""
    return disk_bytes(SHARED_MEMORY)


def disk_bytes(path: Path) -> tuple[int | None, int | None]:
    """Bytes of the file system that holds `path` or will hold it, all and free for this user."""
    for folder in (path, *path.parents):
        with suppress(OSError):
            usage = shutil.disk_usage(folder)
            return usage.total, usage.free
        if folder == SHARED_MEMORY:
            break
    return None, None


def load_average() -> float | None:
    """Processes that ran or wanted to, averaged over the last minute."""
    with suppress(OSError, AttributeError):
        return os.getloadavg()[0]
    return None


def omp_num_threads() -> int | None:
    """OMP_NUM_THREADS; of a list, one number a level, the outermost."""
    with suppress(ValueError):
        return int(os.environ.get("OMP_NUM_THREADS", "").partition(",")[0])
    return None


def free_ports() -> int:
    """How many of `NUM_PORTS` ports from `FIRST_PORT` can be bound on the loopback now."""
    return sum(map(_is_free, range(FIRST_PORT, FIRST_PORT + NUM_PORTS)))


def _is_free(port: int) -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        # As torch's store does it: a port that only lingers after a run counts as free.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        with suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return True
    return False
