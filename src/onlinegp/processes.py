"""Processes that work for this one, and never outlive it."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading
import warnings
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from multiprocessing import active_children, get_context, parent_process

PR_SET_PDEATHSIG = 1  # of prctl(2)


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
