"""Correct standard deviations of predictions several rows ahead, whose errors are known several rows later."""

from __future__ import annotations

import numpy as np

from onlinegp.checks import Array
from onlinegp.models.combined.base import stretched
from onlinegp.models.combined.calibrated import FadingScale, squared
from onlinegp.models.error_tracking import TINY
from onlinegp.predictions import Gaussian, Predictions
from onlinegp.predictions.mixture import as_components, mix

# Errors H rows ahead are correlated over H rows, so the memory must contain several times H rows.
MEMORY, MEMORY_PER_ROW_AHEAD = 500, 10
# The weight of a normal. An error far ahead is a sum of errors, so its tails are lighter than those one row ahead.
NORMAL = 0.5
NO_ERROR = -1.0  # in place of z^2 for a row that was predicted without the model


class HorizonScale(FadingScale):
    """The fading mean of z^2, z = (y - mean) / std, of predictions `horizon` rows ahead, per output.

    The factor of row t uses z^2 up to row t - horizon. Later values wait.

    Attributes
    ----------
    waiting : z^2 of the last horizon - 1 rows (or fewer at the start), the oldest first
    """

    def __init__(self, outputs: int, horizon: int) -> None:
        super().__init__(outputs, 1.0 - 1.0 / (MEMORY + MEMORY_PER_ROW_AHEAD * horizon))
        self.horizon, self.waiting = horizon, np.empty((0, outputs))

    def corrected(self, predicted: Predictions) -> Predictions:
        """Stretch predictions of the inner model, and mix them with a normal. One row ahead, they do not change."""
        if self.horizon == 1:
            return predicted
        factor = np.broadcast_to(np.sqrt(self.current()), predicted.mean.shape)
        return self.half_normal(stretched(predicted, factor), Gaussian(predicted.mean, factor * predicted.std))

    def half_normal(self, predicted: Predictions, normal: Gaussian) -> Predictions:
        """Mix predictions with a normal of the same mean and standard deviation, unless they are one."""
        flat = as_components(predicted)
        if self.horizon == 1 or (flat is not None and len(flat.degrees) == 1):
            return predicted
        weights = np.broadcast_to([1.0 - NORMAL, NORMAL], (*predicted.mean.shape, 2))
        return mix(weights, [predicted, normal])

    def add(self, predicted: Predictions, Y: Array, *, by_model: bool) -> None:
        """Add the error of a row (1, outputs), given the prediction of the inner model."""
        z2 = np.minimum(squared(predicted, Y), 1.0 / TINY) if by_model else np.full(Y.shape, NO_ERROR)
        queue = np.concatenate([self.waiting, z2])
        known = len(queue) - self.horizon + 1
        if known > 0 and queue[0, 0] >= 0.0:
            self.update(queue[:1])
        self.waiting = queue[max(0, known) :].copy()
