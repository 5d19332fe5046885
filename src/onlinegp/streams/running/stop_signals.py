"""Stop a run on Ctrl-C, SIGTERM or SIGHUP, immediately or at the next safe point."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from onlinegp.streams.errors import Stopped

AGAIN = 0.05  # seconds until a signal during an import is handled again
ALARMS = hasattr(signal, "setitimer")


def importing(frame: FrameType | None) -> bool:
    """Return whether a module is being imported.

    During an import, libraries may catch all exceptions, including the exception of a signal.
    """
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False


class Stopper:
    """Handle Ctrl-C, SIGTERM and SIGHUP: immediately while waiting for input, otherwise after the current piece."""

    def __init__(self) -> None:
        self.asked = 0
        self.waiting = False

    def __enter__(self) -> Stopper:
        heeded = [signal.SIGINT, signal.SIGTERM, *([signal.SIGALRM] if ALARMS else [])]
        if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # nohup ignores SIGHUP
            heeded.append(signal.SIGHUP)
        self._before = {number: signal.signal(number, self._on) for number in heeded}
        return self

    def __exit__(self, *_: object) -> None:
        if ALARMS:
            signal.setitimer(signal.ITIMER_REAL, 0.0)
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _on(self, number: int, frame: FrameType | None) -> None:
        if not (ALARMS and number == signal.SIGALRM):
            if self.asked:
                raise KeyboardInterrupt
            self.asked = number
        if self.waiting and ALARMS and importing(frame):
            signal.setitimer(signal.ITIMER_REAL, AGAIN)
        elif self.waiting:
            self.check()

    @contextmanager
    def at_once(self) -> Iterator[None]:
        """In this context, stop immediately on a signal. Use it where nothing can be lost."""
        self.waiting = True
        try:
            self.check()
            yield
        finally:
            self.waiting = False

    def check(self) -> None:
        if self.asked:
            raise Stopped("interrupted" if self.asked == signal.SIGINT else "terminated", 128 + self.asked)
