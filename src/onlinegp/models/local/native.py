"""The exact GP on the nearest rows, compiled: `LocalLearner` says what it must give."""

from __future__ import annotations

from math import sqrt
from operator import attrgetter

import numpy as np
from numpy.typing import NDArray

from onlinegp.checks import Array, stored_names
from onlinegp.engine import _native, thread_count
from onlinegp.engine.learner import gaussian
from onlinegp.engine.native import pack_kernel
from onlinegp.learner import Contents, Sizes
from onlinegp.models.local.distance import Distance
from onlinegp.models.local.learner import MOST_ROWS, LocalPrior, checked
from onlinegp.predictions import Gaussian


class NativeLocalLearner:
    """The rows of late, and the exact GP on those that are nearest to a question."""

    atomic = True

    def __init__(self, prior: LocalPrior, features: int, outputs: int) -> None:
        self.prior, self.features, self.outputs = prior, features, outputs
        self._core = _native.Local(_packed(prior, features), features, outputs)
        self.learn_one = self._core.learn_one  # without a detour

    size = property(attrgetter("_core.size"), doc="The number of rows that are kept.")
    seen = property(attrgetter("_core.seen"), doc="The number of rows learned.")

    def learn(self, X: Array, Y: Array) -> None:
        self._core.learn(np.ascontiguousarray(X), np.ascontiguousarray(Y))

    def run(self, X: Array, Y: Array) -> tuple[Gaussian, Sizes]:
        mean, variance, size = self._core.run(np.ascontiguousarray(X), np.ascontiguousarray(Y))
        return gaussian(mean, variance), size

    def predict(self, X: Array, threads: int | None = None) -> Gaussian:
        """Return the distributions of y at the rows of X, whatever the number of threads."""
        return gaussian(*self._core.predict(np.ascontiguousarray(X), threads or thread_count()))

    def skip(self, X: Array, Y: Array | None = None) -> Gaussian:
        return self.predict(X)

    def begin_series(self) -> None:
        pass

    def predict_one(self, x: object) -> tuple[float, float] | None:
        quick = self._core.predict_one(x)
        return None if quick is None else (quick[0], sqrt(quick[1]))

    def neighbors(self, x: Array) -> NDArray[np.int64]:
        """Return the places in the store of the rows nearest to x (1, d), the nearest first; of equals the newest."""
        return self._core.nearest(x)[0] - (self.seen - self.size)

    def dump(self) -> Contents:
        X, Y, seen = self._core.save()
        return {"X": X, "Y": Y, "seen": seen}

    def dump_compact(self) -> Contents:
        return self.dump()

    def load(self, contents: Contents) -> None:
        stored_names(contents, ("X", "Y", "seen"), "LocalGP")
        self._core.load(*checked(contents, self.prior, self.features, self.outputs))


def _packed(prior: LocalPrior, features: int) -> _native.LocalPrior:
    """Return what a learner is told as the compiled one reads it."""
    core, distance = _native.LocalPrior(), Distance.of(prior.kernel, features)
    recipe = _native.Recipe()
    pack_kernel(recipe, prior.kernel, features)
    core.recipe = recipe
    core.noise, core.fade, core.neighbors = prior.noise, prior.fade, min(prior.neighbors, MOST_ROWS)
    core.store = MOST_ROWS if prior.store is None else min(prior.store, MOST_ROWS)
    core.rates = distance.rates.tolist()
    core.frequencies = [value for circles in distance.circles for value in circles.frequency.tolist()]
    core.radii = [value for circles in distance.circles for value in circles.radius.tolist()]
    return core
