"""Record the weights of the members of a mixture over a stream, in constant memory."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from onlinegp.auto.learner import AutoLearner
from onlinegp.checks import Array
from onlinegp.models.alarms.watched import Watched
from onlinegp.models.base import OnlineRegressor
from onlinegp.models.combined.base import innermost_learner, working
from onlinegp.models.combined.mixture_learner import MixtureLearner
from onlinegp.predictions import Predictions
from onlinegp.state import Values, array, integer, integers
from onlinegp.streams.running.observers import Observer, Rows, texts

POINTS = 300  # at 2 POINTS points, pairs of points are merged
MEMBERS = 1000  # limit for files


class Weights(Observer):
    """The weights of the members of a mixture, averaged over each `stride` rows. Empty for other models.

    Members that did not predict these rows have the weight zero.
    """

    fields = {
        "members": texts(MEMBERS),
        "stride": integer(least=1),
        "places": integers("points", least=0),
        "counts": integers("points", least=1),
        "sums": array("points", "names", least=0.0),
    }
    lengths = {"points": 2 * POINTS - 1, "names": MEMBERS}

    def __init__(self) -> None:
        self.members: list[str] = []
        self.stride = 1
        self.places = np.empty(0, dtype=np.int64)  # indices of the averages: average p begins at row p * stride
        self.counts = np.empty(0, dtype=np.int64)  # number of rows of each average
        self.sums = np.empty((0, 0))  # sums of weights, (places, members)

    def check(self, values: Values) -> None:
        places, counts, sums = values["places"], values["counts"], values["sums"]
        if sums.shape[1] != len(values["members"]) and len(places):
            raise ValueError(f"sums must have a column for each of {len(values['members'])} members.")
        if (np.diff(places) <= 0).any():
            raise ValueError("places must be in increasing order.")
        if (counts > values["stride"]).any() or (sums > counts[:, None] * (1.0 + 1e-9)).any():
            raise ValueError("counts must be at most the stride, and sums at most the counts.")

    def add(self, rows: Rows) -> None:
        n, old = len(rows), len(self.members)
        if not rows.members:
            return
        self.members += [name for name in rows.members if name not in self.members]
        if len(self.members) > old:
            self.sums = np.hstack([self.sums, np.zeros((len(self.sums), len(self.members) - old))])
        weights = np.zeros((n, len(self.members)))
        weights[:, [self.members.index(name) for name in rows.members]] = rows.weights
        self._append((rows.before + np.arange(n)) // self.stride, np.ones(n, dtype=np.int64), weights)
        while len(self.places) >= 2 * POINTS:
            self.stride *= 2
            places, counts, sums = self.places // 2, self.counts, self.sums
            self.places, self.counts, self.sums = places[:0], counts[:0], sums[:0]
            self._append(places, counts, sums)

    def _append(self, places: NDArray[np.int64], counts: NDArray[np.int64], sums: Array) -> None:
        """Add counts and sums. Places never decrease; equal places are merged."""
        last = slice(len(self.places) - 1, None) if len(self.places) else slice(0)
        places, counts = np.append(self.places[last], places), np.append(self.counts[last], counts)
        sums = np.vstack([self.sums[last], sums]) if len(self.sums) else sums
        starts = np.flatnonzero(np.diff(places, prepend=-1))
        keep = slice(max(0, len(self.places) - 1))
        self.places = np.append(self.places[keep], places[starts])
        self.counts = np.append(self.counts[keep], np.add.reduceat(counts, starts))
        merged = np.add.reduceat(sums, starts, axis=0)
        self.sums = np.vstack([self.sums[keep], merged]) if len(self.sums) else merged


def member_weights(model: OnlineRegressor, predicted: Predictions) -> tuple[tuple[str, ...], Array] | None:
    """Return the names of the members of a mixture and their weights in predictions, or None without members."""
    if not model.__sklearn_is_fitted__():
        return None
    learner, predicted = working(model), predicted.predicted if isinstance(predicted, Watched) else predicted
    if isinstance(learner, AutoLearner):
        learner = learner if learner.inner is None else innermost_learner(learner.inner)
    weights = learner.weights_of(predicted) if isinstance(learner, MixtureLearner) and len(predicted) else None
    return None if weights is None else (tuple(learner.members), weights)  # type: ignore[attr-defined]
