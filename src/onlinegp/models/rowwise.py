"""Base class of learners that process one row at a time, and the standard deviation of their errors."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from onlinegp.checks import Array
from onlinegp.learner import Sizes
from onlinegp.models.error_tracking import fading_scales
from onlinegp.predictions import Gaussian
from onlinegp.recipes.state import MOST_SEEN
from onlinegp.state import WithFields, array, number

REMEMBERED = 100.0  # the standard deviation averages over about this number of rows
LEAST = 1e-300  # the smallest mean square, so that a standard deviation is never zero
SPACING = 2.0**-50  # values of y count as equal if they differ by a smaller share
SHARE_OF_A_CHANGE = 0.1  # its square is 1 / REMEMBERED


class StepLearner(WithFields, ABC):
    """A learner that defines `look` and `correct` for one row. The loops over rows are here."""

    features: int
    outputs: int
    size: int = 0
    seen: int = 0

    @abstractmethod
    def look(self, x: Array) -> tuple[Array, Array | float, Any]:
        """Return the mean (p,) of y at x (d,), its standard deviation, and intermediate results for `correct`.

        The learner does not change. The next call may overwrite the intermediate results.
        """

    @abstractmethod
    def correct(self, x: Array, y: Array, e: Array, seen: Any) -> None:
        """Learn y (p,) at x (d,), with the error e = y - mean (p,) and the intermediate results of `look`."""

    def learn(self, X: Array, Y: Array) -> None:
        with np.errstate(all="ignore"):  # a diverged model is detected from its predictions
            for x, y in zip(np.ascontiguousarray(X), Y, strict=True):
                mean, _, seen = self.look(x)
                self.correct(x, y, y - mean, seen)
                self.seen = min(self.seen + 1, MOST_SEEN)

    def run(self, X: Array, Y: Array) -> tuple[Gaussian, Sizes]:
        X, mean, std, size = np.ascontiguousarray(X), np.empty(Y.shape), np.empty(Y.shape), np.empty(len(Y), np.int64)
        with np.errstate(all="ignore"):
            for i in range(len(X)):
                mean[i], std[i], seen = self.look(X[i])
                self.correct(X[i], Y[i], Y[i] - mean[i], seen)
                self.seen = min(self.seen + 1, MOST_SEEN)
                size[i] = self.size
        return Gaussian(mean, std), size

    def predict(self, X: Array) -> Gaussian:
        mean, std = np.empty((len(X), self.outputs)), np.empty((len(X), self.outputs))
        with np.errstate(all="ignore"):
            for i, x in enumerate(np.ascontiguousarray(X)):
                mean[i], std[i], _ = self.look(x)
        return Gaussian(mean, std)


class ErrorScale(WithFields):
    """The root mean square of the errors of about the last hundred rows.

        std = sqrt(squares / count),   squares <- keep squares + max(|e|, floor)^2,   count <- keep count + 1

    This is the standard deviation of models that define no variance. Before the first row, `first` counts as an error.

    floor = max(resolution / 10, 2^-50 |y|) keeps the standard deviation positive while y is constant. The resolution is
    the smallest change of y between two rows so far, and 2^-50 |y| is the precision of y. An error of resolution / 10
    in each row has the same effect as one change in a hundred rows.
    """

    fields = {
        "squares": array("outputs", least=LEAST),
        "last": array("outputs"),
        "resolution": array("outputs", least=0.0),  # zero: y has not changed yet
        "count": number(least=1.0, most=REMEMBERED + 1.0),
    }

    def __init__(self, outputs: int, first: float = 1.0) -> None:
        self.outputs, self.keep, self.count = outputs, 1.0 - 1.0 / REMEMBERED, 1.0
        self.squares, self.last, self.resolution = np.full(outputs, first * first), np.zeros(outputs), np.zeros(outputs)
        self._keep_together()
        self.std = np.full(outputs, first)

    def _keep_together(self) -> None:
        """Store the arrays as rows of one array, for the compiled loops."""
        self.numbers = np.array([self.squares, self.last, self.resolution])
        self.squares, self.last, self.resolution = self.numbers

    @property
    def vector(self) -> Array:
        """The state as a vector for compiled learners: three rows of numbers, then the count."""
        return np.append(self.numbers, self.count)

    @vector.setter
    def vector(self, vector: Array) -> None:
        self.numbers[...] = vector[:-1].reshape(self.numbers.shape)
        self.counted(float(vector[-1]))

    def add(self, e: Array, y: Array, seen: int) -> None:
        """Learn the errors e (outputs,) of row number `seen`, with the targets y (outputs,)."""
        size = np.maximum(np.abs(e), self._floors(y[None, :], seen)[0])
        self.squares *= self.keep
        self.squares += np.clip(size * size, LEAST, 1.0 / LEAST)
        self.counted(self.keep * self.count + 1.0)

    def update(self, E: Array, Y: Array, seen: int) -> Array:
        """Learn the errors E of rows with targets Y, (n, outputs). Return the standard deviations before each row."""
        size, count = np.maximum(np.abs(E), self._floors(Y, seen)), np.full(E.shape[1], self.count)
        before = fading_scales(size * size, 0.0, self.keep, self.squares, count, far=np.inf, tiny=LEAST)
        self.counted(float(count[0]))
        return np.sqrt(before)

    def counted(self, count: float) -> None:
        """Set the count after errors were added to `squares`, and update the standard deviation."""
        self.count = count
        np.divide(self.squares, self.count, out=self.std)
        np.sqrt(self.std, out=self.std)

    def _floors(self, Y: Array, seen: int) -> Array:
        """Return the floors of rows Y (n, outputs), each from the changes up to this row, and store the last row."""
        change, spacing = np.abs(np.diff(Y, axis=0, prepend=self.last[None, :])), SPACING * np.abs(Y)
        change[change <= spacing] = np.inf  # ignore rounding errors
        if not seen:
            change[0] = np.inf
        known = np.where(self.resolution > 0.0, self.resolution, np.inf)
        finest = np.minimum(np.minimum.accumulate(change, axis=0), known)
        finest[np.isinf(finest)] = 0.0
        self.last[:], self.resolution[:] = Y[-1], finest[-1]
        return np.maximum(SHARE_OF_A_CHANGE * finest, spacing)

    def rebuild(self) -> None:
        self._keep_together()
        self.counted(self.count)
