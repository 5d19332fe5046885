"""Locks that let one thread at a time use a model or a fleet."""

from __future__ import annotations

import os
from threading import Lock, RLock
from typing import Any, Self

_MAKING_A_LOCK = Lock()  # so that two threads do not create two locks for the same object


class ModelLock:
    """A reentrant lock that detects forks.

    If a process is forked while another thread holds the lock, the child inherits the lock but not the thread that
    would release it. The model may be half changed there, so the child may not use it.
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
    """An object with a lock of its own, made when it is first used."""

    __slots__ = ("_lock_of_its_own",)  # a slot is not copied, pickled or seen by scikit-learn

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
