"""Two nonlinear channels: a channel that changes abruptly, with held-out samples, and a channel to equalize."""

from __future__ import annotations

import numpy as np

from onlinegp.checks import Array
from onlinegp.sliding_windows import windows

Tests = list[tuple[int, Array, Array]]  # the number of samples up to which a test set applies, its inputs and targets


def switching(
    inputs: Array, H: Array, *, rows: int, switch: int, snr: float, rng: np.random.Generator
) -> tuple[Array, Array, Tests]:
    """Return X and y of tanh(h . x) plus noise. h is the first row of H before the switch and the second after it.

    The noise is `snr` dB below the output. The inputs after the first `rows` are for noise-free test sets.
    """
    X = windows(inputs, H.shape[1])
    outputs = np.tanh(X @ H.T)  # one column per channel
    clean = np.concatenate([outputs[:switch, 0], outputs[switch:rows, 1]])
    y = clean + np.sqrt(10.0 ** (-snr / 10.0)) * clean.std() * rng.standard_normal(rows)
    return X[:rows], y, [(until, X[rows:], outputs[rows:, i]) for i, until in enumerate((switch, rows))]


def equalization(n: int, spread: float, rng: np.random.Generator) -> tuple[Array, Array]:
    """Return n windows y[t], ..., y[t+4] of the received signal, and the sent signal u[t+1].

    u is -1 or 1, z[t] = u[t] + 0.5 u[t-1], and y = z - 0.9 z^2 plus noise with the standard deviation `spread`.
    """
    u = rng.choice([-1.0, 1.0], n + 4)
    z = u + 0.5 * np.concatenate([[0.0], u[:-1]])
    y = z - 0.9 * z**2 + spread * rng.standard_normal(n + 4)
    return np.ascontiguousarray(np.lib.stride_tricks.sliding_window_view(y, 5)), u[1 : 1 + n]
