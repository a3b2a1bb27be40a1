"""A rank's stacks for whoever asks while it runs: with a signal, in a file of their own."""

from __future__ import annotations

import faulthandler
import os
import signal
import threading
from contextlib import suppress
from pathlib import Path
from types import FrameType

from ringside.stacks import INSISTENT_SIGNAL, SIGNAL
from training.thread_stacks import thread_stacks

MAX_BYTES = 1 << 20
_OVER = b"\0"  # No signal has this number.


class AskedStacks:
    """On a signal the stacks of all threads are appended. Nothing is done until somebody asks.

    SIGNAL wakes a thread that writes them, whatever the main thread waits for. It cannot while
    C code holds Python's lock in a call that never returns: then INSISTENT_SIGNAL has faulthandler
    write them, in the handler itself. Make it in the main thread; only there signals can be set.
    A forked loader worker inherits both: what it is asked its rank answers.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        # To the end, wherever that is: the file is emptied when it has grown.
        self._file = path.open("ab", buffering=0)
        self._asked, self._wakes = os.pipe()
        os.set_blocking(self._wakes, False)
        # CPython's handler in C writes the number of each signal there at once.
        self._before = signal.set_wakeup_fd(self._wakes, warn_on_full_buffer=False)
        signal.signal(SIGNAL, _does_nothing)
        # What `end` goes back to: the signal may come while the run ends, and would kill the rank.
        signal.signal(INSISTENT_SIGNAL, signal.SIG_IGN)
        faulthandler.register(INSISTENT_SIGNAL, self._file, all_threads=True, chain=False)
        for number in (SIGNAL, INSISTENT_SIGNAL):
            signal.siginterrupt(number, False)
        self._thread = threading.Thread(target=self._answer, name="stacks", daemon=True)
        self._thread.start()

    def tidy(self) -> None:
        """Begin the file anew when it has grown too long."""
        if os.fstat(self._file.fileno()).st_size > MAX_BYTES:
            os.ftruncate(self._file.fileno(), 0)

    def end(self) -> None:
        """The run is over and well; a file that nobody asked for is removed."""
        signal.signal(SIGNAL, signal.SIG_IGN)
        faulthandler.unregister(INSISTENT_SIGNAL)
        signal.set_wakeup_fd(self._before)
        # Closing would not do: a forked loader worker may still have the pipe open.
        os.write(self._wakes, _OVER)
        self._thread.join()
        os.close(self._wakes)
        os.close(self._asked)
        is_empty = not os.fstat(self._file.fileno()).st_size
        self._file.close()
        if is_empty:
            self._path.unlink(missing_ok=True)

    def _answer(self) -> None:
        while _OVER not in (numbers := os.read(self._asked, 64)):
            if SIGNAL in numbers:
                # On a full disk nobody is told; the next one may be.
                with suppress(OSError):
                    self._file.write(thread_stacks())


def _does_nothing(_number: int, _frame: FrameType | None) -> None:
    """A handler of Python's, so that its C code writes to the wake-up file."""
