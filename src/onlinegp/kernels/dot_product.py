"""Kernels of the dot product: linear and polynomial functions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from onlinegp.checks import Array, count, non_negative, positive
from onlinegp.kernels.base import FIXED, Kernel, Pullback, Scales, each_positive, per_dimension


@dataclass(frozen=True, eq=False)
class Linear(Kernel):
    """The linear kernel, k(x, z) = sum_d variance_d x_d z_d.

    The prior of linear functions w.x. `variance` is the prior variance of the weights: one value for all weights, or
    one per weight. Add a constant (`Linear() + 1.0`) for functions that do not pass through the origin.
    """

    variance: Scales = 1.0

    def __post_init__(self) -> None:
        each_positive(self, "variance", "It is the prior variance of the weights.")

    def __call__(self, X: Array, Z: Array | None = None) -> Array:
        # the square root on both sides keeps K(X, X) exactly symmetric
        root = np.sqrt(per_dimension(X.shape[1], variance=self.variance))
        A = root * X
        return A @ (A if Z is None else root * Z).T

    def row(self, C: Array, x: Array) -> Array:
        return C @ (per_dimension(x.size, variance=self.variance) * x)

    def diag(self, X: Array) -> Array:
        return (per_dimension(X.shape[1], variance=self.variance) * X**2).sum(axis=1)

    def derivatives(self, X: Array) -> Iterator[Array]:
        variances = per_dimension(X.shape[1], variance=self.variance)
        if variances.ndim == 0:
            yield self(X)
        else:
            yield from (v * np.multiply.outer(x, x) for v, x in zip(variances, X.T, strict=True))

    def with_pullback(self, X: Array) -> tuple[Array, Pullback]:
        variances = per_dimension(X.shape[1], variance=self.variance)

        def pullback(W: Array) -> Array:
            # sum_ij W_ij v_d x_id x_jd = v_d x_d' W x_d, all dimensions at once
            each = variances * np.einsum("id,id->d", X, W @ X)
            return each if variances.ndim else np.array([each.sum()])

        return self(X), pullback


@dataclass(frozen=True, eq=False)
class Polynomial(Kernel):
    """The polynomial kernel, k(x, z) = (scale x.z + offset)^degree.

    `degree` is an integer and is not tuned. `offset=0` gives the homogeneous polynomial.
    """

    degree: int = field(default=2, metadata=FIXED)
    offset: float = 1.0
    scale: float = 1.0

    def __post_init__(self) -> None:
        count("Use 2 for quadratic functions, 1 for linear ones.", degree=self.degree)
        non_negative("A negative offset makes the kernel indefinite; use 0 or 1.", offset=self.offset)
        positive("It multiplies the dot product; use 1.0 to keep the dot product unchanged.", scale=self.scale)

    def __call__(self, X: Array, Z: Array | None = None) -> Array:
        return (self.scale * (X @ (X if Z is None else Z).T) + self.offset) ** self.degree

    def row(self, C: Array, x: Array) -> Array:
        return (self.scale * (C @ x) + self.offset) ** self.degree

    def diag(self, X: Array) -> Array:
        return (self.scale * np.einsum("ij,ij->i", X, X) + self.offset) ** self.degree

    def derivatives(self, X: Array) -> Iterator[Array]:
        dots = self.scale * (X @ X.T)
        outer = self.degree * (dots + self.offset) ** (self.degree - 1)
        yield self.offset * outer
        yield dots * outer
