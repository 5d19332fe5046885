"""Several learners on the same rows, on several threads where that pays."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import partial
from time import perf_counter
from typing import TypeVar

from onlinegp.engine import thread_count

BLOCK = 250  # rows between the first two looks at signals
SHORT, LONG = 0.02, 0.1  # seconds between two looks
FEW = 50  # rows, below which starting threads costs more than it gives

T = TypeVar("T")


def together(work: Callable[[str], T], names: Sequence[str], rows: int) -> list[T]:
    """Return what `work` returns for each name, on several threads; compiled learners do not hold Python's lock."""
    threads = min(len(names), thread_count())
    if rows < FEW or threads == 1:
        return [work(name) for name in names]
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(work, names))


def in_blocks(work: Callable[[slice], T], rows: int) -> list[T]:
    """Return what `work` returns for blocks of rows, one after the other, with a look at signals between them.

    Threads take some hundred microseconds to start, and nobody shall wait for Ctrl-C: blocks grow and shrink with their
    time.
    """
    done, start, block = [], 0, BLOCK
    while start < rows:
        began = perf_counter()
        part = slice(start, start + block)
        done.append(uninterrupted(partial(work, part)))
        start, took = part.stop, perf_counter() - began
        block = 2 * block if took < SHORT else max(BLOCK, block // 2) if took > LONG else block
    return done


def uninterrupted(work: Callable[[], T]) -> T:
    """Return what `work` returns; what a signal raises meanwhile is raised when it is done.

    Threads other than the main one see no signals, so that no learner stops ahead of another.
    """
    if threading.current_thread() is not threading.main_thread():
        return work()
    begun, call = threading.Lock(), Future[T]()

    def begin() -> None:
        if begun.acquire(blocking=False):
            try:
                call.set_result(work())
            except BaseException as error:
                call.set_exception(error)

    try:
        threading.Thread(target=begin).start()  # which waits until the thread is there, and may be interrupted too
        wait([call])
    except BaseException:  # Ctrl-C, or what another handler raises
        if not begun.acquire(blocking=False):  # else it has not begun, and will not
            _patiently(call)
        raise
    return call.result()


def _patiently(call: Future[T]) -> None:
    """Wait for a call to end, whatever is raised meanwhile."""
    while not call.done():
        try:
            wait([call])
        except BaseException:  # the first interrupt is the one that is told
            continue
