"""The learner of `Auto` and `Tuned`: first mean and spread, then a model chosen from the rows so far."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import numpy as np
import numpy.ma
from numpy.typing import NDArray

from onlinegp.auto.composed import Candidate, Chooser, Composed, Member
from onlinegp.auto.members import Progress
from onlinegp.background import prepare
from onlinegp.checks import Array
from onlinegp.learner import Learner, Outcome, Sizes, begin_series, interval_one, learn_one, predict_one, skip
from onlinegp.models.combined.base import OuterRegressor
from onlinegp.models.combined.standardize import like_so_far, moments
from onlinegp.models.description import describe, rebuild
from onlinegp.predictions import Gaussian, Predictions
from onlinegp.progress import ShareBar
from onlinegp.state import (
    Described,
    Values,
    WithFields,
    array,
    described,
    described_from_bytes,
    dump,
    integer,
    model,
    number,
    points,
)

FEWEST, MOST = 5, 10_000  # limits of the number of rows to tune on
EARLY = (5, 10, 20, 40)  # numbers of rows after which a model is chosen without tuning
_TUNING: ContextVar[Progress | None] = ContextVar("tuning", default=None)  # receives the finished share of a tuning


@contextmanager
def watched(progress: Progress) -> Iterator[None]:
    """In this context, call `progress` with the finished share of each tuning."""
    token = _TUNING.set(progress)
    try:
        yield
    finally:
        _TUNING.reset(token)


class AutoLearner(WithFields):
    """The rows to tune on, while they are needed, and the learner chosen from them, if there is one.

    Nothing can be tuned on a constant target: if a tuning is due while the target is constant, counting starts again.
    """

    fields = {
        "seen": integer(),
        "constant": integer(),
        "unexplained": number(),
        "x": points("kept", attribute="_X"),
        "y": array("kept", "outputs", attribute="_Y"),
        "chosen": model(attribute="_chosen"),
    }
    lengths = {"kept": None}

    def __init__(
        self, parts: Chooser, features: int, outputs: int, rows: int, earliest: int, delay: float = 0.0
    ) -> None:
        self.features, self.outputs, self.rows = features, outputs, rows
        doubled = (earliest * 2**k for k in range(rows.bit_length()))
        self.due = sorted({rows, *(n for n in doubled if n < rows and n + int(delay * n) <= rows)})
        # {row from which a tuning is used: its number of rows}; the last tuning takes longest, so its delay is doubled
        self.adoptions = {n + int((2.0 if n == rows else 1.0) * delay * n): n for n in self.due}
        self._tuned = min(self.adoptions)
        if delay:
            self.adoptions |= {n: n for n in EARLY if n < earliest}
        self._last = max(self.adoptions)
        self._delay = delay
        self._candidate: Candidate | None = None
        # Number of rows; whether tuning has ended, and inner.seen at that time
        self._seen, self._done, self._at = 0, False, 0
        self.constant = 0  # number of rows that do not count, because the target was constant
        self._composed: Composed | None = None
        self._described: tuple[OuterRegressor, str] | None = None  # the chosen model and its description
        self._parts = parts
        self._X, self._Y = np.empty((0, features)), np.empty((0, outputs))  # the last rows that are needed

    @property
    def size(self) -> int:
        return 0 if self.inner is None else self.inner.size

    @property
    def seen(self) -> int:
        return self._seen + (self.inner.seen - self._at if self._done and self.inner is not None else 0)

    @property
    def atomic(self) -> bool:
        """Whether a call that fails has changed all layers or none, because only the chosen model processes it."""
        return self._done and getattr(self.inner, "atomic", False)

    @property
    def together(self) -> int:
        """The number of rows until the last tuning: a call with all of them skips the earlier tunings."""
        return max(0, self._last - self._counted())

    @property
    def inner(self) -> Learner | None:
        return None if self._composed is None else self._composed.inner

    @property
    def chosen(self) -> OuterRegressor | None:
        return None if self._composed is None else self._composed.chosen

    @property
    def unexplained(self) -> float:
        return 1.0 if self._composed is None else self._composed.unexplained

    @property
    def tuned_rows(self) -> int:
        """The number of rows of the tuning in use; 0 before the first tuning."""
        return max((n for row, n in self.adoptions.items() if row <= self._counted() and n in self.due), default=0)

    def weights(self) -> dict[str, float]:
        """Return the current weights of the members by name; empty before there are members."""
        return {one.name: one.weight for one in self.members()}

    def changes(self) -> list[tuple[int, str]]:
        """Return the rows where changes began, and their kinds."""
        mixture = None if self._composed is None else self._composed.mixture
        if mixture is None or mixture.detector is None:
            return []
        before = self.seen - mixture.seen  # rows before the stored rows of the last tuning
        return [(before + row, kind) for row, kind in mixture.detector.changes()]

    def members(self) -> list[Member]:
        """Return the members, if there are any."""
        return [] if self._composed is None else self._composed.members()

    @property
    def until_tuning(self) -> float:
        """The number of rows until the next tuning; infinity without tuning."""
        return np.inf if self._final() else self._together(self.rows)

    def learn(self, X: Array, Y: Array) -> None:
        start = 0
        while start < len(X):
            part = slice(start, start + self._together(len(X) - start))
            end = self._counted() + len(X) - start  # the last of these rows
            if self.inner is not None and not self._replaced(self._counted(), end):
                self.inner.learn(X[part], Y[part])
            self._take(X[part], Y[part], end)
            start = part.stop

    def run(self, X: Array, Y: Array) -> tuple[Predictions, Sizes]:
        predicted, sizes, start = [], [], 0
        while start < len(X):
            part = slice(start, start + self._together(len(X) - start))
            predictions, size = self._run(X[part], Y[part])
            self._take(X[part], Y[part])
            size[-1] = self.size
            predicted.append(predictions)
            sizes.append(size)
            start = part.stop
        return Predictions.joined(predicted), np.concatenate(sizes)

    def predict(self, X: Array) -> Predictions:
        return self._so_far(len(X), self._Y) if self.inner is None else self.inner.predict(X)

    def skip(self, X: Array, Y: Array | None = None) -> Predictions:
        return self._so_far(len(X), self._Y) if self.inner is None else skip(self.inner, X, Y)

    def begin_series(self) -> None:
        if self.inner is not None:
            begin_series(self.inner)

    def learn_one(self, x: object, y: object) -> int:
        return learn_one(self.inner, x, y) if self._done and self.inner is not None else Outcome.DUE

    def predict_one(self, x: object) -> tuple[float, float] | None:
        return None if self.inner is None else predict_one(self.inner, x)

    def interval_one(self, x: object, level: float) -> tuple[float, float, float, float] | None:
        return None if self.inner is None else interval_one(self.inner, x, level)

    # Rows that are learned in one call

    def _counted(self) -> int:
        return self.seen - self.constant

    def _final(self) -> bool:
        return self._done or self._counted() >= self._last

    def _replaced(self, after: int, end: int) -> bool:
        """Whether a new tuning is used from a row in (after, end]."""
        return any(after < row <= end for row in self.adoptions)

    def _together(self, n: int) -> int:
        """Return how many of the next n rows come before a tuning is due, at least one."""
        if self._final():
            return n
        counted = self._counted()
        return min(n, *(row - counted for row in (*self.due, *self.adoptions) if row > counted))

    def _run(self, X: Array, Y: Array) -> tuple[Predictions, Sizes]:
        if self.inner is not None:
            predicted, size = self.inner.run(X, Y)
            return predicted, size.copy()
        before = np.concatenate([self._Y, Y])
        ends = range(len(self._Y), len(before))
        parts = [self._so_far(1, before[max(0, end - self._last) : end]) for end in ends]  # limited to the stored rows
        return Predictions.joined(parts), np.zeros(len(X), dtype=np.int64)

    def _so_far(self, rows: int, Y: Array) -> Predictions:
        shape = rows, self.outputs
        return like_so_far(Gaussian(np.zeros(shape), np.ones(shape)), Y)

    def _take(self, X: Array, Y: Array, end: int = 0) -> None:
        """Count and store learned rows, and tune if a tuning is due.

        Until row `end` nothing is predicted, so only the last tuning before this row matters.
        """
        if self._done:
            return
        if self._delay and self._counted() < self.due[0]:
            prepare(type(self._parts).__module__)
        before = self._X, self._Y, self._seen, self.constant
        try:
            self._X = np.concatenate([self._X, X])[-self._last :]
            self._Y = np.concatenate([self._Y, Y])[-self._last :]
            self._seen += len(X)
            self._attend(end)
        except BaseException:  # the tuning stays due
            self._X, self._Y, self._seen, self.constant = before
            raise

    def _attend(self, end: int) -> None:
        """Start or use the tunings that are due after this number of rows."""
        counted = self._counted()
        if counted in self.due and not moments(self._tuning_rows(counted)[1])[2].any():
            self.constant, self._candidate = self._seen, None
            return
        if counted in self.adoptions and not self._replaced(counted, end):
            self._adopt(self.adoptions[counted])
        if counted in self.due and counted not in self.adoptions:
            if not self._replaced(self._adopted_at(counted), end):
                self._candidate = self._new_candidate(counted)
        elif self._candidate is not None:
            tuned = self._candidate.rows
            X, Y = self._since(tuned)
            self._candidate.catch_up(X, Y, max(1, self._adopted_at(tuned) - counted))

    def _adopted_at(self, n: int) -> int:
        """Return the row from which a tuning on n rows is used."""
        return next(row for row, tuned in self.adoptions.items() if tuned == n)

    def _tuning_rows(self, n: int) -> tuple[Array, Array]:
        """Return the rows of a tuning after n counted rows."""
        end = len(self._Y) - (self._counted() - n)
        part = slice(max(0, end - self.rows), end)
        return self._X[part], self._Y[part]

    def _since(self, n: int) -> tuple[Array, Array]:
        """Return the rows after the first n counted rows."""
        part = slice(len(self._Y) - (self._counted() - n), None)
        return self._X[part], self._Y[part]

    def _new_candidate(self, n: int, *, behind: bool = True) -> Candidate:
        last = n == self.rows
        tune = self._parts.compose if last or not self._delay else self._parts.compose_quickly
        return Candidate(tune, self._parts, *self._tuning_rows(n), n, last=last, behind=behind)

    def _adopt(self, n: int) -> None:
        """Continue with the model that was tuned on the first n rows and has learned all later rows."""
        if n not in self.due:
            self._begin_untuned()
            return
        candidate = self._candidate
        if candidate is None or candidate.rows != n:
            candidate = self._new_candidate(n, behind=False)
        self._composed = candidate.found(*self._since(n), _TUNING.get() or ShareBar())
        self._candidate = None
        if self._final():
            self._X, self._Y = self._X[:0], self._Y[:0]
            self._at, self._done = self._composed.inner.seen, True

    def _begin_untuned(self) -> None:
        """Continue with untuned members until the first tuning is used."""
        if moments(self._Y)[2].any():
            chosen = self._parts.untuned(self._X, self._Y)
            self._composed = Composed(self._parts, chosen, self.features, self.outputs, last=False)
            self._composed.repeat(self._X, self._Y)

    # Files

    @property
    def _chosen(self) -> Described | NDArray[np.uint8]:
        """The description and the contents of the chosen model. Empty before a model is chosen."""
        if self.chosen is None or self.inner is None:
            return np.empty(0, dtype=np.uint8)
        if self._described is None or self._described[0] is not self.chosen:
            self._described = self.chosen, json.dumps(describe(self.chosen))
        about = {"features": self.features, "outputs": self.outputs, "single": self.outputs == 1, "largest": 0.0}
        return described(self._described[1], self.inner, about | {"learned": dump(self.inner)})

    def check(self, values: Values) -> None:
        seen, counted, kept = values["seen"], values["seen"] - values["constant"], len(values["x"])
        chosen = values["chosen"] if isinstance(values["chosen"], Described) else values["chosen"].tobytes()
        if counted < 0:
            raise ValueError(f"constant must be at most seen, {seen}, got {values['constant']}.")
        expected = 0 if counted >= self._last else min(seen, self._last)
        if kept != expected:
            raise ValueError(f"x must have {expected} rows after {seen} were learned, got {kept}.")
        if (chosen and counted < min(self.adoptions)) or (not chosen and counted >= self._tuned):
            raise ValueError("chosen must be empty before the first tuning, and must not be empty after it.")
        values["inner"] = self._started(chosen, last=counted >= self._last) if chosen else None

    def _started(self, data: bytes | Described, *, last: bool) -> Composed:
        """Return the chosen model, with a learner that continues from its contents."""
        description, contents = described_from_bytes(data)
        chosen = rebuild(json.loads(description))
        composed = Composed(self._parts, chosen, self.features, self.outputs, last=last)  # type: ignore[arg-type]  # it checks
        composed.load(contents["learned"])
        return composed

    def assign(self, values: Values) -> None:
        self._seen, self.constant = values["seen"], values["constant"]
        self._X, self._Y = values["x"].copy(), values["y"].copy()
        self._composed = values["inner"]
        if self._composed is not None:
            self._composed.unexplained = values["unexplained"]
        self._done, self._candidate = False, None
        under_way = [n for row, n in sorted(self.adoptions.items()) if n <= self._counted() < row]
        if under_way:
            self._candidate = self._new_candidate(under_way[-1])
        if self._final() and self.inner is not None:
            self._at, self._done = self.inner.seen, True
