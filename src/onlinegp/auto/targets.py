"""Check whether the targets of the first rows are skewed or have outliers."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from onlinegp.batch.likely_kernels import MATERN, quickly_likely_kernels
from onlinegp.checks import Array
from onlinegp.models import ResidualGP
from onlinegp.models.combined import HeavyTailed
from onlinegp.models.combined.standardize import Scale, moments
from onlinegp.predictions import Predictions, TransformedPredictions
from onlinegp.predictions.transformed import transformed

TUNED, TRIED = 200, 500  # rows

# If a larger share of the targets is zero, no value is a spike, and other scales are not tried: the density at a
# repeated value grows with the slope of the scale, and a root or a logarithm is steepest at zero
ZEROS = 0.5
SPREAD = 0.3  # other scales are nearly linear, and not tried, for a smaller std / mean of the targets
ROOT, LOG = (0.5, 0.03), (0.0, 0.05)  # power, and unit / median of the positive targets
LOG_BETTER = 0.15  # nats per row by which a logarithm must be better than a root, which is safer for extrapolation
BETTER = 0.05, 5.0  # nats per row, and in total, by which another scale must be better than y itself
WORSE = 1.05  # another scale must not increase squared errors by more than this factor
Shape = tuple[float, float]  # power and unit
AS_IT_IS: Shape = 1.0, 1.0

OUTLIER_DEVIATIONS, NORMAL_MAD = 5.0, 1.4826  # threshold of outliers; standard deviation / MAD of a normal distribution
# Number of nearest rows that an outlier must differ from; smallest share of outliers that matters
NEAREST, OUTLIERS = 5, 0.005
# If there are outliers, members reject them: limits in standard deviations, and number of first rows without outliers
ROBUST: dict[str, Any] = {"bound": 3.0, "reject": 6.0, "rows": 50}
# If there are none, members clip what no model expects, unless it lasts longer than a few rows
SPIKES: dict[str, Any] = {"bound": 10.0, "rows": 50, "in_a_row": 3}
# Limits of consecutive outliers: a number, and a multiple of the number expected by chance
SOME_PAIRS, MOST_PAIRS = 2.0, 3.0


def likely_scales(X: Array, Y: Array) -> list[Shape]:
    """Return power and unit for each output of rows X (n, d) and Y (n, p); see `Transformed`.

    Other scales are tried only for targets without negative values, of which at most half are zero.
    """
    return [_likely_scale(X[-TRIED:], y[-TRIED:]) for y in Y.T]


def _likely_scale(X: Array, y: Array) -> Shape:
    center, std, varies = moments(y[:, None])
    if y.min() < 0.0 or mostly_zero(y) or not varies[0] or std[0] < SPREAD * center[0]:
        return AS_IT_IS
    typical, half = float(np.median(y[y > 0.0])), len(y) // 2

    def judged(shape: Shape) -> tuple[float, float]:
        """Return the mean log density and the mean squared error in the second half of the rows."""
        z = transformed(y, *shape)
        (center, *_), (spread, *_) = moments(z[:, None])[:2]
        on_scale = _trial(X, (z - center) / spread).affine(center, spread)
        predicted = TransformedPredictions(on_scale, *shape).rows(slice(half, None))
        return float(predicted.log_density(y[half:]).mean()), float(np.mean((predicted.mean - y[half:]) ** 2))

    density, error = judged(AS_IT_IS)
    enough, best = max(BETTER[0], BETTER[1] / (len(y) - half)), AS_IT_IS
    for (power, share), better in ((ROOT, enough), (LOG, max(enough, LOG_BETTER))):
        trial = power, share * typical
        found = judged(trial)
        if found[0] > density + better and found[1] <= WORSE * error:
            best, density = trial, found[0]
    return best


def mostly_zero(Y: Array) -> bool:
    """Return whether most targets are zero, as in conversions, revenue per visitor, or rain."""
    return bool(np.mean(Y == 0.0) > ZEROS)


def isolated(X: Array, Y: Array) -> NDArray[np.bool_]:
    """Return which rows are outliers: targets far from the median, and far from the targets of the nearest rows.

    No row is an outlier if only few targets are far away, if most far targets are close to the targets of the nearest
    rows, or if far targets are consecutive, like peaks of a price, because members should learn these.
    """
    center = np.median(Y, axis=0)
    spread = np.where((mad := np.median(np.abs(Y - center), axis=0)) > 0.0, NORMAL_MAD * mad, np.inf)
    far = np.flatnonzero((np.abs(Y - center) > OUTLIER_DEVIATIONS * spread).any(axis=1))
    found = np.zeros(len(Y), dtype=bool)
    Z = Scale.of(X)(X)
    for i in far:
        distance = ((Z - Z[i]) ** 2).sum(axis=1)
        distance[i] = np.inf
        nearest = np.argsort(distance, kind="stable")[:NEAREST]
        found[i] = bool((np.abs(Y[i] - np.median(Y[nearest], axis=0)) > OUTLIER_DEVIATIONS * spread).any())
    enough = found.sum() > max(0.5 * len(far), OUTLIERS * len(Y))
    alone = np.sum(found[1:] & found[:-1]) <= SOME_PAIRS + MOST_PAIRS * found.sum() * found.mean()
    return found if enough and alone else np.zeros(len(Y), dtype=bool)


def _trial(X: Array, y: Array) -> Predictions:
    """Return the one-step-ahead predictions of a quickly tuned GP. y is in standard units."""
    X = Scale.of(X)(X)
    pick = np.unique(np.linspace(0, len(X) - 1, min(len(X), TUNED)).astype(int))
    found = quickly_likely_kernels(X[pick], y[pick], families=(MATERN,))[0]
    return HeavyTailed(ResidualGP(found.kernel, noise=found.noise, linear=True)).run(X, y, progress=False).predictions
