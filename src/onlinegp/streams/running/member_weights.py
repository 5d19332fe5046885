"""The weights of a mixture's members along a stream, in memory that does not grow with it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from onlinegp.auto.learner import AutoLearner
from onlinegp.checks import Array
from onlinegp.models.base import OnlineRegressor
from onlinegp.models.combined.base import innermost_learner, working
from onlinegp.models.combined.mixture import MixtureLearner
from onlinegp.streams.running.score import Rows

POINTS = 300  # twice as far apart whenever there are twice as many
MEMBERS = 1000  # at most, in a file


class Weights:
    """The average weights of each `stride` rows that a mixture predicted; nothing for another model."""

    def __init__(self) -> None:
        self.members: list[str] = []
        self.stride = 1
        self.places: list[int] = []  # which rows: from place * stride on, counted from 0
        self.counts: list[int] = []  # how many of these
        self.sums: list[list[float]] = []  # of their weights, by place and member

    def add(self, rows: Rows, before: int, model: OnlineRegressor | None) -> None:
        """Take rows that the model predicted; there were `before` rows."""
        n, mixture = len(rows.y), None if model is None else _mixture(model)
        weights = None if mixture is None or not n else mixture.weights_of(rows.predictions)
        if mixture is None or weights is None:  # rows that were joined may be of several kinds
            return
        self.members = self.members or list(mixture.members)
        if len(self.members) != weights.shape[1]:
            return
        self._append((before + np.arange(n)) // self.stride, np.ones(n, dtype=np.int64), weights)
        while len(self.places) >= 2 * POINTS:
            self.stride *= 2
            places, counts, sums = np.array(self.places) // 2, np.array(self.counts), np.array(self.sums)
            self.places, self.counts, self.sums = [], [], []
            self._append(places, counts, sums)

    def _append(self, places: NDArray[np.int64], counts: NDArray[np.int64], sums: Array) -> None:
        """Add up what belongs to the same place, the last one so far included; places do not decrease."""
        if self.places:
            places = np.append(self.places.pop(), places)
            counts, sums = np.append(self.counts.pop(), counts), np.vstack([self.sums.pop(), sums])
        starts = np.flatnonzero(np.diff(places, prepend=-1))
        self.places += places[starts].tolist()
        self.counts += np.add.reduceat(counts, starts).tolist()
        self.sums += np.add.reduceat(sums, starts, axis=0).tolist()

    def state(self) -> dict[str, Any]:
        return dict(vars(self))

    @classmethod
    def restored(cls, state: dict[str, Any]) -> Weights:
        weights = cls()
        vars(weights).update(state)
        return weights


def _mixture(model: OnlineRegressor) -> MixtureLearner | None:
    """Return the mixture that the model is, or that `Auto` chose."""
    learner = working(model)
    if isinstance(learner, AutoLearner):
        learner = learner if learner.inner is None else innermost_learner(learner.inner)
    return learner if isinstance(learner, MixtureLearner) else None
