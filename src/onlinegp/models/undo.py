"""Undo failed calls, so that after an error or interrupt all layers of a learner have learned the same rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from operator import attrgetter
from threading import RLock
from time import perf_counter
from typing import Any

import numpy as np

from onlinegp.checks import Array
from onlinegp.learner import Learner, Outcome, Sizes, begin_series, interval_one, learn_one, predict_one, skip
from onlinegp.predictions import Predictions
from onlinegp.state import Contents, Fields, dump, dump_unencoded, load

MIN_DUMP_ROWS = 1024  # minimum number of rows between two dumps
MIN_FLEET_DUMP_ROWS = 64  # the same in a fleet, which stores these rows for each key
FIRST = 1024  # number of rows in the first piece of a call
LONG = 0.1  # minimum time between dumps, in seconds
QUICK, SLOW = 0.05, 0.2  # seconds: faster pieces grow, slower pieces shrink
FEWEST = 32  # minimum number of rows of a piece, because each call has a fixed cost
RARE = 10.0  # calls between two dumps take at least this multiple of the time of a dump


def undoable(
    learner: Learner, start: Callable[[], Learner], contents: Contents | None, rows: int | None = None
) -> Learner:
    """Return a learner in which each call changes all layers or none.

    The given learner is new, as returned by `start`, or has just loaded `contents`, which must not change. `rows` is
    the smallest number of rows between two dumps, MIN_DUMP_ROWS by default.
    """
    return learner if getattr(learner, "atomic", False) else Undo(learner, start, contents, rows or MIN_DUMP_ROWS)


class Undo:
    """A learner, a dump of it, and the calls since the dump.

    After an exception, including Ctrl-C, a new learner loads the dump, repeats these calls and replaces the old one. If
    this is interrupted, too, it is repeated at the next use. Long calls are divided into pieces, and only the last
    piece is undone. A compiled learner is `atomic` and does not need this, because it stops between two rows.
    """

    def __init__(self, learner: Learner, start: Callable[[], Learner], contents: Contents | None, apart: int) -> None:
        self.features, self.outputs = learner.features, learner.outputs
        self._learner, self._start, self._lock = learner, start, RLock()
        self._failed, self._apart = False, apart
        self._pieces = {"learn": FIRST, "run": FIRST}  # rows
        self._begin(contents)

    def _begin(self, contents: Contents | None, dumping: float = 0.0) -> None:
        # Rows and seconds of calls since the dump; seconds of a dump
        self._rows, self._seconds, self._dumping = 0, 0.0, dumping
        self._kept: tuple[Contents | None, list[tuple[Any, ...]]] | None = contents, []

    @property
    def learner(self) -> Learner:
        """The learner, restored if the last call failed."""
        if self._failed:
            with self._lock:
                self._restore()
        return self._learner

    size = property(attrgetter("learner.size"), doc="The number of centers, or of other parts that grow.")
    seen = property(attrgetter("learner.seen"), doc="The number of rows learned.")

    @property
    def reference(self) -> Any:
        """The learner with the fields to store."""
        return getattr(self.learner, "reference", self.learner)

    @property
    def fields(self) -> Fields:
        return self.learner.fields

    @property
    def until_tuning(self) -> float:
        """The number of rows until the next tuning; infinity without tuning."""
        return getattr(self.learner, "until_tuning", np.inf)

    def tree(self) -> Any:
        """Return the compiled form that a fleet can use directly without undo, or None."""
        tree = getattr(self.learner, "tree", lambda: None)()
        if tree is not None:
            self._kept = None
        return tree

    def _restore(self) -> None:
        if self._failed:  # false if another thread has restored the learner
            assert self._kept is not None
            contents, calls = self._kept
            learner = self._start()
            if contents is not None:
                load(learner, contents)
            for name, *arguments in calls:
                _call(learner, name, tuple(arguments))
            self._learner, self._failed = learner, False

    def change(self, name: str, *arguments: Any) -> Any:
        """Call a method that changes the learner, and return its result. After an exception, nothing has changed."""
        learner = self.learner
        if getattr(learner, "atomic", False):
            return self._pass(learner, name, arguments)
        if self._kept is None:  # the learner was atomic so far
            if name == "learn_one":  # this call may come without the lock of the model
                return Outcome.UNSUPPORTED
            self._begin(dump_unencoded(learner))
        began = perf_counter()
        try:
            answer = _call(learner, name, arguments)
            if name == "learn_one":
                if answer >= Outcome.DUE:  # the row was not learned
                    return answer
                name, arguments = "learn", tuple(np.array(one, dtype=np.float64, ndmin=2) for one in arguments)
            self._seconds += perf_counter() - began
            self._rows += len(arguments[0]) if arguments else 1
            many = self._rows >= self._apart and self._rows >= learner.size // 4
            if not ((many or self._seconds > max(LONG, RARE * self._dumping)) and self._keep()):
                assert self._kept is not None
                self._kept[1].append((name, *map(_copied, arguments)))
            return answer
        except BaseException:
            self._failed = True
            _ = self.learner
            raise

    def _pass(self, learner: Learner, name: str, arguments: tuple[Any, ...]) -> Any:
        """Call a method of an atomic learner, and return its result."""
        self._kept = None
        vars(self).pop("learn_one", None)
        vars(self).pop("predict_one", None)
        answer = _call(learner, name, arguments)
        if name in ("learn", "learn_one", "run"):
            fast = ("learn_one", "predict_one")  # call them directly
            vars(self).update(
                {one: getattr(learner, one) for one in fast if hasattr(learner, one)}
            )  # call them directly
        return answer

    def _keep(self) -> bool:
        """Dump the learner. Return False if this fails because the learner has diverged."""
        began = perf_counter()
        try:
            self._begin(dump_unencoded(self._learner), perf_counter() - began)
        except ValueError:
            return False
        return True

    def learn(self, X: Array, Y: Array) -> None:
        if len(X) == 1:
            self.change("learn", X, Y)
        else:
            for part in self._cut("learn", len(X)):
                self.change("learn", X[part], Y[part])

    def run(self, X: Array, Y: Array) -> tuple[Predictions, Sizes]:
        parts = [self.change("run", X[part], Y[part]) for part in self._cut("run", len(X))]
        if len(parts) == 1:
            return parts[0]
        return Predictions.joined([part for part, _ in parts]), np.concatenate([size for _, size in parts])

    def _cut(self, name: str, rows: int) -> Iterator[slice]:
        """Yield pieces of a call that each take a short time, so that a piece can be repeated quickly."""
        start = 0
        while start < rows:
            piece, began = self._pieces[name], perf_counter()
            part = slice(start, min(rows, start + max(piece, getattr(self.learner, "together", 0))))
            yield part
            start, took = part.stop, perf_counter() - began
            if took > SLOW:
                self._pieces[name] = max(min(piece, FEWEST), piece // 2)
            elif took < QUICK and part.stop - part.start >= piece:
                self._pieces[name] = 2 * piece

    def learn_one(self, x: object, y: object) -> int:
        outcome: int = self.change("learn_one", x, y)
        return outcome

    def skip(self, X: Array, Y: Array | None = None) -> Predictions:
        return self.change("skip", X, Y)

    def begin_series(self) -> None:
        self.change("begin_series")

    def predict(self, X: Array) -> Predictions:
        return self.learner.predict(X)

    def predict_one(self, x: object) -> tuple[float, float] | None:
        return predict_one(self.learner, x)

    def interval_one(self, x: object, level: float) -> tuple[float, float, float, float] | None:
        return interval_one(self.learner, x, level)

    def dump(self) -> Contents:
        return dump(self.learner)

    def dump_compact(self) -> Contents:
        return dump(self.learner, compact=True)

    def load(self, contents: Contents) -> None:
        learner = self._start()
        load(learner, contents)
        vars(self).pop("learn_one", None)
        vars(self).pop("predict_one", None)
        self._learner, self._failed = learner, False
        self._begin(contents)


def _call(learner: Learner, name: str, arguments: tuple[Any, ...]) -> Any:
    """Call a method of a learner and return its result. Optional methods have defaults; see `onlinegp.learner`."""
    optional: dict[str, Callable[..., Any]] = {"skip": skip, "begin_series": begin_series, "learn_one": learn_one}
    return optional[name](learner, *arguments) if name in optional else getattr(learner, name)(*arguments)


def _copied(argument: Any) -> Any:
    """Return a copy of an array, which later changes by the caller do not affect."""
    return argument.copy() if isinstance(argument, np.ndarray) else argument
