"""The child process that tunes in the background: it reads functions from stdin and writes their results to stdout.

The argument is the name of a module to import first, or empty. The child exits when its parent exits, because stdin is
then closed.
"""

from __future__ import annotations

import os
import signal
import sys
import warnings
from importlib import import_module

from onlinegp.background import become_child, receive, send
from onlinegp.processes import die_with_parent, single_threaded_blas


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles Ctrl-C, and ends this process
    die_with_parent()
    become_child()
    warnings.simplefilter("ignore")
    requests, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)  # printed text must not mix with results
    import scipy.linalg
    import scipy.optimize
    import scipy.spatial.distance  # noqa: F401

    if module := sys.argv[1]:
        import_module(module)
    with single_threaded_blas:  # searches for libraries now, so that later rows need not wait
        pass

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


if __name__ == "__main__":
    main()
