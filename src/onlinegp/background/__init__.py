"""Work in the background on one thread and in one child process, which does not change any result.

Tuning is Python code. On a thread it would hold the lock of the interpreter for milliseconds at a time, so a child
process does it, `child.py`, and sends the result through a pipe. The thread waits for the result, then does the rest,
such as loading what the child has learned. Without a child the thread does everything.
"""

from __future__ import annotations

import atexit
import os
import pickle
import struct
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from typing import IO, Any

Progress = Callable[[float], None]
LENGTH = struct.Struct("<q")  # length of the message that follows
# For glibc: reuse the memory of large matrices. New pages take 10% of the time of a tuning
KEEP_MEMORY = {"MALLOC_MMAP_THRESHOLD_": "1000000000", "MALLOC_TRIM_THRESHOLD_": "1000000000"}
CHILD = os.path.join(os.path.dirname(__file__), "child.py")
_LOOK = 0.1  # seconds between two updates of a progress bar
_PATIENCE = 10.0  # seconds that the end of the interpreter waits for the thread

_queue: SimpleQueue[Job] = SimpleQueue()
_lock = threading.Lock()
_owner = 0  # id of the process that owns the thread
_thread: threading.Thread | None = None
_child: subprocess.Popen[bytes] | None = None
_ending = threading.Event()
_is_child = False  # whether this process is a child


def send(pipe: IO[bytes], message: Any) -> None:
    """Write the length of a message, then the message."""
    data = pickle.dumps(message)
    rest = memoryview(LENGTH.pack(len(data)) + data)
    while rest:
        rest = rest[pipe.write(rest) :]


def receive(pipe: IO[bytes]) -> Any:
    """Return the next message. Raise EOFError at the end."""
    return pickle.loads(_read(pipe, LENGTH.unpack(_read(pipe, LENGTH.size))[0]))


def _read(pipe: Any, size: int) -> bytearray:
    data = bytearray(size)
    rest = memoryview(data)
    while rest:
        read = pipe.readinto(rest)
        if not read:
            raise EOFError
        rest = rest[read:]
    return data


class Job:
    """A function to call in the background, and a function, `then`, to call with its result in this process.

    Both are called once, in the background or by the caller that needs the result first. If they raise an error, each
    call of `result` raises it. `progress` is called with the finished share of the work.
    """

    def __init__(self, function: Callable[..., Any], *args: Any, then: Callable[[Any], Any]) -> None:
        self._function, self._args, self._then, self._process = function, args, then, os.getpid()
        self._claimed, self._finished = threading.Lock(), threading.Event()
        self._share, self._result = 0.0, None
        self._error: BaseException | None = None

    @property
    def ready(self) -> bool:
        """Whether the result is ready."""
        return self._finished.is_set() and self._error is None

    def result(self, progress: Progress) -> Any:
        """Return the result. Wait for it, or compute it here, if it is not ready."""
        if os.getpid() != self._process:  # after a fork: no thread works on this job
            return self._work(progress)
        if not self._finished.is_set():
            if self._claimed.acquire(blocking=False):
                return self._run(self._work, progress)
            while not self._finished.wait(_LOOK):
                progress(self._share)
        if self._error is not None:
            return self._work(progress)
        return self._result

    def _work(self, progress: Progress) -> Any:
        return self._then(self._function(*self._args, progress))

    def _run(self, work: Callable[[Progress], Any], progress: Progress) -> Any:
        try:
            self._result = work(progress)
        except BaseException as error:
            self._error = error
            raise
        finally:
            self._finished.set()
        return self._result

    def run_behind(self) -> None:
        if self._claimed.acquire(blocking=False):
            with suppress(BaseException):  # `result` raises it again
                self._run(self._work if _child is None else self._delegate, self._tell)

    def _delegate(self, progress: Progress) -> Any:
        """Call the function in the child process. If that fails, call it here."""
        child = _child
        assert child is not None
        assert child.stdin is not None
        assert child.stdout is not None
        try:
            send(child.stdin, (self._function, self._args))
            while isinstance(answer := receive(child.stdout), float):
                progress(answer)
        # No child, or the function cannot be pickled
        except (OSError, EOFError, pickle.PickleError, AttributeError, TypeError):
            _dismiss()
            answer = None
        return self._work(progress) if answer is None else self._then(answer[0])

    def _tell(self, share: float) -> None:
        if _ending.is_set():
            raise SystemExit
        self._share = share


def submit(function: Callable[..., Any], *args: Any, then: Callable[[Any], Any]) -> Job:
    """Return a new job, and put it into the queue of the thread. In the child, `result` computes it."""
    job = Job(function, *args, then=then)
    if not _is_child:
        prepare()
        _queue.put(job)
    return job


def become_child() -> None:
    """Let this process be the child, which starts neither a thread nor another child."""
    global _is_child
    _is_child = True


def prepare(module: str = "") -> None:
    """Start the thread, which starts the child, if they do not run yet.

    The child imports `module` first, so that the first call of a function in this module does not wait for it.
    """
    global _owner, _thread
    if _owner == os.getpid():
        return
    with _lock:
        if _owner != os.getpid():
            _thread = threading.Thread(target=_serve, args=(module,), name="onlinegp-tuning", daemon=True)
            _thread.start()
            _owner = os.getpid()


def _serve(module: str) -> None:
    _start_child(module)
    while not _ending.is_set():
        _queue.get().run_behind()


def _start_child(module: str) -> None:
    """Start the child, and wait until it has imported its modules. No job is claimed before."""
    global _child
    if not sys.executable or _ending.is_set():
        return
    path = os.pathsep.join(os.path.abspath(one) for one in sys.path)
    with suppress(OSError, EOFError):
        _child = subprocess.Popen(
            [sys.executable, "-P", CHILD, module],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            bufsize=0,  # a fork may close pipes that a thread reads
            env=KEEP_MEMORY | os.environ | {"PYTHONPATH": path},
        )
        assert _child.stdout is not None
        receive(_child.stdout)
        return
    _dismiss()


def _dismiss() -> None:
    """End the child process."""
    global _child
    child, _child = _child, None
    if child is not None:
        child.kill()
        child.wait()
        _close(child)


def _close(child: subprocess.Popen[bytes]) -> None:
    for pipe in (child.stdin, child.stdout):
        with suppress(OSError):
            if pipe is not None:
                pipe.close()


def _end() -> None:
    """Stop thread and child before the interpreter ends, because compiled code must not return after the end."""
    if _owner == os.getpid() and _thread is not None:
        _ending.set()
        if (child := _child) is not None:
            child.kill()  # so that the thread does not wait for it
        _queue.put(Job(lambda _: None, then=lambda _: None))  # wakes the thread if it waits for a job
        _thread.join(_PATIENCE)
        _dismiss()


def _after_fork() -> None:
    """After a fork, forget the thread and the child process, which belong to the parent."""
    global _queue, _lock, _child
    _queue, _lock, child, _child = SimpleQueue(), threading.Lock(), _child, None
    if child is not None:
        child.returncode = 0  # nothing to wait for
        _close(child)


atexit.register(_end)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
