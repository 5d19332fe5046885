"""Time-delay embedding: convert a series to inputs and targets."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from onlinegp.checks import Array, check_X, count
from onlinegp.sliding_windows import windows


def embed(
    series: ArrayLike, lags: int, *, horizon: int | None = None, target: ArrayLike | None = None
) -> tuple[Array, Array]:
    """Pair every target with `lags` samples of a series: of its own past, or of the signal that causes the target.

    ``X[i] = (s[t], s[t-1], ..., s[t-lags+1])`` and ``y[i] = target[t+horizon]``: the newest sample is first, as in
    :class:`onlinegp.Lagged`. The first row is the first one with all of its samples.

    Parameters
    ----------
    series : array_like of shape (n,)
        One sample per time step.
    lags : int
        Width of the embedding: the number of taps of a filter.
    horizon : int, optional
        How many steps ahead the target is. Without `target` at least 1, the default. With `target` the default is 0,
        and a negative number is a delay: an equalizer of delay 2 has horizon -2.
    target : array_like of shape (n,) or (n, outputs), optional
        Another signal, or several, such as those of two microphones, sampled at the same times; the series itself if
        None.

    Returns
    -------
    X : ndarray of shape (rows, lags)
    y : ndarray of shape (rows,) or (rows, outputs)

    Examples
    --------
    >>> import numpy as np, onlinegp as ogp
    >>> u = np.random.default_rng(0).normal(size=500)
    >>> echo = np.convolve(u, [0.5, -0.2, 0.1])[:500]
    >>> X, y = ogp.datasets.embed(u, 3, target=echo)  # identify what makes the echo of u
    >>> ogp.NLMS(intercept=False).fit(X, y).coef_.round(3).tolist()
    [0.5, -0.2, 0.1]
    """
    lags = count(lags=lags)
    s = _one_signal("series", series)
    d = s if target is None else _signals("target", target)
    if len(d) != len(s):
        raise ValueError(
            f"series and target must have the same number of samples, got {len(s)} and {len(d)}. Cut the longer one."
        )
    least = 1 if target is None else -len(s)
    horizon = max(least, 0) if horizon is None else count(least=least, horizon=horizon)
    first, end = max(lags - 1, -horizon), len(s) - max(horizon, 0)  # t of the first row, and after the last
    if first >= end:
        raise ValueError(
            f"series must have at least {first + len(s) - end + 1} samples with lags={lags} and horizon={horizon}, "
            f"got {len(s)}. Pass a longer series or fewer lags."
        )
    return windows(s[first - lags + 1 : end], lags), d[first + horizon : end + horizon].copy()


def _one_signal(name: str, values: ArrayLike) -> Array:
    signal = np.asarray(values)
    if signal.ndim != 1:
        raise ValueError(
            f"{name} must have one dimension, got shape {signal.shape}. Pass one column, {name}[:, 0], or embed each "
            f"column and put the rows side by side with np.hstack."
        )
    return _signals(name, signal)


def _signals(name: str, values: ArrayLike) -> Array:
    signals = np.asarray(values)
    return check_X(signals.reshape(-1, 1), name=name)[:, 0] if signals.ndim == 1 else check_X(signals, name=name)
