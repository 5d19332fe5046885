"""What runs: a learner holds what was learned, learns rows in place and predicts rows. Engines are learners."""

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
    """What a model needs to run everywhere: in `run`, files, fleets, River and the command line.

    Rows arrive checked: X (n, features) and Y (n, outputs), finite float64. `RowLearner` has what can be derived.

    Attributes
    ----------
    features, outputs : int
    size : the number of centers, or of whatever grows with the data; zero if nothing does
    seen : the number of rows learned
    atomic : bool, optional
        Whether a call that is interrupted stops between two rows, as those of compiled learners do. Calls of others are
        taken back: see `onlinegp.models.undo`.
    together : int, optional
        How many of the next rows to learn in one call, if there are as many
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
        """Predict each row, then learn it; return what was predicted, and the size after each row."""
        ...

    def predict(self, X: Array) -> Predictions:
        """Return the distributions of y at the rows of X; nothing changes."""
        ...

    def skip(self, X: Array, Y: Array | None = None) -> Predictions:
        """Predict rows in order, without learning them, and go on behind them: `predict`, for most.

        Y holds the observed values, None if they are not known: a model with lags then uses its predictions instead.
        """
        ...

    def begin_series(self) -> None:
        """Discard past values: the next row does not follow the last. Most models have none and do nothing."""

    def dump(self) -> Contents:
        """Return all that the next step needs, by name: arrays, numbers and strings."""
        ...

    def dump_compact(self) -> Contents:
        """Return less than `dump`, which `load` takes as well: what can be made again is left out, and rounded."""
        ...

    def load(self, contents: Contents) -> None:
        """Continue from what `dump` returned, bit for bit; refuse what does not fit with a ValueError."""
        ...

    def learn_one(self, x: object, y: object) -> bool | None:
        """Learn one plain sample at once, if that can be: return whether its prediction made sense, or None."""
        ...

    def predict_one(self, x: object) -> tuple[float, float] | None:
        """Return mean and standard deviation of one output at one plain sample at once, or None."""
        ...


class RowLearner(WithFields, ABC):
    """A learner that declares its `fields`, and says how to `learn` and `predict`; the rest follows, row by row."""

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
    """Predict each row, then learn it: what `run` means."""
    said, size = [], np.empty(len(X), dtype=np.int64)
    for i in range(len(X)):
        row = slice(i, i + 1)
        said.append(learner.predict(X[row]))
        learner.learn(X[row], Y[row])
        size[i] = learner.size
    return Predictions.joined(said), size
