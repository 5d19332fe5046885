"""Worker processes that end with this process, and a limit for the threads of BLAS."""

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
from os import _exit as exit_at_once  # without cleaning up, because the parent has ended
from typing import Any, TypeVar

from onlinegp.progress import shown

PR_SET_PDEATHSIG = 1  # of prctl(2)
Result = TypeVar("Result")
Jobs = int | Executor | None  # number of processes, or an executor; see `in_parallel`


def in_parallel(
    function: Callable[..., Result],
    tasks: Iterable[tuple[Any, ...]],
    jobs: Jobs = None,
    *,
    title: str = "",
    total: int = 0,
) -> list[Result]:
    """Call a function for each task, a tuple of arguments, and return the results in the order of the tasks.

    If joblib is installed, its backend runs the tasks: local processes, or the backend set by
    ``joblib.parallel_config``. Otherwise local processes run them.

    Parameters
    ----------
    function : callable
        A function of a module, so that it can be pickled.
    tasks : iterable of tuples
        A generator is possible: joblib requests tasks when it needs them.
    jobs : int or Executor, optional
        The number of parallel tasks; 1 runs them in this process. None uses the number in ``joblib.parallel_config``,
        or one process per core if that number is 1. Or an executor of ``concurrent.futures``.
    title, total : str, int
        The title of the progress bar and the number of tasks. Without a total, no bar is shown.
    """
    return list(shown(_results(function, tasks, jobs), total, title, show=None if total else False))


def _results(function: Callable[..., Result], tasks: Iterable[tuple[Any, ...]], jobs: Jobs) -> Iterator[Result]:
    """Yield the results in the order of the tasks."""
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
    """Return the number of processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextmanager
def worker_pool(workers: int) -> Iterator[ProcessPoolExecutor]:
    """Yield a pool of processes that end with the context: after their work, or immediately after an error.

    They also end if this process is killed, without closing anything.
    """
    others = set(active_children())
    pool = ProcessPoolExecutor(workers, get_context("spawn"), _settle_in)
    try:
        yield pool
    except BaseException as error:
        for child in set(active_children()) - others:
            child.kill()
        if isinstance(error, BrokenProcessPool):
            raise OSError("a worker process was killed, possibly for lack of memory. Use fewer processes.") from error
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def _settle_in() -> None:
    """Set up a worker: end silently on Ctrl-C, and show no warnings."""
    warnings.simplefilter("ignore", UserWarning)
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    die_with_parent()
    threading.Thread(target=_end_with_parent, daemon=True).start()


def die_with_parent() -> None:
    """Ask Linux to kill this process when its parent ends. A thread could do this only after the current call."""
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL))


def _end_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        parent.join()
        exit_at_once(1)


def resident() -> int:
    """Return the resident memory of this process in bytes, or zero if the system does not report it."""
    try:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0


class SingleThreadedBlas(ContextDecorator):
    """Context manager and decorator that limits BLAS to one thread, and restores the previous limit at the end.

    Factorizations of a few hundred rows gain little from a second thread. Because threads of BLAS wait actively for
    each other, they are ten or more times slower if other processes are busy, or if a container has a fraction of a
    core. The limit applies to the whole process. Overlapping contexts in several threads share it, and the last context
    restores it.
    """

    def __init__(self) -> None:
        self._lock, self._inside = threading.Lock(), 0
        self._limit: Any = None
        self._controller: Any = None
        self._modules = 0  # number of imported modules at the last search for libraries, which takes milliseconds

    def __enter__(self) -> None:
        import scipy.linalg  # noqa: F401  has its own BLAS, which must be loaded to be limited
        from threadpoolctl import ThreadpoolController

        with self._lock:
            if self._inside == 0:
                self._take_control()
                if self._modules != len(sys.modules):
                    self._controller, self._modules = ThreadpoolController(), len(sys.modules)
                self._limit = self._controller.limit(limits=1, user_api="blas")
            self._inside += 1

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self._inside -= 1
            if self._inside == 0:
                self._take_control()
                self._limit.restore_original_limits()
                self._take_control()

    def _take_control(self) -> None:
        """Let this thread set limits. Since threadpoolctl 3.7 only the first thread can."""
        from threadpoolctl import OpenBLASController

        clear = getattr(OpenBLASController, "clear_controlling_thread", None)
        if clear is not None:
            clear(force=True)


single_threaded_blas = SingleThreadedBlas()
