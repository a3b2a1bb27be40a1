"""A rank's stacks for whoever asks while it runs: with a signal, in a file of their own."""

from __future__ import annotations

import faulthandler
import os
import signal
from pathlib import Path

from ringside.stacks import SIGNAL

MAX_BYTES = 1 << 20


class AskedStacks:
    """On the signal faulthandler appends the stacks of all threads.

    It does so in the handler itself, in C: a thread that holds Python's lock in a call that never
    returns does not keep it from writing. Nothing is done until somebody asks.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        # To the end, wherever that is: the file is emptied when it has grown.
        self._file = path.open("ab", buffering=0)
        # What `end` goes back to: the signal may come while the run ends, and would kill the rank.
        signal.signal(SIGNAL, signal.SIG_IGN)
        faulthandler.register(SIGNAL, self._file, all_threads=True, chain=False)

    def tidy(self) -> None:
        """Begin the file anew when it has grown too long."""
        if os.fstat(self._file.fileno()).st_size > MAX_BYTES:
            os.ftruncate(self._file.fileno(), 0)

    def end(self) -> None:
        """The run is over and well; a file that nobody asked for is removed."""
        faulthandler.unregister(SIGNAL)
        is_empty = not os.fstat(self._file.fileno()).st_size
        self._file.close()
        if is_empty:
            self._path.unlink(missing_ok=True)
