"""Several learners on the same rows, on several threads where that pays."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait

from onlinegp.checks import Array
from onlinegp.engine import thread_count
from onlinegp.learner import Learner, Sizes
from onlinegp.predictions import Predictions

BLOCK = 1000  # rows between two looks at signals
FEW = 64  # rows, below which starting threads costs more than it gives


def run_together(learners: Sequence[Learner], X: Array, Y: Array) -> list[tuple[Predictions, Sizes]]:
    """Let each learner run the rows; all of them have learned all of the rows when it returns or is interrupted.

    Compiled learners release the interpreter's lock. Threads other than the main one see no Ctrl-C, so that none stops
    in the middle; it is raised when all are done.
    """
    if len(X) < FEW:
        return [learner.run(X, Y) for learner in learners]
    with ThreadPoolExecutor(min(len(learners), thread_count())) as pool:
        calls: list[Future[tuple[Predictions, Sizes]]] = [pool.submit(one.run, X, Y) for one in learners]
        wait(calls)
    return [call.result() for call in calls]
