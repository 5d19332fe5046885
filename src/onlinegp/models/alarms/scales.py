"""Choose the scale of a target: linear, or logarithmic if that makes its errors more normal."""

from __future__ import annotations

from math import log

import numpy as np

from onlinegp.checks import Array

SHARE = 0.1  # shift / mean, so that zeros have a logarithm
GAIN = 0.2  # the logarithm must increase the log density per row by this
ROUNDING = 1e-6  # negative values up to this share of the mean are rounding errors of float32
LARGEST_LOG = 690.0


def to_scale(y: Array, shift: float) -> Array:
    """Return log(y + shift), continued as a line below y = 0. If the shift is 0, return y."""
    if shift == 0.0:
        return y
    return np.where(y < 0.0, log(shift) + y / shift, np.log(np.maximum(y, 0.0) + shift))


def from_scale(z: Array, shift: float) -> Array:
    """Return y with to_scale(y) = z."""
    if shift == 0.0:
        return z
    zero = log(shift)
    return np.where(z < zero, shift * (z - zero), np.exp(np.minimum(z, LARGEST_LOG)) - shift)


def find_shift(y: Array) -> float:
    """Return the shift for `to_scale` if the logarithm is more likely, else 0.

    The log density per row of an autoregression of order 1 on z = T(y) is, up to a constant,
    mean log T'(y) - log(variance of its errors) / 2. A series with mostly zeros has no density and keeps its scale.
    """
    mean = float((y / len(y)).sum())
    zeros = np.count_nonzero(y <= ROUNDING * mean)
    if not SHARE * mean > 0.0 or y.min() < -ROUNDING * mean or 2 * zeros > len(y):
        return 0.0
    y = np.maximum(y, 0.0) / mean
    logs = np.log(y + SHARE)
    plain = _log_variance(y)
    better = plain < np.inf and -logs.mean() - 0.5 * _log_variance(logs) > GAIN - 0.5 * plain
    return SHARE * mean if better else 0.0


def _log_variance(z: Array) -> float:
    """Return the log variance of the errors of an autoregression of order 1, or infinity if it cannot be fitted."""
    before, after = z[:-1] - z[:-1].mean(), z[1:] - z[1:].mean()
    squares, products = float(before @ before), float(before @ after)
    left = float(after @ after) - (products * products / squares if squares > 0.0 else 0.0)
    return log(left / len(after)) if left > 1e-12 * squares else np.inf
