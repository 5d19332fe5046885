"""The covariance of a function that changes: a kernel over the inputs times an AR(1) process in time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from onlinegp.checks import Array
from onlinegp.kernels import Kernel, Matern12
from onlinegp.kernels.base import Pullback


@dataclass(frozen=True, eq=False)
class Tracked(Kernel):
    """The kernel of a changing function: k(x, z) a^|t - u| for rows [x, t], with a = exp(-1 / time.length_scale)."""

    kernel: Kernel
    time: Matern12

    def __call__(self, X: Array, Z: Array | None = None) -> Array:
        Z = X if Z is None else Z
        return self.kernel(X[:, :-1], Z[:, :-1]) * self.time(X[:, -1:], Z[:, -1:])

    def diag(self, X: Array) -> Array:
        return self.kernel.diag(X[:, :-1])

    def derivatives(self, X: Array) -> Iterator[Array]:
        x, t = X[:, :-1], X[:, -1:]
        T = self.time(t)
        yield from (D * T for D in self.kernel.derivatives(x))
        K = self.kernel(x)
        yield from (K * D for D in self.time.derivatives(t))

    def with_pullback(self, X: Array) -> tuple[Array, Pullback]:
        # sum_ij W_ij (dK T + K dT)_ij = <W o T, dK> + <W o K, dT>
        K, in_space = self.kernel.with_pullback(X[:, :-1])
        T, in_time = self.time.with_pullback(X[:, -1:])
        return K * T, lambda W: np.append(in_space(W * T), in_time(W * K))
