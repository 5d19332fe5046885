"""Combine forecasts: weight each member by its past errors, and correct the quantiles of the combination.

Let nu be the number of forecasts, one after the other, that fit into the past. Each member gets the weight (mean
pinball loss)^(-2 nu) within its family, and each family gets (mean pinball loss)^(-nu). So on a short series all
members count about the same, and on a long series the best member decides. Then the quantiles are stretched around
the median.
"""

from __future__ import annotations

import numpy as np

from onlinegp.checks import Array

LEVELS = np.array([0.025, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.975])
# ndtri(LEVELS) as constants, because importing scipy takes longer than a short forecast
ABOVE = np.array([0.2533471031357997, 0.5244005127080407, 0.8416212335729142, 1.2815515655446004, 1.959963984540054])
SCORES = np.concatenate([-ABOVE[::-1], [0.0], ABOVE])
MEDIAN = len(LEVELS) // 2
MOST_ORIGINS = 40
FEWEST_BEFORE = 12  # minimum number of rows before the first origin
MEAN_ABSOLUTE = 0.798  # mean absolute value of a standard normal variable
FARTHEST = 6.0  # past errors are clipped to this number of standard deviations
CAUTION = 2.0  # stretch factors shrink towards 1 by nu / (nu + CAUTION)
LARGEST_FACTOR = 1.5
UNTRIED = 1.3  # factor of all quantiles if the series is too short for past forecasts
ENDS = 1.05  # extra factor of the outermost quantiles: the parameters were fitted to the rows that check them


def origin_gap(n: int, h: int) -> int:
    """Return the number of rows between two origins of past forecasts."""
    gap = max(1, round(min(n / 2, 8 * h) / MOST_ORIGINS))
    return gap - (gap > 2 and gap % 2 == 0)  # an odd gap visits all phases of an even season


def past_origins(n: int, h: int) -> Array:
    """Return the origins of past forecasts of h steps, numbers of rows before a forecast. The last origin is n."""
    before = np.arange(n - 1, max(FEWEST_BEFORE, n // 4) - 1, -origin_gap(n, h))[:MOST_ORIGINS][::-1]
    return np.append(before, n).astype(np.int64)


def truth(y: Array, origins: Array, h: int) -> Array:
    """Return the h values after each origin except the last, (origins - 1, h). Unknown values are NaN."""
    padded = np.append(y, np.full(h, np.nan))
    return padded[origins[:-1, None] + np.arange(h)]


def combine(families: list[list[Array]], y: Array, origins: Array, h: int) -> tuple[Array, Array]:
    """Return the combined quantiles of the last forecast, (levels, h), and the weights of the families.

    A family is a list of members. A member is the quantiles of its forecasts, (levels, origins, h).
    """
    T = truth(y, origins, h)
    nu = (origins[-1] - origins[0]) / h
    known = np.isfinite(T)
    if not known.any():  # no past forecast can be checked: equal weights
        plain = np.mean([np.mean([member[:, -1] for member in members], axis=0) for members in families], axis=0)
        return _stretched(plain, np.full(len(LEVELS), UNTRIED)), np.full(len(families), 1 / len(families))
    quantiles, weights = _average([_average(members, T, known, 2 * nu)[0] for members in families], T, known, nu)
    return _calibrated(quantiles, T, known, nu)[:, -1], weights


def pinball(y: Array, quantiles: Array) -> Array:
    """Return the quantile loss, averaged over all levels. quantiles: (levels, ...)."""
    levels = LEVELS.reshape(-1, *[1] * np.ndim(y))
    return np.maximum(levels * (y - quantiles), (levels - 1) * (y - quantiles)).mean(axis=0)


def _average(members: list[Array], T: Array, known: Array, power: float) -> tuple[Array, Array]:
    loss = np.array([pinball(np.where(known, T, 0.0), q[:, :-1])[known].mean() for q in members])
    weights = (loss / max(loss.min(), 1e-300) + 1e-9) ** -power
    weights = np.where(np.isfinite(weights), weights, 0.0)
    weights = weights / weights.sum() if weights.sum() > 0 else np.full(len(members), 1 / len(members))
    return np.tensordot(weights, np.array(members), axes=1), weights


def _calibrated(q: Array, T: Array, known: Array, nu: float) -> Array:
    """Stretch the quantiles by the ratio of past errors to predicted deviations: its mean, or RMS for both ends."""
    median = q[MEDIAN, :-1]
    e = (T - median)[known]
    stretch = np.ones(len(LEVELS))
    untried = UNTRIED ** (1 / (1 + nu) ** 2)
    for i, where in ((1, slice(1, -1)), (0, slice(0, None, len(LEVELS) - 1))):
        above, below = (q[-1 - i, :-1] - median)[known], (median - q[i, :-1])[known]
        z = np.minimum(np.abs(e) / np.maximum(np.where(e > 0, above, below) / SCORES[-1 - i], 1e-12), FARTHEST)
        ratio = z.mean() / MEAN_ABSOLUTE if i else np.sqrt((z**2).mean())
        factor = np.clip(max(ratio, 1e-3) ** (nu / (nu + CAUTION)), 1 / LARGEST_FACTOR, LARGEST_FACTOR)
        stretch[where] = factor * untried * (1.0 if i else ENDS)
    return _stretched(q, stretch)


def _stretched(q: Array, factors: Array) -> Array:
    return np.sort(q[MEDIAN] + (q - q[MEDIAN]) * factors.reshape(-1, *[1] * (q.ndim - 1)), axis=0)
