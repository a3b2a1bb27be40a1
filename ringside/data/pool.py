"""Spreads work over processes, in any order and in memory that does not grow with the work."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from types import FrameType
from typing import Any, TypeVar

from ringside.errors import DataError
from ringside.words import say, speaking, spoken

Item = TypeVar("Item")
Result = TypeVar("Result")

_stop: Any = None  # in a worker: the event of the process that waits for its results


class Stopped(Exception):  # noqa: N818
    """Ends a piece of work whose result nobody waits for."""


def spread(
    work: Callable[[Item], Result], items: Iterable[Item], workers: int
) -> Generator[Result, None, None]:
    """`work(item)` for all items in so many processes, or here when it is one; in any order.

    No more items are under way than keep the processes busy. Raises `DataError` when a process is
    killed, and whatever `work` raises; what is not begun then is not done. Whoever leaves early
    (an error, Ctrl+C, `close`) waits for the workers, which end at their next `stop_point`.
    """
    if workers <= 1:
        yield from map(work, items)
        return
    import multiprocessing
    from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
    from concurrent.futures.process import BrokenProcessPool

    context = multiprocessing.get_context("spawn")  # the caller may hold threads
    stop = context.Event()
    pool = ProcessPoolExecutor(
        workers, mp_context=context, initializer=_begin_worker, initargs=(stop,)
    )

    def submitted(more: Iterable[Item]) -> set[Any]:
        with _ctrl_c_held():  # a worker that is just starting would die of it, with a traceback
            return {pool.submit(_said_in, language, work, item) for item in more}

    waiting, language = iter(items), spoken()
    try:
        pending = submitted(islice(waiting, 3 * workers))
        while pending:
            done, pending = wait(pending, return_when=FIRST_COMPLETED)
            pending |= submitted(islice(waiting, len(done)))
            yield from (future.result() for future in done)
    except BrokenProcessPool as error:
        raise DataError(say("dataset.worker_killed")) from error
    finally:
        stop.set()
        pool.shutdown(cancel_futures=True)


def _said_in(language: str, work: Callable[[Item], Result], item: Item) -> Result:
    with speaking(language):
        return work(item)


def stop_point() -> None:
    """Between two pictures of a piece of work: raises `Stopped` when it is no longer wanted."""
    if _stop is not None and _stop.is_set():
        raise Stopped


def _begin_worker(stop: Any) -> None:
    """Ctrl+C reaches every process of a terminal; the parent decides what it means."""
    global _stop
    _stop = stop
    signal.signal(signal.SIGINT, signal.SIG_IGN)


@contextmanager
def _ctrl_c_held() -> Iterator[None]:
    """Answer SIGINT afterwards, and keep it from the processes that are started meanwhile.

    They inherit the mask. It is not enough for this process: another thread may get the signal,
    and the main thread always answers it.
    """
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    is_main = threading.current_thread() is threading.main_thread()
    held: list[tuple[int, FrameType | None]] = []
    answer = signal.getsignal(signal.SIGINT)
    if is_main:
        signal.signal(signal.SIGINT, lambda *received: held.append(received))
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        if is_main:
            signal.signal(signal.SIGINT, answer)
        if held and callable(answer):
            answer(*held[0])
