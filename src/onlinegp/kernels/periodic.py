"""The periodic kernel."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from onlinegp.checks import Array
from onlinegp.kernels.base import Kernel, Scales, each_positive, per_dimension
from onlinegp.kernels.stationary import squared_distances


@dataclass(frozen=True, eq=False)
class Periodic(Kernel):
    """The periodic kernel, k(x, z) = exp(-2 sum_d sin^2(pi (x_d - z_d) / period_d) / length_scale_d^2).

    This is the RBF kernel of points (cos, sin)(2 pi x_d / period_d) on unit circles. Their squared distance is 4
    sin^2(pi (x_d - z_d) / period_d), and the length scale is a distance on these circles.
    """

    length_scale: Scales = 1.0
    period: Scales = 1.0

    def __post_init__(self) -> None:
        each_positive(self, "length_scale", "It is a distance on the unit circle; 1 is a good start.")
        each_positive(self, "period", "It is a distance, in the units of the inputs.")

    def __call__(self, X: Array, Z: Array | None = None) -> Array:
        P = self._on_circles(X)
        return np.exp(-0.5 * squared_distances(P, P if Z is None else self._on_circles(Z), np.array(1.0)))

    def row(self, C: Array, x: Array) -> Array:
        s = np.sin(np.pi * (C - x) / per_dimension(x.size, period=self.period))
        s /= per_dimension(x.size, length_scale=self.length_scale)
        return np.exp(-2.0 * np.einsum("ij,ij->i", s, s))

    def diag(self, X: Array) -> Array:
        return np.ones(len(X))

    def derivatives(self, X: Array) -> Iterator[Array]:
        # with b = 2 pi (x_d - z_d) / period_d:
        #   dk/dlog length_scale_d = k 4 sin^2(b/2) / length_scale_d^2
        #   dk/dlog period_d       = k b sin(b) / length_scale_d^2
        K, d = self(X), X.shape[1]
        angles = 2.0 * np.pi * X / np.broadcast_to(self.period, d)
        pairs = list(zip(angles.T, np.broadcast_to(self.length_scale, d), strict=True))
        by_length = (4.0 * np.sin(_outer(b / 2.0)) ** 2 / scale**2 for b, scale in pairs)
        by_period = (_outer(b) * np.sin(_outer(b)) / scale**2 for b, scale in pairs)
        yield from (K * D for D in (by_length if np.ndim(self.length_scale) else [sum(by_length)]))
        yield from (K * D for D in (by_period if np.ndim(self.period) else [sum(by_period)]))

    def _on_circles(self, X: Array) -> Array:
        scales = per_dimension(X.shape[1], length_scale=self.length_scale)
        period = per_dimension(X.shape[1], period=self.period)
        angles = 2.0 * np.pi * np.fmod(X, period) / period  # fmod is exact: no digits are lost far from zero
        return np.hstack([np.cos(angles) / scales, np.sin(angles) / scales])


def _outer(b: Array) -> Array:
    return np.subtract.outer(b, b)
