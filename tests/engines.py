"""Recipes on either engine, with what tests ask of them: arrays, decisions, states."""

from __future__ import annotations

from typing import Any

import numpy as np

from onlinegp.engine import thread_count
from onlinegp.engine.compiled import leaf, readable
from onlinegp.engine.compiled_leaf import Compiled
from onlinegp.models.recipe_learner import RecipeLearner
from onlinegp.recipes.state import State
from onlinegp.recipes.update import Recipe


class Engine:
    """A learner of a recipe, compiled or not."""

    def __init__(self, learner: Any) -> None:
        self.learner, self.recipe = learner, readable(learner).recipe
        self.name = "native" if isinstance(learner, Compiled) else "python"
        if self.name == "native":
            self.learner._working()  # which is made when it is needed; single samples do not make it

    def __getattr__(self, name: str) -> Any:
        return getattr(self.learner, name)

    @property
    def core(self) -> Any:
        return self.learner._working()

    @property
    def state(self) -> State:
        return readable(self.learner).state

    def weights(self) -> Any:
        return readable(self.learner).weights()

    def run(self, X: np.ndarray, Y: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Predict, then learn: the means (n, p), the variances (n,) and the sizes (n,)."""
        predictions, size = self.learner.run(X, Y)
        return predictions.mean, predictions.std[:, 0] ** 2, size

    def predict(self, X: np.ndarray, threads: int | None = None) -> tuple[np.ndarray, np.ndarray]:
        if self.name == "python":
            predictions = self.learner.predict(X)
            return predictions.mean, predictions.std[:, 0] ** 2
        _, mean, std, _ = self.core.predict(np.ascontiguousarray(X), threads or thread_count())
        return mean[..., 0], std[:, 0, 0] ** 2

    def decisions(self, X: np.ndarray, Y: np.ndarray) -> Any:
        """Run the rows; also return the slots, whether each row was admitted, and which centers left."""
        return self.core.run_decisions(np.ascontiguousarray(X), np.ascontiguousarray(Y))


def make_engine(name: str, recipe: Recipe, state: State, dtype: str = "float64") -> Engine:
    """Return a learner of a recipe that goes on from a state, on the engine of that name."""
    learner = RecipeLearner(recipe, state.centers.shape[1], state.alpha.shape[1], dtype)
    learner.state = state
    return Engine(leaf(name, learner))
