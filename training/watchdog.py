"""For a rank that comes no further: its stacks in a file, and an end when the timeout is over.

gloo raises an error in a rank that waits too long. With NCCL the host may be stuck anywhere (a full
launch queue, a synchronisation), and a rank that hangs by itself raises nothing. So each rank also
watches its own mark.
"""

from __future__ import annotations

import faulthandler
import os
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

from ringside.marks import is_timed
from ringside.words import say
from training.asked_stacks import AskedStacks
from training.progress_mark import ProgressMark
from training.thread_stacks import thread_stacks

SHARE_OF_TIMEOUT = 0.8
LATER = 1.15
# An error that gloo raises comes first: it knows the call.
MARGIN_S = 2.0
POLL_S = 0.25
INPUT_THREAD = "input"
"""On a GPU it prepares batches ahead; where it hangs, training only waits for its queue."""


class NoProgressError(Exception):
    """This rank has stood still longer than the timeout."""


class StackFile:
    """Stacks of all threads, when this rank has not come on for `after_s` seconds.

    `look` writes them, called often by a thread. Where C code holds Python's lock, no thread is
    left that could: then faulthandler does, `LATER` times as late. It also does on a fatal signal
    (SIGSEGV, NCCL's SIGABRT).
    """

    def __init__(self, path: Path, after_s: float) -> None:
        self._path, self._after_s = path, after_s
        self._file = path.open("w")
        self._lock = threading.Lock()
        self._due: float | None = None
        faulthandler.enable(self._file)
        self.put_off()

    def put_off(self) -> None:
        """This rank has come on; stacks that were written meanwhile are no evidence."""
        with self._lock:
            self._due = time.monotonic() + self._after_s
            faulthandler.dump_traceback_later(LATER * self._after_s, file=self._file)
            if os.fstat(self._file.fileno()).st_size:
                os.lseek(self._file.fileno(), 0, os.SEEK_SET)
                os.ftruncate(self._file.fileno(), 0)

    def look(self) -> None:
        """Write them if it is time."""
        with self._lock:
            if self._due is None or time.monotonic() < self._due:
                return
            self._due = None
            # To the file itself, as faulthandler does; where that fails, faulthandler may try.
            with suppress(OSError):
                os.write(self._file.fileno(), thread_stacks())
                faulthandler.cancel_dump_traceback_later()

    def end(self) -> None:
        """The run is over and well; nothing is left."""
        faulthandler.cancel_dump_traceback_later()
        faulthandler.disable()
        self._file.close()
        self._path.unlink(missing_ok=True)


class Watchdog:
    """Keeps the stack file, and calls `give_up` when a training step stands still too long.

    Only training steps count: opening data, compiling, scoring and saving may take their time. (A
    rank that waits for another one in a collective is ended by that collective's own timeout.)
    """

    def __init__(
        self, mark: ProgressMark, stacks: Path, timeout_s: float,
        give_up: Callable[[NoProgressError], None], asked: AskedStacks | None = None,
    ) -> None:  # fmt: skip
        self._mark, self._limit_s, self._give_up = mark, timeout_s + MARGIN_S, give_up
        self._stacks, self._asked = StackFile(stacks, SHARE_OF_TIMEOUT * timeout_s), asked
        self._main = threading.get_ident()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="watchdog", daemon=True)
        self._thread.start()

    def came_on(self) -> None:
        """This rank has exchanged with the others."""
        self._stacks.put_off()
        if self._asked is not None:
            self._asked.tidy()

    def end(self) -> None:
        """The run is over and well."""
        self._over.set()
        self._thread.join()
        self._stacks.end()
        if self._asked is not None:
            self._asked.end()

    def _watch(self) -> None:
        while not self._over.wait(POLL_S):
            self._stacks.look()
            still_s = self._mark.still_s
            timed = is_timed(self._mark.phase, self._mark.activity)
            if timed and still_s > self._limit_s:
                self._give_up(self._no_progress(still_s))
                return

    def _no_progress(self, still_s: float) -> NoProgressError:
        error = NoProgressError(
            say("rank_error.no_progress", seconds=round(still_s), step=self._mark.step)
        )
        error.add_note("".join(self._stacks_of_work()))
        return error

    def _stacks_of_work(self) -> Iterator[str]:
        """Where training stands, and where the thread stands that may prepare its next batch."""
        frames = sys._current_frames()
        yield from traceback.format_stack(frames.get(self._main))
        for thread in threading.enumerate():
            if thread.name == INPUT_THREAD and thread.ident in frames:
                yield f"Thread {thread.name}:\n"
                yield from traceback.format_stack(frames[thread.ident])
