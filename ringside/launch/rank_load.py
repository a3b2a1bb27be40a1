"""How busy the processes of each rank are: its own and those of its loader workers."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from ringside.identity import ProcessIdentity
from ringside.samples import RankSample

FAMILY_EVERY_S = 10.0
"""Looking for children reads a file of every process of the machine; workers seldom change."""
MEMORY_SHARE, MEMORY_EVERY_S = 0.01, 30.0
"""Reading memory takes this share of the time, or is done so often: the kernel walks all pages."""


class RankLoad:
    """Sums over a rank and its descendants; `ranks` gives the process of each rank."""

    def __init__(self, ranks: Callable[[], Mapping[int, ProcessIdentity | None]]) -> None:
        self._ranks = ranks
        self._families: dict[int, list[Any]] = {}
        self._looked: float | None = None
        self._memory: dict[int, int | None] = {}
        self._next_memory = 0.0
        self._before: dict[int, tuple[float, dict[int, float]]] = {}

    def now(self) -> tuple[RankSample, ...]:
        """One sample for each rank that runs; processor time since the call before.

        Memory is that of the last reading, which may be half a minute old.
        """
        if self._looked is None or time.monotonic() - self._looked >= FAMILY_EVERY_S:
            self._families = self._look()
            # The ranks of a run that begins are soon there.
            self._looked = time.monotonic() if self._families else None
        if time.monotonic() >= self._next_memory:
            self._read_memory()
        samples = (self._sample(rank, family) for rank, family in self._families.items())
        return tuple(sample for sample in samples if sample is not None)

    def _look(self) -> dict[int, list[Any]]:
        import psutil

        families = {}
        for rank, identity in sorted(self._ranks().items()):
            with suppress(psutil.Error):
                if identity is not None:
                    process = psutil.Process(identity.pid)
                    families[rank] = [process, *process.children(recursive=True)]
        return families

    def _sample(self, rank: int, family: list[Any]) -> RankSample | None:
        import psutil

        now, busy = time.monotonic(), {}
        for process in family:
            with suppress(psutil.Error), process.oneshot():
                times = process.cpu_times()
                # One that has ended and was not reaped yet has no memory.
                if process.memory_info().rss:
                    busy[process.pid] = times.user + times.system
        if not busy:
            return None
        before = self._before.get(rank)
        self._before[rank] = (now, busy)
        cores = None
        if before is not None and now > before[0]:
            # A worker that is new counts from its next sample on.
            spent = sum(busy[pid] - before[1][pid] for pid in busy.keys() & before[1].keys())
            cores = round(max(0.0, spent) / (now - before[0]), 3)
        memory = self._memory.get(rank)
        return RankSample(rank=rank, cpu_cores=cores, memory_bytes=memory, num_processes=len(busy))

    def _read_memory(self) -> None:
        """Proportional set sizes: forked workers share nearly all their pages with their rank."""
        begin = time.monotonic()
        self._memory = {rank: _set_size(family) for rank, family in self._families.items()}
        end = time.monotonic()
        self._next_memory = end + min(MEMORY_EVERY_S, (end - begin) / MEMORY_SHARE)


def _set_size(family: list[Any]) -> int | None:
    """Bytes; a page that several processes share counts once over all of them, but on macOS.

    None where no process of the rank can be read.
    """
    import psutil

    sizes = []
    for process in family:
        with suppress(psutil.Error):
            found = process.memory_full_info()
            sizes.append(getattr(found, "pss", found.uss))
    return sum(sizes) if sizes else None
