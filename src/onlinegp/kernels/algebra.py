"""Combinations of kernels (sums, products, scaling), and the constant kernel."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from onlinegp.checks import Array, positive
from onlinegp.kernels.base import Kernel, Pullback


def _check_kernel(owner: Kernel, **argument: Any) -> None:
    ((name, value),) = argument.items()
    if not isinstance(value, Kernel):
        raise TypeError(
            f"{name} of {type(owner).__name__} must be a kernel, got {value!r} "
            f"({type(value).__name__}). Pass an instance, such as RBF(length_scale=1.0)."
        )


@dataclass(frozen=True, eq=False)
class Constant(Kernel):
    """The constant kernel, k(x, z) = variance."""

    variance: float = 1.0

    def __post_init__(self) -> None:
        positive(
            "It is the variance of an unknown constant. Without a constant, leave the term out.",
            variance=self.variance,
        )

    def __call__(self, X: Array, Z: Array | None = None) -> Array:
        return np.full((len(X), len(X if Z is None else Z)), float(self.variance))

    def row(self, C: Array, x: Array) -> Array:
        return np.full(len(C), float(self.variance))

    def diag(self, X: Array) -> Array:
        return np.full(len(X), float(self.variance))

    def derivatives(self, X: Array) -> Iterator[Array]:
        yield self(X)


@dataclass(frozen=True, eq=False)
class Scaled(Kernel):
    """A kernel multiplied by a number, k(x, z) = variance * kernel(x, z). Written as `2.0 * kernel`."""

    kernel: Kernel
    variance: float = 1.0

    def __post_init__(self) -> None:
        _check_kernel(self, kernel=self.kernel)
        positive("The scaled kernel must stay positive semidefinite.", variance=self.variance)

    def __call__(self, X: Array, Z: Array | None = None) -> Array:
        return self.variance * self.kernel(X, Z)

    def row(self, C: Array, x: Array) -> Array:
        return self.variance * self.kernel.row(C, x)

    def diag(self, X: Array) -> Array:
        return self.variance * self.kernel.diag(X)

    def derivatives(self, X: Array) -> Iterator[Array]:
        for D in self.kernel.derivatives(X):
            yield self.variance * D
        yield self(X)

    def with_pullback(self, X: Array) -> tuple[Array, Pullback]:
        K, inner = self.kernel.with_pullback(X)
        return self.variance * K, lambda W: self.variance * np.append(inner(W), np.vdot(W, K))


@dataclass(frozen=True, eq=False)
class Pair(Kernel):
    """Base class of the kernels that combine two kernels."""

    left: Kernel
    right: Kernel

    def __post_init__(self) -> None:
        _check_kernel(self, left=self.left)
        _check_kernel(self, right=self.right)


@dataclass(frozen=True, eq=False)
class Sum(Pair):
    """The sum of two kernels, k(x, z) = left(x, z) + right(x, z). Written as `left + right`."""

    def __call__(self, X: Array, Z: Array | None = None) -> Array:
        return self.left(X, Z) + self.right(X, Z)

    def row(self, C: Array, x: Array) -> Array:
        return self.left.row(C, x) + self.right.row(C, x)

    def diag(self, X: Array) -> Array:
        return self.left.diag(X) + self.right.diag(X)

    def derivatives(self, X: Array) -> Iterator[Array]:
        yield from self.left.derivatives(X)
        yield from self.right.derivatives(X)

    def with_pullback(self, X: Array) -> tuple[Array, Pullback]:
        L, left = self.left.with_pullback(X)
        R, right = self.right.with_pullback(X)
        return L + R, lambda W: np.append(left(W), right(W))


@dataclass(frozen=True, eq=False)
class Product(Pair):
    """The product of two kernels, k(x, z) = left(x, z) * right(x, z). Written as `left * right`."""

    def __call__(self, X: Array, Z: Array | None = None) -> Array:
        return self.left(X, Z) * self.right(X, Z)

    def row(self, C: Array, x: Array) -> Array:
        return self.left.row(C, x) * self.right.row(C, x)

    def diag(self, X: Array) -> Array:
        return self.left.diag(X) * self.right.diag(X)

    def derivatives(self, X: Array) -> Iterator[Array]:
        L, R = self.left(X), self.right(X)
        yield from (D * R for D in self.left.derivatives(X))
        yield from (L * D for D in self.right.derivatives(X))

    def with_pullback(self, X: Array) -> tuple[Array, Pullback]:
        # sum_ij W_ij (dL R + L dR)_ij = <W o R, dL> + <W o L, dR>
        L, left = self.left.with_pullback(X)
        R, right = self.right.with_pullback(X)
        return L * R, lambda W: np.append(left(W * R), right(W * L))
