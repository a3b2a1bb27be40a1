"""The stacks of all threads as text, in the words of CPython's Python/traceback.c.

faulthandler writes them too, in C and without Python's lock. That is needed where a call holds the
lock and never returns, and it is dangerous elsewhere: it reads frames that other threads are just
leaving, and then ends the process with SIGSEGV (python/cpython#116008; CPython 3.12 and 3.13 within
seconds of trying, 3.11 seldom). So threads are told here, by a thread that holds the lock;
faulthandler is for when none can get it.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from types import FrameType

MAX_FRAMES = 100


def thread_stacks() -> bytes:
    """All threads but the one that calls, the newest first and the main thread last.

    Names of files that are no UTF-8 are escaped; of more than MAX_FRAMES calls the innermost are
    told.
    """
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    caller, main = threading.get_ident(), threading.main_thread().ident
    found = sys._current_frames()
    order = sorted((ident for ident in found if ident != caller), key=lambda one: one == main)
    text = "\n".join(
        "\n".join(_lines(f"Thread 0x{ident:016x} [{names.get(ident, '?')}]", found[ident]))
        for ident in order
    )
    return text.encode(errors="backslashreplace")


def _lines(title: str, frame: FrameType | None) -> Iterator[str]:
    yield f"{title} (most recent call first):"
    for _ in range(MAX_FRAMES):
        if frame is None:
            break
        code = frame.f_code
        yield f'  File "{code.co_filename}", line {frame.f_lineno or "???"} in {code.co_name}'
        frame = frame.f_back
    else:
        yield "  ..."
    yield ""
