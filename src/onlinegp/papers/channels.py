"""Nonlinear channels: one that changes at once, with held-out samples of both, and one to be equalized."""

from __future__ import annotations

import numpy as np

from onlinegp.checks import Array
from onlinegp.lags import windows

Tests = list[tuple[int, Array, Array]]  # the samples up to which a test set is in force, its inputs and targets


def switching(
    inputs: Array, H: Array, *, rows: int, switch: int, snr: float, rng: np.random.Generator
) -> tuple[Array, Array, Tests]:
    """Return X and y of tanh(h . x) plus noise, h the first row of H before the switch and the second after it.

    The noise is `snr` dB below the output. The inputs that are left after `rows` of them make the noise-free test sets.
    """
    X = windows(inputs, H.shape[1])
    outputs = np.tanh(X @ H.T)  # one column for each channel
    clean = np.concatenate([outputs[:switch, 0], outputs[switch:rows, 1]])
    y = clean + np.sqrt(10.0 ** (-snr / 10.0)) * clean.std() * rng.standard_normal(rows)
    return X[:rows], y, [(until, X[rows:], outputs[rows:, i]) for i, until in enumerate((switch, rows))]


def equalization(n: int, spread: float, rng: np.random.Generator) -> tuple[Array, Array]:
    """Return n windows y[t], ..., y[t+4] of what is received, and the u[t+1] that was sent.

    u is -1 or 1, z[t] = u[t] + 0.5 u[t-1], and y = z - 0.9 z^2 plus noise with the standard deviation `spread`.
    """
    u = rng.choice([-1.0, 1.0], n + 4)
    z = u + 0.5 * np.concatenate([[0.0], u[:-1]])
    y = z - 0.9 * z**2 + spread * rng.standard_normal(n + 4)
    return np.ascontiguousarray(np.lib.stride_tricks.sliding_window_view(y, 5)), u[1 : 1 + n]
