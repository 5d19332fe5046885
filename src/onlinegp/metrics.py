"""Metrics for predicted means and for Gaussian predictive distributions.

In all functions `y` is the observed value, `mean` the predicted value, and `std` the predicted standard deviation of
*y*, noise included, as returned by ``predict(X, return_std=True)``.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from onlinegp.change_detection import Cusum
from onlinegp.checks import Array, fraction
from onlinegp.predictions import Gaussian


def mse(y: ArrayLike, mean: ArrayLike) -> float:
    """Mean squared error, mean((y - mean)^2)."""
    y, mean = _pair(y, mean)
    return float(np.mean((y - mean) ** 2))


def rmse(y: ArrayLike, mean: ArrayLike) -> float:
    """Root mean squared error, in the units of y."""
    return float(np.sqrt(mse(y, mean)))


def nmse(y: ArrayLike, mean: ArrayLike) -> float:
    """Mean squared error divided by the variance of y: 1 if you predict the average, 0 without errors."""
    error, variance = mse(y, mean), float(np.var(np.asarray(y, dtype=np.float64)))
    if variance == 0.0:
        raise ValueError("y must vary, got a constant, whose variance is 0. Use mse instead.")
    return error / variance


def to_db(ratio: ArrayLike) -> Array:
    """Convert a ratio of powers to decibels, 10 log10(ratio). Zero gives minus infinity."""
    ratio = np.asarray(ratio, dtype=np.float64)
    if np.any(ratio < 0.0):
        raise ValueError(f"ratio must be zero or more, got {ratio.min()}. Pass a squared error, such as mse.")
    with np.errstate(divide="ignore"):
        return 10.0 * np.log10(ratio)


def log_density(y: ArrayLike, mean: ArrayLike, std: ArrayLike) -> Array:
    """Log of the Gaussian predictive density at y, one value per sample.

    ::

        log N(y | mean, std^2) = -((y - mean) / std)^2 / 2 - log(std) - log(2 pi) / 2

    If std is zero, the distribution is a point mass: plus infinity at y = mean, minus infinity elsewhere.
    """
    return _gaussian(y, mean, std).log_density(y)


def interval(mean: ArrayLike, std: ArrayLike, level: float = 0.95) -> tuple[Array, Array]:
    """Lower and upper end of the central interval that contains y with probability `level`."""
    return Gaussian(np.asarray(mean, dtype=np.float64), _non_negative(std)).interval(level)


def coverage(y: ArrayLike, mean: ArrayLike, std: ArrayLike, level: float = 0.95) -> float:
    """Share of y inside the central interval of probability `level`. It equals `level` if calibrated."""
    y = np.asarray(y, dtype=np.float64)
    lower, upper = _gaussian(y, mean, std).interval(level)
    return float(np.mean((lower <= y) & (y <= upper)))


def pit(y: ArrayLike, mean: ArrayLike, std: ArrayLike) -> Array:
    """Probability integral transform, Phi((y - mean) / std): uniform on [0, 1] if calibrated."""
    return _gaussian(y, mean, std).cdf(y)


def tail(y: ArrayLike, mean: ArrayLike, std: ArrayLike) -> Array:
    """Two-sided tail probability of y, 2 Phi(-|y - mean| / std): uniform on [0, 1] if calibrated, tiny for outliers."""
    return _gaussian(y, mean, std).tail(y)


def drifts(z: ArrayLike, rate: float = 1e-4) -> list[tuple[int, str]]:
    """Detect changes that become visible only over many rows: biased predictions, or a wrong spread.

    The test computes a cumulative sum for each kind of change; see :class:`onlinegp.change_detection.Cusum`.

    Parameters
    ----------
    z : array-like of shape (n,)
        Values that are N(0, 1) if the predictions are right, such as `Trace.z`, or (y - mean) / std.
    rate : float
        The largest rate of false alarms per row.

    Returns
    -------
    list of (int, str)
        The alarms: each is a row and "above" (y is above its predictions), "below", "wide" (errors are larger than
        predicted) or "narrow". After an alarm the sum restarts at zero, so a lasting change is reported again.
    """
    z = np.asarray(z, dtype=np.float64)
    if z.ndim != 1:
        raise ValueError(f"z must have shape (n,), got {z.shape}. Pass one output at a time.")
    return Cusum(fraction(rate=rate)).add(z.tolist())


def _pair(y: ArrayLike, mean: ArrayLike) -> tuple[Array, Array]:
    y, mean = np.asarray(y, dtype=np.float64), np.asarray(mean, dtype=np.float64)
    if y.shape != mean.shape:  # (n,) and (n, 1) would silently broadcast to (n, n)
        raise ValueError(f"y and mean must have the same shape, got {y.shape} and {mean.shape}. Reshape one.")
    if y.size == 0:
        raise ValueError(f"y must have at least one sample, got shape {y.shape}.")
    return y, mean


def _gaussian(y: ArrayLike, mean: ArrayLike, std: ArrayLike) -> Gaussian:
    """Return normal predictions after checking their shapes against y."""
    y, mean = _pair(y, mean)
    std = _non_negative(std)
    if std.ndim and std.shape != y.shape:
        raise ValueError(f"std must be a number or have the shape of y, got {std.shape} and {y.shape}. Reshape std.")
    return Gaussian(mean, std)


def _non_negative(std: ArrayLike) -> Array:
    std = np.asarray(std, dtype=np.float64)
    if not np.all(std >= 0.0):
        bad = std[~(std >= 0.0)].flat[0]
        raise ValueError(f"std must be zero or more, got {bad}. Pass the square root of the variance of y.")
    return std
