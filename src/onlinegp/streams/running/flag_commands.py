"""Run a command for each event, in the background, so that it can neither stop nor delay the stream."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import count
from threading import BoundedSemaphore, Lock

AT_ONCE = 4  # largest number of commands that run at the same time
WAITING = 1000  # the stream waits if this number of events have commands that have not ended
SECONDS = 10.0  # time limit of a command


WATCHER = """
import os, signal, sys
running = set()
for line in sys.stdin:
    (running.add if line[0] == "+" else running.discard)(int(line[1:]))
for group in running:
    try:
        os.killpg(group, signal.SIGKILL)
    except OSError:
        pass
"""  # a program that receives which commands run, and ends them if this process is killed


class Watcher:
    """A process that ends the running commands and their child processes if this process is killed."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    def tell(self, sign: str, group: int) -> None:
        """Tell the watcher that a process group runs (+) or has ended (-)."""
        if not hasattr(os, "killpg"):
            return
        if self._process is None:
            program = [sys.executable, "-I", "-S", "-c", WATCHER]
            self._process = subprocess.Popen(program, stdin=subprocess.PIPE, bufsize=0, start_new_session=True)
        assert self._process.stdin is not None
        with suppress(OSError):
            self._process.stdin.write(f"{sign}{group}\n".encode())

    def close(self) -> None:
        if self._process is not None:
            self._process.communicate()
            self._process = None


class Commands:
    """Start a command for each event, without a shell, with the event as JSON on its standard input.

    Failures are counted, and the first failure is reported: a command cannot be started, fails, or takes longer than 10
    seconds. The standard output of commands is dropped. They share the standard error of the run.
    """

    def __init__(self, command: str, say: Callable[[str], None]) -> None:
        self.args, self._say = arguments(command), say
        self.done = self.failed = 0
        self._numbers, self._lock, self._room = count(), Lock(), BoundedSemaphore(WAITING)
        self._pool = ThreadPoolExecutor(AT_ONCE, thread_name_prefix="on-flag")
        self._unfinished: dict[int, str] = {}
        self._running: dict[int, subprocess.Popen[bytes]] = {}
        self._watcher = Watcher()
        self._killed = False

    def start(self, row: str) -> None:
        """Start the command for an event, given as a JSON object. Do not wait for the end of the command."""
        self._room.acquire()
        number = next(self._numbers)
        with self._lock:
            self._unfinished[number] = row
        self._pool.submit(self._work, number, row)

    def start_all(self, rows: Iterable[str]) -> None:
        for row in rows:
            self.start(row)

    def unfinished(self) -> list[str]:
        """Return the events with commands that have not ended, oldest first. A resumed run starts them again."""
        with self._lock:
            return [self._unfinished[number] for number in sorted(self._unfinished)]

    def finish(self) -> None:
        """Wait for all commands. After `kill` there are none."""
        self._pool.shutdown(wait=True)
        self._watcher.close()

    def kill(self) -> None:
        """End the running commands, and start no more commands."""
        with self._lock:
            self._killed = True
            for process in self._running.values():
                _end(process)
        self._pool.shutdown(wait=True, cancel_futures=True)
        self._watcher.close()

    def _work(self, number: int, row: str) -> None:
        try:
            wrong = self._run(number, row)
        except OSError as error:
            wrong = str(error.strerror)
        with self._lock:
            if (process := self._running.pop(number, None)) is not None:
                self._watcher.tell("-", process.pid)
            if self._killed:
                return
            del self._unfinished[number]
            self.done += 1
            self.failed += wrong is not None
            first = wrong is not None and self.failed == 1
        self._room.release()
        if first:
            self._say(
                f"--on-flag {shlex.join(self.args)}: {wrong}. The run continues; later failures are only counted."
            )

    def _run(self, number: int, row: str) -> str | None:
        """Run a command for an event. Return what went wrong, or None."""
        with self._lock:
            if self._killed:
                return None
            process = subprocess.Popen(
                self.args, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, start_new_session=True
            )
            self._running[number] = process
            self._watcher.tell("+", process.pid)
        try:
            process.communicate(row.encode() + b"\n", timeout=SECONDS)
        except subprocess.TimeoutExpired:
            _end(process)
            process.communicate()
            return f"it took longer than {SECONDS:g} seconds and was killed"
        return None if process.returncode == 0 else f"it failed with exit code {process.returncode}"


def arguments(command: str) -> list[str]:
    """Split a command like a shell. Raise an error if the command cannot be run."""
    try:
        args = shlex.split(command)
    except ValueError as error:
        raise ValueError(f"--on-flag {command!r} cannot be split into words: {error}. Close the quotes.") from None
    if not args or shutil.which(args[0]) is None:
        raise ValueError(
            f"--on-flag {command!r}: there is no such program. Pass an executable program with its arguments; "
            f"for pipes and other shell syntax use: sh -c '...'"
        )
    return args


def _end(process: subprocess.Popen[bytes]) -> None:
    """Kill a process and its child processes, if it has not ended."""
    if process.poll() is not None:
        return
    try:
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
    except ProcessLookupError:  # it has just ended
        pass
