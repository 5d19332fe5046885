"""Confidence intervals of means over independent runs, with Student's t.

With R runs q_1, ..., q_R of mean m and standard deviation s, the interval m +- t s / sqrt(R), with t the quantile for
R - 1 degrees of freedom, contains the expected value with probability `level` if the q are normal.

Squared errors are positive and skewed, and are reported in dB. To first order, log m deviates from the log of the
expected value by the mean of (q_r - m) / m (the delta method), so the interval in dB is

    10 log10 m +- 10 / log(10) t s / (m sqrt(R))

For the ratio of two means over the same runs, the standard deviation of q_r / m - p_r / n replaces s / m, which cancels
the common effect of a difficult run on both algorithms.

S. Asmussen and P. W. Glynn, Stochastic Simulation, 2007, chapter III (intervals, delta method, common random numbers).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from onlinegp.checks import Array
from onlinegp.metrics import to_db

DB = 10.0 / np.log(10.0)


class Interval(NamedTuple):
    """A mean over runs, and the ends of its confidence interval, as numbers or arrays."""

    value: Array
    low: Array
    high: Array


def of_mean(runs: Array, level: float) -> Interval:
    """Return the interval of the mean of runs (R,) or (R, points)."""
    return _around(runs.mean(axis=0), runs, level)


def of_mean_in_db(runs: Array, level: float) -> Interval:
    """Return the interval in dB of the mean of positive runs (R,) or (R, points)."""
    return _around(to_db(runs.mean(axis=0)), DB * _relative(runs), level)


def of_difference(runs: Array, others: Array, level: float) -> Interval:
    """Return the interval of the difference of two means over the same runs."""
    return of_mean(runs - others, level)


def of_ratio_in_db(runs: Array, others: Array, level: float) -> Interval:
    """Return the interval in dB of the ratio of two means over the same runs, of positive values."""
    one, other = to_db(runs.mean(axis=0)), to_db(others.mean(axis=0))
    value = np.subtract(one, other, out=np.zeros_like(one), where=one != other)  # also if both errors are zero
    return _around(value, DB * (_relative(runs) - _relative(others)), level)


def _relative(runs: Array) -> Array:
    """Return the values divided by their mean, or zeros if all values are zero."""
    mean = runs.mean(axis=0)
    return np.divide(runs, mean, out=np.zeros_like(runs), where=mean > 0.0)


def _around(value: Array, runs: Array, level: float) -> Interval:
    """Return the interval around a value, from the spread of the runs."""
    from scipy.special import stdtrit

    half = stdtrit(len(runs) - 1, 0.5 + 0.5 * level) * runs.std(axis=0, ddof=1) / np.sqrt(len(runs))
    return Interval(value, value - half, value + half)
