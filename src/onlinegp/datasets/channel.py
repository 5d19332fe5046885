"""A nonlinear channel whose coefficients change abruptly, to test whether a filter tracks changes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from onlinegp.checks import Array, choice, count, finite, non_negative
from onlinegp.datasets.embedding import embed
from onlinegp.sliding_windows import windows


def channel_switch(
    n: int = 1500,
    *,
    switch: int | None = 500,
    taps: int = 5,
    lags: int | None = None,
    noise: float = 0.01,
    color: float = 0.0,
    nonlinearity: Callable[[Array], Array] = np.tanh,
    regressor: str = "input",
    seed: int | np.random.Generator = 0,
) -> tuple[Array, Array]:
    """Simulate a linear channel followed by a nonlinearity. The channel switches once.

    A Gaussian sequence ``u`` passes through a finite impulse response ``h`` and a nonlinearity::

        z[t] = nonlinearity(h[0] u[t] + ... + h[taps-1] u[t-taps+1]) + noise

    The coefficients are drawn at random, once for the rows before `switch` and again for the rows
    from `switch` on. They are scaled so that the input of the nonlinearity has unit variance.

    Parameters
    ----------
    n : int, default 1500
        Number of rows.
    switch : int or None, default 500
        First row of the second channel; None keeps the first channel throughout.
    taps : int, default 5
        Length of the impulse response.
    lags : int or None, default None
        Width of ``X``; None uses the number of taps.
    noise : float, default 0.01
        Variance of the noise added to the output.
    color : float, default 0.0
        Correlation of neighboring samples of ``u``. With white noise (0) the next output is hardly predictable (about
        -1 dB for a linear predictor), with 0.95 more so (about -6 dB).
    nonlinearity : callable, default numpy.tanh
        Applied sample by sample.
    regressor : {"input", "output"}, default "input"
        "input": ``X`` contains the input of the channel, ``u[t], u[t-1], ...``, and the task is to identify the
        channel. "output": ``X`` contains past outputs, ``z[t-1], z[t-2], ...``, and the task is to predict the next
        sample of the series.
    seed : int or numpy.random.Generator, default 0

    Returns
    -------
    X : ndarray of shape (n, lags)
    y : ndarray of shape (n,)

    References
    ----------
    S. Van Vaerenbergh, J. Fernandez-Bes and V. Elvira, "On the relationship between online Gaussian
    process regression and kernel least mean squares algorithms", MLSP 2016, section "Online prediction of
    time series with a model switch".
    """
    n, taps = count(n=n), count(taps=taps)
    lags = taps if lags is None else count(lags=lags)
    noise = non_negative(noise=noise)
    color = _correlation(color)
    regressor = choice(("input", "output"), regressor=regressor)
    switch = n if switch is None else count(switch=switch)
    if switch > n:
        raise ValueError(f"switch must be at most n = {n}, got {switch}. Use switch=None for a constant channel.")

    rng = np.random.default_rng(seed)
    before, after = _coefficients(rng, taps, color), _coefficients(rng, taps, color)
    past = lags + taps  # number of samples before the first row that fill both windows
    u = _colored(rng.standard_normal(past + n), color)
    U = windows(u, taps)[-(lags + n) :]  # (lags + n, taps): the n rows, and `lags` rows before them
    v = np.concatenate([U[: lags + switch] @ before, U[lags + switch :] @ after])
    z = nonlinearity(v) + np.sqrt(noise) * rng.standard_normal(lags + n)
    if regressor == "output":
        return embed(z, lags)
    return windows(u, lags)[-n:], z[-n:]


def _correlation(color: float) -> float:
    color = finite(color=color)
    if not -1.0 < color < 1.0:
        raise ValueError(f"color must lie between -1 and 1, got {color}. Use 0 for white noise.")
    return color


def _coefficients(rng: np.random.Generator, taps: int, color: float) -> Array:
    """Draw a random h with h' R h = 1, where R[i, j] = color^|i-j| is the covariance of the channel's input."""
    h = rng.standard_normal(taps)
    lag = np.arange(taps)
    R = color ** np.abs(lag[:, None] - lag)
    return h / np.sqrt(h @ R @ h)


def _colored(e: Array, color: float) -> Array:
    """Return the stationary sequence u[t] = color u[t-1] + sqrt(1 - color^2) e[t] with u[0] = e[0]."""
    if color == 0.0:
        return e
    u = np.sqrt(1.0 - color**2) * e
    u[0] = e[0]
    for t in range(1, len(u)):
        u[t] += color * u[t - 1]
    return u
