"""Bayesian linear regression on a random basis, with learned noise.

y = w'phi(x) + e with e ~ N(0, s2) and w ~ N(0, s2 variance / noise): the parameters give the ratio of both variances,
the data give s2. Functions that a small basis cannot represent count as noise. With s2 = 1, let mean_i and 1 + v_i be
the predicted mean and variance of row i before it is learned. Then

    s2 = (A noise + sum of (y_i - mean_i)^2 / (1 + v_i)) / (A + n)

is the ratio of the actual to the predicted squared errors. The parameter `noise` counts as A rows. The sum equals y'y -
z'z in the square-root information form (R, z) of the regression, so it can be merged like R and z.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import numpy as np

from onlinegp.checks import Array
from onlinegp.engine.plan import Plan
from onlinegp.learner import RowLearner, Sizes
from onlinegp.models.features.random_basis import basis, turns
from onlinegp.models.linear.information_form import MOST_LOST, ROUNDING, TOO_LITTLE_LEFT, LinearLearner
from onlinegp.predictions import Gaussian
from onlinegp.state import Contents, array, learner

WORTH = 10.0  # A, the weight of the parameter `noise` in rows
MAX_BLOCK_ROWS = 512  # rows at a time, to bound the memory of their basis


class FeatureLearner(RowLearner):
    """A linear learner of 2 D weights with noise 1, its frequencies W (D, d), and the sum of squared errors, (p,)."""

    fields = {"linear": learner(prefix=""), "squares": array("outputs", least=0.0)}

    def __init__(
        self,
        draw: Callable[[], Array],
        features: int,
        outputs: int,
        *,
        pairs: int,
        noise: float,
        variance: float,
    ) -> None:
        self._draw, self.noise = draw, noise
        self.features, self.outputs = features, outputs
        prior = variance / noise
        self.linear = LinearLearner(2 * pairs, outputs, noise=1.0, prior=prior, forgetting=1.0, intercept=False)
        self.squares = np.zeros(outputs)

    @cached_property
    # Created on first use, so that a damaged file that claims many features does not allocate memory
    def W(self) -> Array:
        return self._draw()

    @property
    def seen(self) -> int:  # type: ignore[override]
        return self.linear.seen

    def learn(self, X: Array, Y: Array) -> None:
        self.run(X, Y)

    def run(self, X: Array, Y: Array) -> tuple[Gaussian, Sizes]:
        mean, std = np.empty(Y.shape), np.empty(Y.shape)
        for rows in _blocks(len(X)):
            seen = self.seen
            part, _ = self.linear.run(basis(self.W, X[rows]), Y[rows])
            mean[rows] = part.mean
            errors = (Y[rows] - part.mean) ** 2 / part.std**2  # std^2 is 1 + v
            before = np.cumsum(np.vstack([self.squares, errors]), axis=0)  # row by row, in order
            n = seen + np.arange(float(len(errors)))[:, None]
            std[rows] = part.std * np.sqrt(self._scale(before[:-1], n))
            self.squares = before[-1]
        return Gaussian(mean, std), np.zeros(len(Y), dtype=np.int64)

    def predict(self, X: Array) -> Gaussian:
        parts = [self.linear.predict(basis(self.W, X[rows])) for rows in _blocks(len(X))]
        predictions = Gaussian.joined(parts)
        return Gaussian(predictions.mean, predictions.std * np.sqrt(self.scale))

    @property
    def scale(self) -> Array:
        """The learned variance of the noise, (p,)."""
        return self._scale(self.squares, np.array(float(self.seen)))

    def _scale(self, squares: Array, n: Array) -> Array:
        return (WORTH * self.noise + squares) / (WORTH + n)

    def add(self, other: Contents, sign: int) -> None:
        """Merge the contents of another learner with the same basis or, with sign -1, subtract them."""
        before = self.linear.dump()
        grown = self.linear.add(other, sign)  # squares = y'y - z'z
        squares = np.maximum(self.squares + sign * other["squares"] + grown, 0.0)
        lost = ROUNDING * (1.0 + np.sqrt(before["seen"])) * (self.squares + other["squares"] + np.abs(grown))
        if sign < 0 and (lost > MOST_LOST * (WORTH * self.noise + squares)).any():
            self.linear.load(before)
            raise ValueError(TOO_LITTLE_LEFT)
        self.squares = squares

    def leaf_plan(self) -> Plan:
        W, quarter = self.W, 0.5 * np.pi  # sin(a) = cos(a - pi / 2)
        table = turns(np.concatenate([W, W]), np.repeat([0.0, -quarter], len(W)))
        constants = {"noise": self.noise, "functions": float(self.linear.features)}
        return Plan("random features", self, {**constants, "turns": table})


def _blocks(n: int) -> list[slice]:
    return [slice(i, min(i + MAX_BLOCK_ROWS, n)) for i in range(0, max(n, 1), MAX_BLOCK_ROWS)]
