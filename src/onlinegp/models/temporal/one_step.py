"""Predict one step ahead by a mixture of members, weighted by their recent log densities."""

from __future__ import annotations

import numpy as np

from onlinegp.checks import Array
from onlinegp.models.error_tracking import fading_scales, fading_weights, shares_of
from onlinegp.models.temporal.members import QUICK, Fit
from onlinegp.models.temporal.rolling import spread_of
from onlinegp.predictions import Components

MEMBERS = 2 * (1 + len(QUICK.forgetting)) + 1  # GP and regressions of y and log y, and the last value; no drift GP
KEEP = 0.99  # past log densities count less by this factor per row
ERROR_RATE = 0.03  # learning rate of the mean squared standardized error of each member
LARGEST_Z2 = 1e4  # clip squared standardized errors here
FARTHEST_Z2 = 25.0  # for the mean of squared errors, clip at this multiple of the mean


class OneStep:
    """The members of a fit, and their scores one step ahead since the fit.

    One more member repeats the last value. It gets the weight after a large change of the level, which the others treat
    as outliers and follow slowly.
    """

    def __init__(self, fit: Fit) -> None:
        self.row, self.learned = fit.row, 0  # learned: number of rows of the window
        self.members = [member for family in fit.started() for member in family]
        self.before, self.change = fit.first, fit.change  # the last value, and the deviation of changes
        n = len(self.members) + 1
        self.log_weights = np.zeros(n)
        self.total, self.count = np.ones(n), np.ones(n)  # of squared errors

    def run(self, X: Array, y: Array) -> tuple[Array, Array, Array]:
        """Predict and learn rows. Return weights, means and standard deviations of the members, (n, MEMBERS)."""
        pairs = [member.moments(*member.run(X, y)) for member in self.members]
        pairs.append((np.concatenate([[self.before], y[:-1]]), np.full(len(y), self.change)))
        self.before = float(y[-1])
        means, stds = (np.stack(one, axis=1) for one in zip(*pairs, strict=True))
        with np.errstate(all="ignore"):
            e = y[:, None] - means
            z2 = np.nan_to_num((e / stds) ** 2, nan=LARGEST_Z2)
            stds = widened(stds, fading_scales(z2, 0.0, 1.0 - ERROR_RATE, self.total, self.count, far=FARTHEST_Z2))
            densities = -0.5 * np.minimum((e / stds) ** 2, LARGEST_Z2) - np.log(stds)
        return _padded(fading_weights(densities, KEEP, self.log_weights), means, stds)

    def predict(self, X: Array) -> Components:
        """Predict each row as if it were the next row."""
        pairs = [member.moments(*member.ahead(X)) for member in self.members]
        pairs.append((np.full(len(X), self.before), np.full(len(X), self.change)))
        means, stds = (np.stack(one, axis=1) for one in zip(*pairs, strict=True))
        weights = np.tile(shares_of(self.log_weights), (len(X), 1))
        return mixtures(*_padded(weights, means, widened(stds, self.total / self.count)))


def widened(stds: Array, scales: Array) -> Array:
    """Return deviations with the variance multiplied by 1/2 + scale/2; scales are mean squared standardized errors."""
    return stds * np.sqrt(0.5 + 0.5 * scales)


def _padded(weights: Array, means: Array, stds: Array) -> tuple[Array, Array, Array]:
    """Add members to reach MEMBERS: copies of the first member with a weight of zero."""
    missing = MEMBERS - weights.shape[1]
    weights = np.hstack([weights, np.zeros((len(weights), missing))])
    return weights, *(np.hstack([one, np.repeat(one[:, :1], missing, axis=1)]) for one in (means, stds))  # type: ignore[return-value]


def so_far(before: Array, n: int, *, constant: bool = False) -> tuple[Array, Array, Array]:
    """Return mixtures for n rows without a fit: mean and spread of the values `before`, or the last one if constant."""
    weights = np.zeros((n, MEMBERS))
    weights[:, 0] = 1.0
    center, spread = 0.0, 1.0
    if len(before):
        center = before[-1] if constant else before.mean()
        spread = spread_of(before[-1], np.diff(before) if constant or len(before) == 1 else before - center)
    return weights, np.full_like(weights, center), np.full_like(weights, spread)


def mixtures(weights: Array, means: Array, stds: Array) -> Components:
    """Return mixtures of normal distributions of one output."""
    return Components(weights[:, None], means[:, None], stds[:, None], (np.inf,) * MEMBERS, 1.0)
