"""A rank's own mark: what it does now, in mapped memory, for whoever asks after it has gone."""

from __future__ import annotations

import mmap
import os
import time
from pathlib import Path

from ringside.marks import ACTIVITIES, LAYOUT, MAGIC, PHASES

_PHASE = {name: number for number, name in enumerate(PHASES)}
_ACTIVITY = {name: number for number, name in enumerate(ACTIVITIES)}


class ProgressMark:
    """Says what this rank does; without a file (`keep`) it says so to nobody.

    `step` and `batch` are set by the loop and travel with the next `enter`.
    """

    def __init__(self, rank: int) -> None:
        self.rank = rank
        self.step = 0
        self.batch = 0
        self._pid = os.getpid()
        self._phase, self._epoch = _PHASE["start"], 0
        self.phase, self.activity = "start", "begin"
        self._entered = time.monotonic()
        self._memory: bytearray | mmap.mmap = bytearray(LAYOUT.size)

    def keep(self, path: Path) -> None:
        """From now on in this file; where it cannot be made, training goes on without."""
        try:
            with path.open("wb+") as stream:
                # Written, not truncated to size: mapped holes on a full disk would end in SIGBUS.
                stream.write(bytes(self._memory))
                stream.flush()
                self._memory = mmap.mmap(stream.fileno(), LAYOUT.size)
                self.enter(self.activity)
        except OSError:
            return

    @property
    def still_s(self) -> float:
        """Seconds since this rank entered what it does."""
        return time.monotonic() - self._entered

    def begin(self, phase: str, epoch: int) -> None:
        """A phase of `PHASES` begins."""
        self.phase, self._phase = phase, _PHASE[phase]
        self._epoch, self.batch = epoch, 0
        self.enter("begin")

    def enter(self, activity: str) -> None:
        """This rank now does one of `ACTIVITIES`."""
        self.activity = activity
        self._entered = time.monotonic()
        LAYOUT.pack_into(
            self._memory, 0, MAGIC, self.rank, self._pid, self._phase, _ACTIVITY[activity],
            self._epoch, self.step, self.batch, time.time(),
        )  # fmt: skip
