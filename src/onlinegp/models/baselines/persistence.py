"""Predict the previous value: the baseline that every forecast must beat."""

from __future__ import annotations

from typing import Any

from onlinegp.checks import Array
from onlinegp.engine.compiled import leaf
from onlinegp.engine.plan import Plan
from onlinegp.learner import Learner
from onlinegp.models.base import OnlineRegressor
from onlinegp.models.recipe import parameters
from onlinegp.models.rowwise import ErrorScale, StepLearner
from onlinegp.native_module import available
from onlinegp.state import integer, learner


@parameters
class Persistence(OnlineRegressor):
    """Predict the previous y and ignore x: the baseline of every series.

        y_t = y_(t-1) + e_t

    Before the first row it predicts zero. The variance is the mean squared change of y over about the last hundred
    rows, as for a random walk. If y stays constant for a long time, the variance decreases to a hundredth of the square
    of the smallest change so far.

    Use it to check whether another model has learned anything. It makes no sense for rows without an order.

    Cost: O(1) per sample
    Memory: O(1)
    Equation: y_t = y_(t-1) + e
    Variance of y: as for a random walk: the mean squared change of y over about the last 100 rows

    Examples
    --------
    >>> import onlinegp as ogp
    >>> model = ogp.Persistence().fit([[0.0], [1.0]], [3.0, 4.0])
    >>> model.predict_one([7.0])
    4.0
    """

    def start(self, features: int, outputs: int) -> Learner:
        return leaf("auto" if available() else "python", PersistenceLearner(features, outputs))


class PersistenceLearner(StepLearner):
    """The last y, zero before the first row, and the scale of its changes."""

    fields = {"seen": integer(), "changes": learner()}

    def __init__(self, features: int, outputs: int) -> None:
        self.features, self.outputs = features, outputs
        self.changes = ErrorScale(outputs)

    def look(self, x: Array) -> tuple[Array, Array | float, Any]:
        return self.changes.last, self.changes.std, None

    def correct(self, x: Array, y: Array, e: Array, seen: Any) -> None:
        if self.seen:
            self.changes.add(e, y, self.seen)
        else:  # the first y is not a change
            self.changes.last[:] = y

    def leaf_plan(self) -> Plan:
        return Plan("persistence", self)
