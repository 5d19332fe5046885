"""The mixture of members one step ahead, weighted by recent densities."""

from __future__ import annotations

import numpy as np

from onlinegp.checks import Array
from onlinegp.models.temporal.members import FORGETTING, Fit
from onlinegp.predictions import Components

MEMBERS = 2 * (1 + len(FORGETTING))  # without the drift GP, which adds nothing here
KEEP = 0.99  # of a log density, per row
ERROR_RATE = 0.03  # of the mean square error, which is half of a member's variance
LARGEST_Z2 = 1e4  # squared errors in deviations are cut there, and at 25 where they widen


class OneStep:
    """Members with the parameters of a fit, and how they did one step ahead since."""

    def __init__(self, fit: Fit) -> None:
        self.row, self.learned = fit.row, 0  # rows of the window
        self.members = [member for family in fit.started() for member in family]
        self.log_weights = np.zeros(len(self.members))
        self.squares: Array | None = None  # mean square errors

    def run(self, X: Array, y: Array) -> tuple[Array, Array, Array]:
        """Predict rows and learn them. Return weights, means and deviations of members, (n, MEMBERS)."""
        pairs = [member.moments(*member.run(X, y)) for member in self.members]
        means, stds = (np.stack(one, axis=1) for one in zip(*pairs, strict=True))
        weights = np.empty_like(means)
        with np.errstate(all="ignore"):
            for i in range(len(y)):
                weights[i], stds[i] = self.weights(), self._widened(stds[i])
                e = y[i] - means[i]
                density = -0.5 * np.minimum((e / stds[i]) ** 2, LARGEST_Z2) - np.log(stds[i])
                self.log_weights = KEEP * self.log_weights + density - density.max()
                squares = stds[i] ** 2 if self.squares is None else self.squares
                self.squares = squares + ERROR_RATE * (np.minimum(e * e, 25 * stds[i] ** 2) - squares)
        return _padded(weights, means, stds)

    def predict(self, X: Array) -> Components:
        """Predict rows, each as the next one."""
        pairs = [member.moments(*member.ahead(X)) for member in self.members]
        means, stds = (np.stack(one, axis=1) for one in zip(*pairs, strict=True))
        return mixtures(*_padded(np.tile(self.weights(), (len(X), 1)), means, self._widened(stds)))

    def weights(self) -> Array:
        weights = np.exp(self.log_weights - self.log_weights.max())
        return weights / weights.sum()

    def _widened(self, stds: Array) -> Array:
        """Return deviations of which half of the variance is that of recent errors."""
        return stds if self.squares is None else np.sqrt(0.5 * stds**2 + 0.5 * self.squares)


def _padded(weights: Array, means: Array, stds: Array) -> tuple[Array, Array, Array]:
    """Return all possible members. Missing ones repeat the first with a weight of zero."""
    missing = MEMBERS - weights.shape[1]
    weights = np.hstack([weights, np.zeros((len(weights), missing))])
    return weights, *(np.hstack([one, np.repeat(one[:, :1], missing, axis=1)]) for one in (means, stds))  # type: ignore[return-value]


def so_far(before: Array, n: int) -> tuple[Array, Array, Array]:
    """Return the mixtures of n rows that follow a few others: their mean and spread."""
    mean, std = (before.mean(), before.std()) if len(before) > 1 else (before[0] if len(before) else 0.0, 1.0)
    weights = np.zeros((n, MEMBERS))
    weights[:, 0] = 1.0
    return weights, np.full_like(weights, mean), np.full_like(weights, max(float(std), 1e-9 * abs(mean), 1e-300))


def mixtures(weights: Array, means: Array, stds: Array) -> Components:
    """Return predictions of one output."""
    return Components(weights[:, None], means[:, None], stds[:, None], (np.inf,) * MEMBERS, 1.0)
