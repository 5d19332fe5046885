"""Base class of the linear filters, with the loop that predicts each row and then corrects the weights."""

from __future__ import annotations

from abc import abstractmethod
from functools import cached_property

import numpy as np

from onlinegp.checks import Array
from onlinegp.learner import RowLearner, Sizes
from onlinegp.models.linear.base import with_constant
from onlinegp.predictions import Gaussian


class FilterLearner(RowLearner):
    """Weights w (m, p), where m is the number of features and intercept. A subclass adds their uncertainty."""

    def __init__(self, features: int, outputs: int, *, intercept: bool) -> None:
        self.features, self.outputs, self.weights = features, outputs, features + intercept
        self.intercept = intercept

    @cached_property
    # Created on first use, so that a damaged file that claims many features does not allocate memory
    def w(self) -> Array:
        return np.zeros((self.weights, self.outputs))

    @abstractmethod
    def step(self, x: Array, y: Array) -> tuple[Array, float]:
        """Return mean (p,) and variance of y at x (m,), then learn y (p,)."""

    @abstractmethod
    def at(self, X: Array) -> tuple[Array, Array]:
        """Return means (n, p) and variances (n,) of y at rows X (n, m). A row has the same bits in any block."""

    def learn(self, X: Array, Y: Array) -> None:
        self.run(X, Y)

    def run(self, X: Array, Y: Array) -> tuple[Gaussian, Sizes]:
        mean, s = np.empty(Y.shape), np.empty(len(Y))
        with np.errstate(all="ignore"):  # a diverged model is detected from its predictions
            for i, (x, y) in enumerate(zip(with_constant(X, self.intercept), Y, strict=True)):
                mean[i], s[i] = self.step(x, y)
                self.seen += 1
        return self._gaussian(mean, s), np.zeros(len(Y), dtype=np.int64)

    def predict(self, X: Array) -> Gaussian:
        with np.errstate(all="ignore"):
            return self._gaussian(*self.at(with_constant(X, self.intercept)))

    def _gaussian(self, mean: Array, s: Array) -> Gaussian:
        return Gaussian(mean, np.repeat(np.sqrt(s)[:, None], self.outputs, axis=1))
