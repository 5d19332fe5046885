"""Learners of one row after the other: look at x, then correct by y; and a standard deviation from errors of late."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Protocol

import numpy as np

from onlinegp.checks import Array, stored_array, stored_names, stored_number
from onlinegp.engine.tracking import fading_scales
from onlinegp.learner import Contents, RowLearner, Sizes, inside, nested
from onlinegp.predictions import Gaussian
from onlinegp.recipes.state import MOST_SEEN

REMEMBERED = 100.0  # rows, about: the errors that the standard deviation is that of
LEAST = 1e-300  # of a mean square: a standard deviation is never zero


class Part(Protocol):
    """Something that a learner holds and that can be written down."""

    def dump(self) -> Contents: ...
    def load(self, contents: Contents) -> None: ...


class StepLearner(RowLearner):
    """A learner that says how to `look` and how to `correct`; the loops over rows are here.

    Attributes
    ----------
    parts : dict from str to Part
        All that it keeps from one row to the next, beside the number of rows.
    """

    parts: dict[str, Part]

    @abstractmethod
    def look(self, x: Array) -> tuple[Array, Array | float, Any]:
        """Return the mean (p,) of y at x (d,), its standard deviation, and what `correct` needs to know of x.

        Nothing changes; what is returned may be overwritten by the next call.
        """

    @abstractmethod
    def correct(self, x: Array, y: Array, e: Array, seen: Any) -> None:
        """Learn y (p,) at x (d,), with its error e = y - mean (p,), given what `look` has just seen of x."""

    def learn(self, X: Array, Y: Array) -> None:
        with np.errstate(all="ignore"):  # what breaks down shows in what it predicts, and is reported there
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

    def dump(self) -> Contents:
        stored: Contents = {"seen": self.seen}
        for name, part in self.parts.items():
            stored |= nested(name, part.dump())
        return stored

    def load(self, contents: Contents) -> None:
        stored = {name: inside(name, contents) for name in self.parts}
        known = [f"{name}.{key}" for name, held in stored.items() for key in held]
        stored_names(contents, ("seen", *known), type(self).__name__)
        seen = stored_number("seen", contents["seen"], int)
        for name, part in self.parts.items():
            part.load(stored[name])
        self.seen = seen


class Values:
    """Arrays that keep their shapes, by name: a part that is no more than its numbers. They are changed in place."""

    def __init__(self, **arrays: Array) -> None:
        self._arrays = arrays

    def __getitem__(self, name: str) -> Array:
        return self._arrays[name]

    def dump(self) -> Contents:
        return {name: array.copy() for name, array in self._arrays.items()}

    def load(self, contents: Contents) -> None:
        stored_names(contents, self._arrays, "the values")
        stored = {name: stored_array(name, contents[name], array.shape) for name, array in self._arrays.items()}
        for name, array in stored.items():
            self._arrays[name][...] = array


class ErrorScale:
    """The root mean square of the errors so far, those of about the last hundred rows more than the others.

        std = sqrt(squares / count),   squares <- keep squares + e^2,   count <- keep count + 1

    The standard deviation of models without a variance of their own. Before there are errors, `first` counts as one.
    """

    def __init__(self, outputs: int, first: float = 1.0) -> None:
        self.keep = 1.0 - 1.0 / REMEMBERED
        self.squares, self.count = np.full(outputs, first * first), 1.0
        self.std = np.full(outputs, first)

    def add(self, e: Array) -> None:
        """Learn the errors (outputs,) of a row."""
        self.squares *= self.keep
        self.squares += np.clip(e * e, LEAST, 1.0 / LEAST)
        self.count = self.keep * self.count + 1.0
        self._conclude()

    def counted(self, count: float) -> None:
        """Go on after a compiled loop has added errors to `squares`, and counted them."""
        np.maximum(self.squares, LEAST, out=self.squares)
        self.count = count
        self._conclude()

    def along(self, E: Array) -> Array:
        """Learn the errors of rows (n, outputs); return the standard deviations before each of them, (n, outputs)."""
        count = np.full(E.shape[1], self.count)
        before = fading_scales(E * E, 0.0, self.keep, self.squares, count, far=np.inf, tiny=LEAST)
        self.count = float(count[0])
        self._conclude()
        return np.sqrt(before)

    def _conclude(self) -> None:
        np.divide(self.squares, self.count, out=self.std)
        np.sqrt(self.std, out=self.std)

    def dump(self) -> Contents:
        return {"squares": self.squares.copy(), "count": self.count}

    def load(self, contents: Contents) -> None:
        stored_names(contents, ("squares", "count"), "the scale of errors")
        squares = stored_array("squares", contents["squares"], self.squares.shape)
        count = stored_number("count", contents["count"], float)
        if (squares < LEAST).any() or not 1.0 <= count < REMEMBERED + 1.0:
            raise ValueError(f"squares must be positive, and count at least 1 and about 100 at most, got {count}.")
        self.squares, self.count = squares.copy(), count
        self._conclude()
