"""The coherence of a sample with the centers of an expansion."""

from __future__ import annotations

import numpy as np

from onlinegp.checks import Array


def largest_coherence(k: Array, kxx: float, kcc: Array) -> float:
    """Return the largest |k(x, c)| / sqrt(k(x, x) k(c, c)) over the centers c, or 0 if there are none. k, kcc: (m,)."""
    if len(k) == 0 or kxx <= 0.0:
        return 0.0
    squares = k * k
    np.divide(squares, kcc, out=squares, where=kcc > 0.0)
    return float(np.sqrt(squares.max() / kxx))
