"""A nonlinear channel that changes at once, with held-out samples of the channel before and of the one after."""

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
