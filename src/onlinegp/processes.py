"""Processes that work for this one, and never outlive it; and how many threads BLAS may use in this one."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import ContextDecorator, contextmanager, suppress
from multiprocessing import active_children, get_context, parent_process
from typing import Any, TypeVar

from onlinegp.progress import shown

PR_SET_PDEATHSIG = 1  # of prctl(2)
Result = TypeVar("Result")
Jobs = int | Executor | None  # how many, or what runs them; see `in_parallel`


def in_parallel(
    function: Callable[..., Result],
    tasks: Iterable[tuple[Any, ...]],
    jobs: Jobs = None,
    *,
    title: str = "",
    total: int = 0,
) -> list[Result]:
    """Return what a function of a module returns for each task, a tuple of its arguments, in their order.

    With joblib installed its backend runs them: processes here, or whatever ``joblib.parallel_config`` says. Without
    it, processes do.

    Parameters
    ----------
    function, tasks
        Tasks may come from a generator: joblib takes them as they are needed.
    jobs : int or Executor, optional
        How many run at a time; one: in this process. None: as many as ``joblib.parallel_config`` says, or one per core
        if it does not say more than one. An executor of ``concurrent.futures`` runs them itself.
    title, total : str, int
        Of the progress bar: what is done, and how many tasks there are; no bar without a total.
    """
    return list(shown(_results(function, tasks, jobs), total, title, show=None if total else False))


def _results(function: Callable[..., Result], tasks: Iterable[tuple[Any, ...]], jobs: Jobs) -> Iterator[Result]:
    """Yield what the tasks return, in their order."""
    if jobs == 1:
        yield from (function(*task) for task in tasks)
        return
    if isinstance(jobs, Executor):
        yield from (one.result() for one in [jobs.submit(function, *task) for task in tasks])
        return
    try:
        from joblib import Parallel, delayed, effective_n_jobs
    except ImportError:
        with worker_pool(jobs or cores()) as pool:
            yield from _results(function, tasks, pool)
            return
    if jobs is None and effective_n_jobs(None) == 1:
        jobs = -1
    yield from Parallel(n_jobs=jobs, return_as="generator")(delayed(function)(*task) for task in tasks)


def cores() -> int:
    """Return how many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextmanager
def worker_pool(workers: int) -> Iterator[ProcessPoolExecutor]:
    """Yield a pool whose processes end with the block: when their work is done, or at once if the block fails.

    They also end if this process is killed. They must not hold anything that has to be closed.
    """
    others = set(active_children())
    pool = ProcessPoolExecutor(workers, get_context("spawn"), _settle_in)
    try:
        yield pool
    except BaseException as error:
        for child in set(active_children()) - others:
            child.kill()
        if isinstance(error, BrokenProcessPool):
            raise OSError("a process that worked for this one was killed. Was there enough memory?") from error
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def _settle_in() -> None:
    """Make a worker end without a word when the user interrupts, and leave warnings to the main process."""
    warnings.simplefilter("ignore", UserWarning)
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    _die_with_parent()
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _die_with_parent() -> None:
    """Ask Linux to kill this process when its parent ends: a thread may have to wait for a long call."""
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL))


def _end_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def resident() -> int:
    """Return the bytes of memory that this process holds now; zero where the system does not tell."""
    try:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0


class SingleThreadedBlas(ContextDecorator):
    """Context or decorator in which BLAS uses one thread; what was allowed before is restored at the end.

    Factorizations of a few hundred rows gain little from a second thread, and threads that wait for each other by
    spinning lose a factor of ten or more where other processes are busy, or where a container has a fraction of a core.
    The limit holds for the whole process, so contexts that overlap in several threads share it: the last one to end
    restores it.
    """

    def __init__(self) -> None:
        self._lock, self._inside = threading.Lock(), 0
        self._limit: Any = None

    def __enter__(self) -> None:
        import scipy.linalg  # noqa: F401  has a BLAS of its own, which must be loaded to be limited
        from threadpoolctl import threadpool_limits

        with self._lock:
            if self._inside == 0:
                self._limit = threadpool_limits(1, user_api="blas")
            self._inside += 1

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self._inside -= 1
            if self._inside == 0:
                self._limit.restore_original_limits()


single_threaded_blas = SingleThreadedBlas()
