"""The protocol of learners. A learner holds what was learned, learns rows in place and predicts rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from onlinegp.checks import Array
from onlinegp.predictions import Predictions
from onlinegp.state import Contents, WithFields

Sizes = NDArray[np.int64]


class Learner(Protocol):
    """The interface that `run`, files, fleets, River and the command line use.

    Rows are already checked: X (n, features) and Y (n, outputs), finite float64. `RowLearner` has default methods.

    Attributes
    ----------
    features, outputs : int
    size : the number of centers, or of anything else that grows with the data; zero if nothing does
    seen : the number of rows learned
    atomic : bool, optional
        Whether an interrupted call stops between two rows, as in compiled learners. Calls of other learners are undone:
        see `onlinegp.models.undo`.
    together : int, optional
        The number of next rows to learn in one call, if there are that many
    """

    @property
    def features(self) -> int: ...
    @property
    def outputs(self) -> int: ...
    @property
    def size(self) -> int: ...
    @property
    def seen(self) -> int: ...

    def learn(self, X: Array, Y: Array) -> None:
        """Learn the rows, in order and in place."""

    def run(self, X: Array, Y: Array) -> tuple[Predictions, Sizes]:
        """Predict each row, then learn it. Return the predictions, and the size after each row."""
        ...

    def predict(self, X: Array) -> Predictions:
        """Return the distributions of y at the rows of X. The learner does not change."""
        ...

    def skip(self, X: Array, Y: Array | None = None) -> Predictions:
        """Predict rows in order without learning them, and continue after them. For most learners this is `predict`.

        Y has the observed values, or None if they are not known: a model with lags then uses its predictions instead.
        """
        ...

    def begin_series(self) -> None:
        """Discard past values: the next row does not follow the last. Most models have none and do nothing."""

    def dump(self) -> Contents:
        """Return everything that the next step needs, by name: arrays, numbers and strings."""
        ...

    def dump_compact(self) -> Contents:
        """Return a smaller, rounded version of `dump`, without what can be computed again. `load` accepts it too."""
        ...

    def load(self, contents: Contents) -> None:
        """Continue from the contents that `dump` returned, bit for bit. Raise a ValueError if they do not fit."""
        ...

    def learn_one(self, x: object, y: object) -> bool | None:
        """Fast path for one sample. Return True, False (run the health check), or None (not supported)."""
        ...

    def predict_one(self, x: object) -> tuple[float, float] | None:
        """Fast path for one sample. Return mean and standard deviation of one output, or None (not supported)."""
        ...


class RowLearner(WithFields, ABC):
    """A learner that declares its `fields` and defines `learn` and `predict`. The other methods follow, row by row."""

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

    def skip(self, X: Array, Y: Array | None = None) -> Predictions:
        return self.predict(X)

    def begin_series(self) -> None:
        pass

    def learn_one(self, x: object, y: object) -> bool | None:
        return None

    def predict_one(self, x: object) -> tuple[float, float] | None:
        return None


def run_by_row(learner: Learner, X: Array, Y: Array) -> tuple[Predictions, Sizes]:
    """Predict each row, then learn it. This is the definition of `run`."""
    predictions, size = [], np.empty(len(X), dtype=np.int64)
    for i in range(len(X)):
        row = slice(i, i + 1)
        predictions.append(learner.predict(X[row]))
        learner.learn(X[row], Y[row])
        size[i] = learner.size
    return Predictions.joined(predictions), size
