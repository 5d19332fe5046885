"""NORMA with the decreasing step of the paper. The NORMA of this library has a constant step."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from onlinegp.checks import Array
from onlinegp.kernels import Kernel


@dataclass(frozen=True)
class FallingNORMA:
    """NORMA with a decreasing step, step_t = step / t^power: alpha <- [(1 - step_t leak) alpha; step_t e].

    J. Kivinen, A. J. Smola and R. C. Williamson, "Online learning with kernels", IEEE Trans. Signal Processing, 2004.
    """

    kernel: Kernel
    step: float
    leak: float
    budget: int
    power: float = 0.5

    def means(self, X: Array, y: Array) -> Array:
        """Return the prediction of each row before it is learned."""
        alpha, means = np.zeros(len(X)), np.empty(len(X))
        for t in range(len(X)):
            window = slice(max(0, t - self.budget), t)
            k = self.kernel.row(X[window], X[t])
            means[t] = k @ alpha[window]
            step = self.step / (t + 1.0) ** self.power
            alpha[window] *= 1.0 - step * self.leak
            alpha[t] = step * (y[t] - k @ alpha[window])
        return means
