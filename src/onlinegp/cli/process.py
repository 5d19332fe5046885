"""Set up the process of a command: standard streams, signals and threads."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from onlinegp.streams.running.stop_signals import AGAIN, ALARMS, importing

BLAS_THREADS = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS")


class Terminated(BaseException):
    """Raised on SIGTERM or SIGHUP, like KeyboardInterrupt on Ctrl-C."""

    def __init__(self, number: int = signal.SIGTERM) -> None:
        self.exit_code = 128 + number


@contextmanager
def interruptible() -> Iterator[None]:
    """Raise exceptions on SIGTERM and SIGHUP, as on Ctrl-C, but not during an import."""
    if threading.current_thread() is not threading.main_thread() or not ALARMS:
        yield
        return
    asked: list[BaseException] = []

    def on(number: int, frame: FrameType | None) -> None:
        if number != signal.SIGALRM:
            asked.append(KeyboardInterrupt() if number == signal.SIGINT else Terminated(number))
        if importing(frame):
            signal.setitimer(signal.ITIMER_REAL, AGAIN)
        else:
            raise asked[0]

    numbers = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGALRM]
    heeded = [number for number in numbers if signal.getsignal(number) is not signal.SIG_IGN]
    before = {number: signal.signal(number, on) for number in heeded}
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        for number, handler in before.items():
            signal.signal(number, handler)


def stand_in_for_closed_streams() -> None:
    """Replace closed standard streams, so that no other open file gets their number and their data."""
    if sys.stdin is None:
        sys.stdin = open(os.devnull)  # noqa: SIM115
    if sys.stdout is None:
        reader, writer = os.pipe()
        os.dup2(writer, 1)
        for handle in {reader, writer} - {1}:
            os.close(handle)
        sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115


def drop_output() -> None:
    """Flush standard output, or discard its buffer if that fails, so that nothing fails at exit."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def one_blas_thread() -> None:
    """Limit BLAS to one thread, unless the user has set a limit.

    Commands run several models at the same time, and on busy cores several threads are slower than one thread.
    """
    if any(name in os.environ for name in BLAS_THREADS):
        return
    from threadpoolctl import threadpool_limits

    os.environ.update(dict.fromkeys(BLAS_THREADS, "1"))  # for libraries that are loaded later, and for worker processes
    threadpool_limits(1, user_api="blas")
