"""The results of a detector: predictions, and how unusual each row was."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from onlinegp.checks import Array
from onlinegp.models.alarms.events import Event
from onlinegp.predictions import Predictions


@dataclass(frozen=True, eq=False)
class Watched(Predictions):
    """Predictions of rows, with the results of a detector for each row.

    Attributes
    ----------
    predicted : the predictions, whose distributions these are
    odds : (n,) or (n, outputs), the probability of a row that is at least this unusual; 1 for most rows
    score : -log10 of the rate of such events in rows that open an event or exceed its peak; 0 elsewhere
    event : the number of the open event, or 0
    changes : for each row, a tuple of the events that cleared or opened, or None
    """

    predicted: Predictions
    odds: Array
    score: Array
    event: NDArray[np.int64]
    changes: NDArray[Any]

    @classmethod
    def unseen(cls, predicted: Predictions) -> Watched:
        """Return predictions for rows that a detector has not checked."""
        shape = predicted.shape
        nothing = np.full(shape, None, dtype=object)
        return cls(predicted, np.ones(shape), np.zeros(shape), np.zeros(shape, dtype=np.int64), nothing)

    @property
    def mean(self) -> Array:  # type: ignore[override]
        return self.predicted.mean

    @property
    def std(self) -> Array:  # type: ignore[override]
        return self.predicted.std

    @property
    def events(self) -> list[Event]:
        """The events that cleared or opened, in the order of the rows."""
        return [event for changes in self.changes.flat if changes is not None for event in changes]

    def log_density(self, y: ArrayLike) -> Array:
        return self.predicted.log_density(y)

    def cdf(self, y: ArrayLike) -> Array:
        return self.predicted.cdf(y)

    def survival(self, y: ArrayLike) -> Array:
        return self.predicted.survival(y)

    def quantile(self, p: float) -> Array:
        return self.predicted.quantile(p)

    def pit(self, y: ArrayLike) -> Array:
        return self.predicted.pit(y)

    def tail(self, y: ArrayLike) -> Array:
        return self.predicted.tail(y)

    def z(self, y: ArrayLike) -> Array:
        return self.predicted.z(y)

    def interval(self, level: float = 0.95) -> tuple[Array, Array]:
        return self.predicted.interval(level)

    def affine(self, center: Array | float, scale: Array | float) -> Predictions:
        return self.predicted.affine(center, scale)
