"""The mixture of members one step ahead, weighted by recent densities."""

from __future__ import annotations

import numpy as np

from onlinegp.checks import Array
from onlinegp.models.error_tracking import fading_scales, fading_weights, shares_of
from onlinegp.models.temporal.members import QUICK, Fit
from onlinegp.predictions import Components

MEMBERS = 2 * (1 + len(QUICK.forgetting))  # without the drift GP, which adds nothing here
KEEP = 0.99  # of a log density, per row
ERROR_RATE = 0.03  # of the mean of squared errors, to which half of a member's variance is proportional
LARGEST_Z2 = 1e4  # squared errors in deviations are cut there
FARTHEST_Z2 = 25.0  # and there where they widen, times their mean


class OneStep:
    """Members with the parameters of a fit, and their scores one step ahead since then."""

    def __init__(self, fit: Fit) -> None:
        self.row, self.learned = fit.row, 0  # rows of the window
        self.members = [member for family in fit.started() for member in family]
        self.log_weights = np.zeros(len(self.members))
        self.total, self.count = np.ones(len(self.members)), np.ones(len(self.members))  # of squared errors

    def run(self, X: Array, y: Array) -> tuple[Array, Array, Array]:
        """Predict rows and learn them. Return weights, means and deviations of members, (n, MEMBERS)."""
        pairs = [member.moments(*member.run(X, y)) for member in self.members]
        means, stds = (np.stack(one, axis=1) for one in zip(*pairs, strict=True))
        with np.errstate(all="ignore"):
            e = y[:, None] - means
            z2 = np.nan_to_num((e / stds) ** 2, nan=LARGEST_Z2)
            stds = widened(stds, fading_scales(z2, 0.0, 1.0 - ERROR_RATE, self.total, self.count, far=FARTHEST_Z2))
            densities = -0.5 * np.minimum((e / stds) ** 2, LARGEST_Z2) - np.log(stds)
        return _padded(fading_weights(densities, KEEP, self.log_weights), means, stds)

    def predict(self, X: Array) -> Components:
        """Predict rows, each as the next one."""
        pairs = [member.moments(*member.ahead(X)) for member in self.members]
        means, stds = (np.stack(one, axis=1) for one in zip(*pairs, strict=True))
        weights = np.tile(shares_of(self.log_weights), (len(X), 1))
        return mixtures(*_padded(weights, means, widened(stds, self.total / self.count)))


def widened(stds: Array, scales: Array) -> Array:
    """Return deviations of which half of the variance follows recent errors: squares in units of the variance."""
    return stds * np.sqrt(0.5 + 0.5 * scales)


def _padded(weights: Array, means: Array, stds: Array) -> tuple[Array, Array, Array]:
    """Return all possible members. Missing ones repeat the first with a weight of zero."""
    missing = MEMBERS - weights.shape[1]
    weights = np.hstack([weights, np.zeros((len(weights), missing))])
    return weights, *(np.hstack([one, np.repeat(one[:, :1], missing, axis=1)]) for one in (means, stds))  # type: ignore[return-value]


def so_far(before: Array, n: int) -> tuple[Array, Array, Array]:
    """Return mixtures for n rows after the few rows `before`, with the mean and spread of these."""
    mean, std = (before.mean(), before.std()) if len(before) > 1 else (before[0] if len(before) else 0.0, 1.0)
    weights = np.zeros((n, MEMBERS))
    weights[:, 0] = 1.0
    return weights, np.full_like(weights, mean), np.full_like(weights, max(float(std), 1e-9 * abs(mean), 1e-300))


def mixtures(weights: Array, means: Array, stds: Array) -> Components:
    """Return predictions of one output."""
    return Components(weights[:, None], means[:, None], stds[:, None], (np.inf,) * MEMBERS, 1.0)
