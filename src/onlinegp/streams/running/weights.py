"""The weights of a mixture's members along a stream, in memory that does not grow with it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from onlinegp.auto.learner import AutoLearner
from onlinegp.checks import Array
from onlinegp.models.base import OnlineRegressor
from onlinegp.models.combined.base import working
from onlinegp.models.combined.mixture import MixtureLearner
from onlinegp.predictions import MixtureOf
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
        said = rows.predictions
        if model is None or not len(said) or not isinstance(said, MixtureOf):
            return
        self.members = self.members or member_names(model)
        if said.weights.shape[1:] != (len(self.members),):  # a mixture of another kind: rows that were joined
            return
        self._append((before + np.arange(len(said))) // self.stride, np.ones(len(said), dtype=np.int64), said.weights)
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


def member_names(model: OnlineRegressor) -> list[str]:
    """Return the names of a mixture's members; empty for another model, and before there are some."""
    learner = working(model)
    if isinstance(learner, AutoLearner):
        return list(learner.weights())
    return list(learner.members) if isinstance(learner, MixtureLearner) else []
