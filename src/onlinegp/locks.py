"""Locks, because only one thread at a time can use a model or a fleet."""

from __future__ import annotations

import os
from threading import Lock, RLock
from typing import Any, Self

_MAKING_A_LOCK = Lock()  # so that two threads do not create two locks for the same object


class ModelLock:
    """A reentrant lock that detects forks.

    If a process is forked while another thread has the lock, the child inherits the lock but not the thread that would
    release it. In the child the model may be inconsistent, so using it raises an error.
    """

    def __init__(self) -> None:
        self._lock, self._process = RLock(), os.getpid()

    def __enter__(self) -> Self:
        if self._process == os.getpid():
            self._lock.acquire()
        elif self._lock.acquire(blocking=False):
            self._process = os.getpid()
        else:
            raise RuntimeError(
                "the model cannot be used in this process, which was forked while another thread was using the "
                "model. Fork between calls, or give the process a copy (to_bytes, pickle)."
            )
        return self

    def __exit__(self, *_: object) -> None:
        self._lock.release()


class Locked:
    """Base class of objects with a lock, which is created on first use."""

    __slots__ = ("_lock_of_its_own",)  # a slot, because it is not copied, pickled or visible to scikit-learn

    _lock_of_its_own: Any

    @property
    def _lock(self) -> ModelLock:
        try:
            return self._lock_of_its_own
        except AttributeError:
            with _MAKING_A_LOCK:
                if not hasattr(self, "_lock_of_its_own"):
                    self._lock_of_its_own = ModelLock()
            return self._lock_of_its_own
