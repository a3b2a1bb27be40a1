"""Spreads work over processes, in any order and in memory that does not grow with the work."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import TypeVar

from ringside.errors import DataError

Item = TypeVar("Item")
Result = TypeVar("Result")


def num_cpus() -> int:
    """The CPUs that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def spread(work: Callable[[Item], Result], items: Iterable[Item], workers: int) -> Iterator[Result]:
    """`work(item)` for all items in so many processes, or here when it is one; in any order.

    No more items are under way than keep the processes busy. Raises `DataError` when a process is
    killed, and whatever `work` raises; what is not begun then is not done.
    """
    if workers <= 1:
        yield from map(work, items)
        return
    import multiprocessing
    from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
    from concurrent.futures.process import BrokenProcessPool

    context = multiprocessing.get_context("spawn")  # the caller may hold threads
    pool = ProcessPoolExecutor(workers, mp_context=context, initializer=_leave_ctrl_c_to_parent)
    waiting = iter(items)
    try:
        pending = {pool.submit(work, item) for item in islice(waiting, 3 * workers)}
        while pending:
            done, pending = wait(pending, return_when=FIRST_COMPLETED)
            pending |= {pool.submit(work, item) for item in islice(waiting, len(done))}
            yield from (future.result() for future in done)
    except BrokenProcessPool as error:
        raise DataError(
            "A process that decoded images was killed, most likely for lack of memory: try again "
            "with fewer workers. (A script does this below `if __name__ == ...`.)"
        ) from error
    finally:
        pool.shutdown(cancel_futures=True)


def _leave_ctrl_c_to_parent() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
