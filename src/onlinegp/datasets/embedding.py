"""Time-delay embedding: convert a series to inputs and targets."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from onlinegp.checks import Array, check_X, count
from onlinegp.sliding_windows import windows


def embed(series: ArrayLike, lags: int, *, horizon: int = 1) -> tuple[Array, Array]:
    """Pair each target with the `lags` samples that end `horizon` steps before the target.

    ``X[i] = (s[t], s[t-1], ..., s[t-lags+1])`` and ``y[i] = s[t+horizon]`` with ``t = i + lags - 1``:
    the newest sample is first, as in :class:`onlinegp.Lagged`.

    Parameters
    ----------
    series : array_like of shape (n,)
        One sample per time step.
    lags : int
        Width of the embedding.
    horizon : int, default 1
        The number of steps from the newest sample to the target.

    Returns
    -------
    X : ndarray of shape (n - lags - horizon + 1, lags)
    y : ndarray of shape (n - lags - horizon + 1,)
    """
    lags, horizon = count(lags=lags), count(horizon=horizon)
    s = np.asarray(series)
    if s.ndim != 1:
        raise ValueError(f"series must have one dimension, got shape {s.shape}. Pass one column: series[:, 0].")
    s = check_X(s.reshape(-1, 1), name="series")[:, 0]
    if len(s) < lags + horizon:
        raise ValueError(
            f"series must have at least lags + horizon = {lags + horizon} samples, got {len(s)}. "
            f"Pass a longer series or fewer lags."
        )
    return windows(s[:-horizon], lags), s[lags + horizon - 1 :]
