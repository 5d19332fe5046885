"""Predict one step ahead by a mixture of members, weighted by their recent log densities."""

from __future__ import annotations

import numpy as np

from onlinegp.checks import Array
from onlinegp.models.error_tracking import fading_scales, fading_weights, shares_of
from onlinegp.models.temporal.members import QUICK, Fit
from onlinegp.predictions import Components

MEMBERS = 2 * (1 + len(QUICK.forgetting))  # a GP and regressions, each of y and log y; no drift GP
KEEP = 0.99  # past log densities count less by this factor per row
ERROR_RATE = 0.03  # learning rate of the mean squared standardized error of each member
LARGEST_Z2 = 1e4  # clip squared standardized errors here
FARTHEST_Z2 = 25.0  # for the mean of squared errors, clip at this multiple of the mean


class OneStep:
    """The members of a fit, and their scores one step ahead since the fit."""

    def __init__(self, fit: Fit) -> None:
        self.row, self.learned = fit.row, 0  # learned: number of rows of the window
        self.members = [member for family in fit.started() for member in family]
        self.log_weights = np.zeros(len(self.members))
        self.total, self.count = np.ones(len(self.members)), np.ones(len(self.members))  # of squared errors

    def run(self, X: Array, y: Array) -> tuple[Array, Array, Array]:
        """Predict and learn rows. Return weights, means and standard deviations of the members, (n, MEMBERS)."""
        pairs = [member.moments(*member.run(X, y)) for member in self.members]
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


def so_far(before: Array, n: int) -> tuple[Array, Array, Array]:
    """Return mixtures for n rows before the first fit, with the mean and spread of the few values `before`."""
    mean, std = (before.mean(), before.std()) if len(before) > 1 else (before[0] if len(before) else 0.0, 1.0)
    weights = np.zeros((n, MEMBERS))
    weights[:, 0] = 1.0
    return weights, np.full_like(weights, mean), np.full_like(weights, max(float(std), 1e-9 * abs(mean), 1e-300))


def mixtures(weights: Array, means: Array, stds: Array) -> Components:
    """Return mixtures of normal distributions of one output."""
    return Components(weights[:, None], means[:, None], stds[:, None], (np.inf,) * MEMBERS, 1.0)
