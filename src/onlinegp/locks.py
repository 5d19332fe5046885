"""One thread at a time on a model or a fleet; the others wait."""

from __future__ import annotations

import os
from threading import RLock
from typing import Self


class ModelLock:
    """A lock that its own thread may take again, and that knows its process.

    A child that is forked in the middle of another thread's call has the lock, but not the thread that would release
    it: there the model may be half changed, and using it is refused.
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
                "the model cannot be used in this process: it was forked while another thread was in the middle of a "
                "call on the model. Fork between calls, or give the process a copy (to_bytes, pickle)."
            )
        return self

    def __exit__(self, *_: object) -> None:
        self._lock.release()
