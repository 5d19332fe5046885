"""Work in the background: one thread per process, which never changes a result, only when it is there."""

from __future__ import annotations

import atexit
import os
import threading
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from typing import Any

Progress = Callable[[float], None]
_LOOK = 0.1  # seconds between two updates of a progress bar

_queue: SimpleQueue[Job] = SimpleQueue()
_lock = threading.Lock()
_owner = 0  # the process that has the thread
_thread: threading.Thread | None = None
_ending = threading.Event()
_PATIENCE = 10.0  # seconds that the end of the interpreter waits for the thread


class Job:
    """A function that is called once, in the background or by whoever needs its result first.

    It is given a function to call with the share that is done. What it raises is raised by `result`, each time.
    """

    def __init__(self, work: Callable[[Progress], Any]) -> None:
        self._work, self._process = work, os.getpid()
        self._claimed, self._finished = threading.Lock(), threading.Event()
        self._share, self._result = 0.0, None
        self._error: BaseException | None = None

    @property
    def ready(self) -> bool:
        """Whether there is a result."""
        return self._finished.is_set() and self._error is None

    def result(self, progress: Progress) -> Any:
        """Return the result; wait for it, or work on it, if it is not there yet."""
        if os.getpid() != self._process:  # a fork, in which no thread works on it
            return self._work(progress)
        if not self._finished.is_set():
            if self._claimed.acquire(blocking=False):
                return self._run(progress)
            while not self._finished.wait(_LOOK):
                progress(self._share)
        if self._error is not None:
            return self._work(progress)
        return self._result

    def _run(self, progress: Progress) -> Any:
        try:
            self._result = self._work(progress)
        except BaseException as error:
            self._error = error
            raise
        finally:
            self._finished.set()
        return self._result

    def _run_behind(self) -> None:
        if self._claimed.acquire(blocking=False):
            with suppress(BaseException):  # which `result` meets again
                self._run(self._tell)

    def _tell(self, share: float) -> None:
        if _ending.is_set():
            raise SystemExit
        self._share = share


def submit(work: Callable[[Progress], Any]) -> Job:
    """Return a job that waits for the thread of this process, which is started if there is none."""
    global _owner, _thread
    job = Job(work)
    with _lock:
        if _owner != os.getpid():
            _thread = threading.Thread(target=_serve, name="onlinegp-tuning", daemon=True)
            _thread.start()
            _owner = os.getpid()
    _queue.put(job)
    return job


def _serve() -> None:
    while not _ending.is_set():
        _queue.get()._run_behind()


def _end() -> None:
    """Stop the thread before the interpreter ends: compiled code must not return to an interpreter that is gone."""
    if _owner == os.getpid() and _thread is not None:
        _ending.set()
        _queue.put(Job(lambda _: None))  # in case it waits for one
        _thread.join(_PATIENCE)


def _after_fork() -> None:
    global _queue, _lock
    _queue, _lock = SimpleQueue(), threading.Lock()


atexit.register(_end)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
