"""The readable engine: the one update, a sample at a time, in NumPy. It defines what every fast path must give."""

from __future__ import annotations

from operator import attrgetter

import numpy as np

from onlinegp.checks import Array
from onlinegp.recipes.contents import dump_state
from onlinegp.recipes.state import State
from onlinegp.recipes.update import Recipe, learn, predict
from onlinegp.state import Contents


class PythonEngine:
    """A recipe and its state. `run` predicts and learns, `predict` only looks."""

    name = "python"

    def __init__(self, recipe: Recipe, state: State) -> None:
        self.recipe = recipe
        self.state = state

    size = property(attrgetter("state.size"), doc="The number of centers.")
    seen = property(attrgetter("state.seen"), doc="The number of samples learned.")

    @property
    def outputs(self) -> int:
        return self.state.alpha.shape[1]

    def weights(self) -> tuple[Array, Array]:
        """Return copies of the centers (m, d) and of their weights (m, p)."""
        return self.state.C.copy(), self.recipe.belief.weights(self.state)

    def dump(self) -> Contents:
        """Return what is in use of the state, by name."""
        return dump_state(self.state)

    def learn(self, X: Array, Y: Array) -> None:
        """Learn the rows of X (n, d) and Y (n, p) in order."""
        for x, y in zip(X, Y, strict=True):
            learn(self.recipe, self.state, x, y)

    def learn_one(self, x: object, y: object) -> bool | None:
        """Learn one plain sample at once, if this engine can; it cannot."""
        return None

    def predict_one(self, x: object) -> tuple[float, float] | None:
        """Return mean and variance for one plain sample, if this engine can do so at once."""
        return None

    def run(self, X: Array, Y: Array) -> tuple[Array, Array, np.ndarray]:
        """Predict, then learn, row by row: the means (n, p), the variances of y (n,), the sizes after each row (n,)."""
        mean, variance = np.empty(Y.shape), np.empty(len(Y))
        size = np.empty(len(Y), dtype=np.int64)
        for i, (x, y) in enumerate(zip(X, Y, strict=True)):
            step = learn(self.recipe, self.state, x, y)
            mean[i], variance[i], size[i] = step.mean, step.variance, self.state.size
        return mean, variance, size

    def predict(self, X: Array) -> tuple[Array, Array]:
        """Return the means (n, p) and the variances of y (n,)."""
        mean, variance = np.empty((len(X), self.state.alpha.shape[1])), np.empty(len(X))
        for i, x in enumerate(X):
            seen = predict(self.recipe, self.state, x)
            mean[i], variance[i] = seen.mean, self.state.power * seen.s
        return mean, variance
