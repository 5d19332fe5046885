"""The distance between rows that determines which rows are nearest, for a given kernel."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from onlinegp.checks import Array
from onlinegp.kernels import Kernel, Periodic, Stationary
from onlinegp.kernels.base import per_dimension
from onlinegp.kernels.spec import postfix

FARTHEST = 1e150  # coordinates are clipped here, because larger squares overflow


@dataclass(frozen=True)
class Circles:
    """The circles on which a periodic kernel places inputs: radius_j (cos, sin)(frequency_j x_j).

    Attributes
    ----------
    frequency, radius : arrays, (d,)
    """

    frequency: Array
    radius: Array


@dataclass(frozen=True)
class Distance:
    """Map rows to points such that the Euclidean distance of the points is the distance of the rows.

    The squared distance r2(x, z) is a sum over the parts of the kernel. A stationary part adds sum_j (x_j - z_j)^2 /
    length_scale_j^2; a periodic part adds the squared distance of its points on circles. All stationary parts together
    give one rate per input. A kernel without such parts has the Euclidean distance.

    Attributes
    ----------
    rates : array, (d,), or (0,) if all parts are periodic
    circles : one object per periodic part
    """

    rates: Array
    circles: tuple[Circles, ...] = ()

    @classmethod
    def of(cls, kernel: Kernel, features: int) -> Distance:
        """Return the distance of a kernel."""
        parts = postfix(kernel)
        kernel(np.zeros((1, features)))  # raises an error if the kernel has another width
        circles = tuple(_circles(part, features) for part in parts if isinstance(part, Periodic))
        scales = [
            per_dimension(features, length_scale=part.length_scale) for part in parts if isinstance(part, Stationary)
        ]
        if not scales:
            return cls(np.ones(0 if circles else features), circles)
        squares = sum(_rates(scale, features) ** 2 for scale in scales)
        return cls(np.sqrt(squares), circles)

    def places(self, X: Array) -> Array:
        """Return the points of the rows of X (n, d), (n, w)."""
        with np.errstate(over="ignore"):
            straight = [np.clip(X * self.rates, -FARTHEST, FARTHEST)] if self.rates.size else []
        warped = [c.radius * function(c.frequency * X) for c in self.circles for function in (np.cos, np.sin)]
        return np.hstack(straight + warped)


def squared(U: Array, u: Array) -> Array:
    """Return the squared distances of the points U (n, w) to u (w,), summed in the order of the columns."""
    r2 = np.zeros(len(U))
    for j in range(len(u)):
        e = U[:, j] - u[j]
        r2 += e * e
    return r2


def _rates(scale: Array, features: int) -> Array:
    """Return 1 / length_scale, (d,), clipped so that its square does not overflow."""
    with np.errstate(over="ignore", divide="ignore"):
        return np.minimum(np.broadcast_to(1.0 / scale, features), FARTHEST)


def _circles(kernel: Periodic, features: int) -> Circles:
    frequency = 2.0 * np.pi / per_dimension(features, period=kernel.period)
    radius = _rates(per_dimension(features, length_scale=kernel.length_scale), features)
    return Circles(np.broadcast_to(frequency, features).copy(), radius.copy())
