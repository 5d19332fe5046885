"""A recipe at work as a learner, on either engine."""

from __future__ import annotations

from math import sqrt
from operator import attrgetter

import numpy as np

from onlinegp.checks import Array
from onlinegp.engine import make_engine
from onlinegp.engine.plan import Plan
from onlinegp.engine.python import PythonEngine
from onlinegp.learner import Sizes
from onlinegp.predictions import Gaussian
from onlinegp.recipes.compact import StateFields, dump_compact
from onlinegp.recipes.contents import filled
from onlinegp.recipes.state import State
from onlinegp.recipes.update import Recipe
from onlinegp.state import Contents, Values, WithFields


class RecipeLearner(WithFields):
    """A recipe and what it has learned, run by the engine of a name."""

    def __init__(self, engine: str, recipe: Recipe, features: int, outputs: int, dtype: str = "float64") -> None:
        self.recipe, self.features, self.outputs = recipe, features, outputs
        self._name, self._dtype = engine, dtype
        self.reference = StateFields(recipe, features, outputs)
        self._use(recipe.start(features, outputs))

    def _use(self, state: State) -> None:
        self._engine = make_engine(self._name, self.recipe, state, self._dtype)
        self.learn_one = self._engine.learn_one  # without a detour

    engine = property(attrgetter("_engine.name"), doc="The name of the engine that runs.")
    atomic = property(lambda self: self.engine == "native", doc="Whether an exception finds no row half learned.")
    size = property(attrgetter("_engine.size"), doc="The number of centers.")
    seen = property(attrgetter("_engine.seen"), doc="The number of samples learned.")
    state = property(attrgetter("_engine.state"), doc="The state as it is now.")

    def weights(self) -> tuple[Array, Array]:
        """Return copies of the centers (m, d) and of their weights (m, p)."""
        return self._engine.weights()

    def learn(self, X: Array, Y: Array) -> None:
        self._engine.learn(X, Y)

    def run(self, X: Array, Y: Array) -> tuple[Gaussian, Sizes]:
        mean, variance, size = self._engine.run(X, Y)
        return gaussian(mean, variance), size

    def predict(self, X: Array) -> Gaussian:
        return gaussian(*self._engine.predict(X))

    def skip(self, X: Array, Y: Array | None = None) -> Gaussian:
        return self.predict(X)

    def begin_series(self) -> None:
        pass

    def predict_one(self, x: object) -> tuple[float, float] | None:
        quick = self._engine.predict_one(x)
        return None if quick is None else (quick[0], sqrt(quick[1]))

    def plan(self) -> Plan | None:
        """Return what a compiled tree of learners makes of it; None on the readable engine."""
        engine = self._engine
        return None if isinstance(engine, PythonEngine) else Plan("leaf", self, model=lambda: engine.core)

    def dump(self) -> Contents:
        return self._engine.dump()

    def dump_compact(self) -> Contents:
        return dump_compact(self.recipe, self.dump())

    def assign(self, values: Values) -> None:
        self._use(filled(self.recipe, self.features, self.outputs, values))


def gaussian(mean: Array, variance: Array) -> Gaussian:
    """Return normal distributions of means (n, p), with a variance for each, or those (n,) that all outputs share."""
    std = np.sqrt(variance)
    if std.ndim == 2:
        return Gaussian(mean, std)
    std = std[:, None]
    return Gaussian(mean, std if mean.shape[1] == 1 else np.repeat(std, mean.shape[1], axis=1))
