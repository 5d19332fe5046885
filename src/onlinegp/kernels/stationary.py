"""Stationary kernels: functions of r2 = sum_d (x_d - z_d)^2 / length_scale_d^2."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from onlinegp.checks import Array, positive
from onlinegp.kernels.base import Kernel, Pullback, Scales, each_positive, per_dimension

FARTHEST = 1e300  # limit of squared distances, because infinity times exp(-infinity) is NaN


def squared_distances(X: Array, Z: Array, scales: Array) -> Array:
    """Return sum_d (x_d - z_d)^2 / scales_d^2, (n, m). It sums squares, so the result is never negative."""
    if X is Z and len(X) == 1:  # fast path for models that check the width of their kernel
        return np.zeros((1, 1))
    from scipy.spatial.distance import cdist  # this import takes a quarter of a second

    if scales.ndim:
        r2 = cdist(X, Z, "sqeuclidean", w=scales**-2.0)
    else:
        r2 = cdist(X, Z, "sqeuclidean")
        r2 /= scales**2
    return np.minimum(r2, FARTHEST, out=r2)


@dataclass(frozen=True, eq=False)
class Stationary(Kernel):
    """Base class of stationary kernels, k(x, z) = of(r2). A subclass defines `of` and its derivative `slope`.

    This differs from KAFBOX: r2 is the sum of squared differences. KAFBOX's |x|^2 + |z|^2 - 2 x.z loses all digits for
    inputs that are far from zero and close to each other, and can even become negative, so that k(x, z) exceeds k(x,
    x).
    """

    length_scale: Scales = 1.0

    def __post_init__(self) -> None:
        each_positive(self, "length_scale", "It is a distance, in the units of the inputs.")

    def of(self, r2: Array) -> Array:
        """Return the value at the squared scaled distance `r2`."""
        raise TypeError(f"{type(self).__name__} must define of(r2).")

    def slope(self, r2: Array) -> Array:
        """Return d of / d r2. If the derivative is infinite (r2 = 0), return any finite value."""
        raise TypeError(f"{type(self).__name__} must define slope(r2).")

    def with_slope(self, r2: Array) -> tuple[Array, Array]:
        """Return of(r2) and slope(r2), computed together because both may need the same exponential."""
        return self.of(r2), self.slope(r2)

    def others(self, r2: Array) -> Iterator[Array]:
        """Yield d of / d log h for each hyperparameter h declared after the length scale."""
        yield from ()

    def __call__(self, X: Array, Z: Array | None = None) -> Array:
        return self.of(self._r2(X, X if Z is None else Z))

    def row(self, C: Array, x: Array) -> Array:
        u = (C - x) / per_dimension(x.size, length_scale=self.length_scale)
        return self.of(np.minimum(np.einsum("ij,ij->i", u, u), FARTHEST))

    def diag(self, X: Array) -> Array:
        return self.of(np.zeros(len(X)))

    def derivatives(self, X: Array) -> Iterator[Array]:
        # d r2 / d log length_scale_d = -2 (x_d - z_d)^2 / length_scale_d^2
        r2 = self._r2(X, X)
        slope = self.slope(r2)
        if np.ndim(self.length_scale) == 0:
            yield -2.0 * slope * r2
        else:
            for u in (X / self.length_scale).T:
                yield -2.0 * slope * np.subtract.outer(u, u) ** 2
        yield from self.others(r2)

    def with_pullback(self, X: Array) -> tuple[Array, Pullback]:
        r2 = self._r2(X, X)
        K, slope = self.with_slope(r2)

        def pullback(W: Array) -> Array:
            M = W * slope
            if np.ndim(self.length_scale) == 0:
                scale = np.array([-2.0 * np.vdot(M, r2)])
            else:
                # sum_ij M_ij (u_i - u_j)^2 = 2 (sum_i (M 1)_i u_i^2 - u' M u), all dimensions at once
                M[r2 == 0.0] = 0.0  # these terms are zero (u_i = u_j); adding them would only lose digits
                U = (X - X.mean(axis=0)) / self.length_scale
                scale = -4.0 * (M.sum(axis=1) @ U**2 - np.einsum("id,id->d", U, M @ U))
            return np.append(scale, [np.vdot(W, D) for D in self.others(r2)])

        return K, pullback

    def _r2(self, X: Array, Z: Array) -> Array:
        return squared_distances(X, Z, per_dimension(X.shape[1], length_scale=self.length_scale))


@dataclass(frozen=True, eq=False)
class RBF(Stationary):
    """The Gaussian (squared exponential) kernel, k = exp(-r2 / 2)."""

    def of(self, r2: Array) -> Array:
        return np.exp(-0.5 * r2)

    def slope(self, r2: Array) -> Array:
        return -0.5 * np.exp(-0.5 * r2)

    def with_slope(self, r2: Array) -> tuple[Array, Array]:
        k = self.of(r2)
        return k, -0.5 * k


@dataclass(frozen=True, eq=False)
class Matern12(Stationary):
    """The Matern kernel with nu = 1/2, k = exp(-r): not differentiable. Over time this is the AR(1) process."""

    def of(self, r2: Array) -> Array:
        return np.exp(-np.sqrt(r2))

    def slope(self, r2: Array) -> Array:
        # -exp(-r) / 2r is always multiplied by at most r^2, so the product is negligible below r = 1e-8
        r = np.maximum(np.sqrt(r2), 1e-8)
        return -0.5 * np.exp(-r) / r


@dataclass(frozen=True, eq=False)
class Matern32(Stationary):
    """The Matern kernel with nu = 3/2, k = (1 + s) exp(-s) with s = sqrt(3) r: once differentiable."""

    def of(self, r2: Array) -> Array:
        s = np.sqrt(3.0 * r2)
        return (1.0 + s) * np.exp(-s)

    def slope(self, r2: Array) -> Array:
        return -1.5 * np.exp(-np.sqrt(3.0 * r2))

    def with_slope(self, r2: Array) -> tuple[Array, Array]:
        s = np.sqrt(3.0 * r2)
        e = np.exp(-s)
        s += 1.0
        s *= e
        e *= -1.5
        return s, e


@dataclass(frozen=True, eq=False)
class Matern52(Stationary):
    """The Matern kernel with nu = 5/2, k = (1 + s + s^2 / 3) exp(-s) with s = sqrt(5) r: twice differentiable."""

    def of(self, r2: Array) -> Array:
        s = np.sqrt(5.0 * r2)
        return (1.0 + s + s * s / 3.0) * np.exp(-s)

    def slope(self, r2: Array) -> Array:
        s = np.sqrt(5.0 * r2)
        return -5.0 / 6.0 * (1.0 + s) * np.exp(-s)

    def with_slope(self, r2: Array) -> tuple[Array, Array]:
        s = np.sqrt(5.0 * r2)
        e = np.exp(-s)
        first = (1.0 + s) * e
        s *= s  # in place, because a matrix of a thousand rows does not fit into the cache
        s /= 3.0
        s *= e
        s += first
        first *= -5.0 / 6.0
        return s, first


@dataclass(frozen=True, eq=False)
class RationalQuadratic(Stationary):
    """The rational quadratic kernel, k = (1 + s)^-alpha with s = r2 / (2 alpha): a mixture of many length scales."""

    alpha: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        positive(
            "Small values mix many length scales; use RBF for the limit of large values.",
            alpha=self.alpha,
        )

    def of(self, r2: Array) -> Array:
        return np.exp(-self.alpha * np.log1p(r2 / (2.0 * self.alpha)))

    def slope(self, r2: Array) -> Array:
        return -0.5 * self.of(r2) / (1.0 + r2 / (2.0 * self.alpha))

    def others(self, r2: Array) -> Iterator[Array]:
        s = r2 / (2.0 * self.alpha)
        yield self.alpha * self.of(r2) * (s / (1.0 + s) - np.log1p(s))
