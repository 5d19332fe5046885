"""The learner of a recipe in NumPy. It defines the results of the compiled filters."""

from __future__ import annotations

from operator import attrgetter
from typing import Any, Self

import numpy as np

from onlinegp.checks import Array
from onlinegp.engine.plan import Plan
from onlinegp.engine.recipe import compiled_recipe, is_single
from onlinegp.kernels import Kernel
from onlinegp.learner import Sizes
from onlinegp.predictions import Gaussian
from onlinegp.recipes.compact import StateFields, dump_compact
from onlinegp.recipes.contents import dump_state, filled
from onlinegp.recipes.update import Recipe, learn, predict
from onlinegp.state import Contents, Values


class RecipeLearner(StateFields):
    """A recipe and its state. `dtype` is the precision of the compiled twin."""

    def __init__(self, recipe: Recipe, features: int, outputs: int, dtype: str = "float64") -> None:
        super().__init__(recipe, features, outputs)
        self.dtype, self.state = dtype, recipe.start(features, outputs)

    size = property(attrgetter("state.size"), doc="The number of centers.")
    seen = property(attrgetter("state.seen"), doc="The number of samples learned.")

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        return (self.recipe.kernel,)

    def leaf_plan(self) -> Plan:
        single = float(is_single(self.recipe, self.dtype))
        return Plan("recipe", self, {"single": single}, recipe=compiled_recipe(self.recipe, self.features))

    def weights(self) -> tuple[Array, Array]:
        """Return copies of the centers (m, d) and their weights (m, p)."""
        return self.state.C.copy(), self.recipe.belief.weights(self.state)

    def learn(self, X: Array, Y: Array) -> None:
        for x, y in zip(X, Y, strict=True):
            learn(self.recipe, self.state, x, y)

    def run(self, X: Array, Y: Array) -> tuple[Gaussian, Sizes]:
        mean, variance = np.empty(Y.shape), np.empty((len(Y), 1))
        size = np.empty(len(Y), dtype=np.int64)
        for i, (x, y) in enumerate(zip(X, Y, strict=True)):
            step = learn(self.recipe, self.state, x, y)
            mean[i], variance[i], size[i] = step.mean, step.variance, self.state.size
        return Gaussian(mean, np.repeat(np.sqrt(variance), self.outputs, axis=1)), size

    def predict(self, X: Array) -> Gaussian:
        mean, variance = np.empty((len(X), self.outputs)), np.empty((len(X), 1))
        for i, x in enumerate(X):
            found = predict(self.recipe, self.state, x)
            mean[i], variance[i] = found.mean, self.state.power * found.s
        return Gaussian(mean, np.repeat(np.sqrt(variance), self.outputs, axis=1))

    def dump(self) -> Contents:
        return dump_state(self.state)

    def dump_compact(self) -> Contents:
        return self.compact_contents(self.dump())

    def compact_contents(self, contents: Contents) -> Contents:
        """Return contents in a compact form for files."""
        return dump_compact(self.recipe, contents)

    def assign(self, values: Values) -> None:
        self.state = filled(self.recipe, self.features, self.outputs, values)

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        twin = object.__new__(type(self))
        vars(twin).update(vars(self))
        twin.state = filled(self.recipe, self.features, self.outputs, self.dump())
        return twin
