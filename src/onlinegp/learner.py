"""The protocol of learners. A learner contains what was learned, learns rows in place and predicts rows.

For optional methods there are functions, which call the method if the learner has it, and else use a default.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from enum import IntEnum
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from onlinegp.checks import Array
from onlinegp.predictions import Predictions
from onlinegp.state import Fields, WithFields

Sizes = NDArray[np.int64]


class Learner(Protocol):
    """The interface that `run`, files, fleets, River and the command line use.

    Rows are already checked: X (n, features) and Y (n, outputs), finite float64. `RowLearner` has default methods.

    Attributes
    ----------
    features, outputs : int
    size : the number of centers or of other items that grow with the data; zero if nothing grows
    seen : the number of rows learned
    atomic : bool, optional
        Whether an interrupted call stops between two rows, as in compiled learners. Calls of other learners are undone:
        see `onlinegp.models.undo`.
    together : int, optional
        The number of next rows that are best learned in one call
    """

    @property
    def features(self) -> int: ...
    @property
    def outputs(self) -> int: ...
    @property
    def size(self) -> int: ...
    @property
    def seen(self) -> int: ...
    @property
    def fields(self) -> Fields:
        """Everything that the next row needs, by name, for files, copies, stores and fleets."""
        ...

    def learn(self, X: Array, Y: Array) -> None:
        """Learn the rows, in order and in place."""

    def run(self, X: Array, Y: Array) -> tuple[Predictions, Sizes]:
        """Predict each row, then learn it. Return the predictions, and the size after each row."""
        ...

    def predict(self, X: Array) -> Predictions:
        """Return the distributions of y at the rows of X. The learner does not change."""
        ...


class Series(Protocol):
    """Additional methods of learners that use past values; see `skip` and `begin_series` below."""

    def skip(self, X: Array, Y: Array | None = None) -> Predictions: ...
    def begin_series(self) -> None: ...


class Outcome(IntEnum):
    """The result of `learn_one`, the fast path of a learner for one sample. The native module has the same numbers.

    OK : the sample was learned
    CHECK : the sample was learned, and the model should be checked
    DUE : the sample was not learned, because other work is due first, such as a tuning; use the general path
    UNSUPPORTED : the sample was not learned; use the general path
    """

    OK = 0
    CHECK = 1
    DUE = 2
    UNSUPPORTED = 3


OK, CHECK, UNSUPPORTED = int(Outcome.OK), int(Outcome.CHECK), int(Outcome.UNSUPPORTED)  # an enum is slow to look up


class RowLearner(WithFields, ABC):
    """Base class of learners that declare `fields` and define `learn` and `predict`. Other methods have defaults."""

    features: int
    outputs: int
    size: int = 0
    seen: int = 0

    @abstractmethod
    def learn(self, X: Array, Y: Array) -> None: ...

    @abstractmethod
    def predict(self, X: Array) -> Predictions: ...

    def run(self, X: Array, Y: Array) -> tuple[Predictions, Sizes]:
        return run_by_row(self, X, Y)


def skip(learner: Learner, X: Array, Y: Array | None = None) -> Predictions:
    """Predict rows in order without learning them, and continue after them. For most learners this is `predict`.

    Y contains the observed values. If Y is None, models with lags use their predictions instead.
    """
    own = getattr(learner, "skip", None)
    predictions: Predictions = learner.predict(X) if own is None else own(X, Y)
    return predictions


def begin_series(learner: Learner) -> None:
    """Start a new series: discard past values. By default this visits the inner learners."""
    own = getattr(learner, "begin_series", None)
    if own is not None:
        own()
        return
    for inside in getattr(learner, "holds", list)():
        begin_series(inside)


def learn_one(learner: Learner, x: object, y: object) -> int:
    """Fast path for one sample. Return an `Outcome`."""
    own = getattr(learner, "learn_one", None)
    return Outcome.UNSUPPORTED if own is None else own(x, y)


def predict_one(learner: Learner, x: object) -> tuple[float, float] | None:
    """Fast path for one sample. Return mean and standard deviation of one output, or None if not supported."""
    own = getattr(learner, "predict_one", None)
    return None if own is None else own(x)


def interval_one(learner: Learner, x: object, level: float) -> tuple[float, float, float, float] | None:
    """Fast path for one sample. Return mean, standard deviation and the ends of the interval, or None."""
    own = getattr(learner, "interval_one", None)
    return None if own is None else own(x, level)


def run_by_row(learner: Learner, X: Array, Y: Array) -> tuple[Predictions, Sizes]:
    """Predict each row, then learn it. This is the reference implementation of `run`."""
    predictions, size = [], np.empty(len(X), dtype=np.int64)
    for i in range(len(X)):
        row = slice(i, i + 1)
        predictions.append(learner.predict(X[row]))
        learner.learn(X[row], Y[row])
        size[i] = learner.size
    return Predictions.joined(predictions), size
