"""The child process that tunes in the background: it reads functions from stdin and writes their results to stdout.

This file runs as a script, with the name of a module to import first, or an empty name. It lowers its priority before
it imports anything large. The child exits when its parent exits, because stdin is then closed.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import warnings
from contextlib import suppress
from importlib import import_module

LOW = 10  # added to the niceness while importing


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles Ctrl-C, and ends this process
    warnings.simplefilter("ignore")
    requests, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)  # printed text must not mix with results
    import_at_low_priority(sys.argv[1])

    from onlinegp.background import become_child, receive, send
    from onlinegp.processes import die_with_parent

    die_with_parent()
    become_child()
    send(answers, "ready")
    while True:
        try:
            function, args = receive(requests)
            answer = (function(*args, lambda share: send(answers, float(share))),)
        except (EOFError, BrokenPipeError):
            return  # the parent has ended
        except Exception:
            answer = None  # the parent runs it again and raises the error
        try:
            send(answers, answer)
        except BrokenPipeError:
            return


def import_at_low_priority(module: str) -> None:
    """Import what a tuning needs. This takes half a second of CPU time, for which no row of the parent should wait.

    On Linux each thread has its own priority, so the tunings keep the priority of the parent.
    """
    thread = threading.Thread(target=_import, args=(module,))
    thread.start()
    thread.join()


def _import(module: str) -> None:
    if sys.platform == "linux":
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, 0, os.getpriority(os.PRIO_PROCESS, 0) + LOW)  # of this thread
    import scipy.linalg
    import scipy.optimize
    import scipy.spatial.distance  # noqa: F401

    from onlinegp.processes import single_threaded_blas

    if module:
        import_module(module)
    with single_threaded_blas:  # searches for libraries now, so that later rows need not wait
        pass


if __name__ == "__main__":
    main()
