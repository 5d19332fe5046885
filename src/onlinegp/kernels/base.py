"""The base class of all kernels: a positive semidefinite function k(x, z), its hyperparameters and its algebra.

To write your own kernel, make a frozen dataclass that computes the kernel matrix (and, for speed, its diagonal)::

    @dataclass(frozen=True)
    class Brownian(Kernel):
        rate: float = 1.0

        def __call__(self, X, Z=None):  # k(x, z) = rate min(x, z), for one positive input
            return self.rate * np.minimum(X, (X if Z is None else Z).T)

        def diag(self, X):
            return self.rate * X[:, 0]

The fields of the dataclass are its hyperparameters: positive numbers or sequences of them.
`field(metadata=FIXED)` marks a field that is not a hyperparameter. The base class provides rows, names,
algebra and gradients (by central differences). Override `row` and `derivatives` where speed matters.
"""

from __future__ import annotations

import dataclasses
import numbers
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from onlinegp.checks import Array, positive

Scales = float | Sequence[float] | NDArray[np.float64]  # one number for all dimensions, or one per dimension

Pullback = Callable[[Array], Array]  # W -> sum_ij W_ij dK_ij/dtheta, (n, n) -> (p,)

FIXED: Mapping[str, Any] = {"fixed": True}  # metadata of a field that is not a hyperparameter


@dataclass(frozen=True, eq=False)
class Kernel:
    """Base class of all kernels. X: (n, d). Z: (m, d). Both are float64, and kernels do not check them.

    Hyperparameters are positive. `theta` contains their logarithms in the order of declaration (in a sum or product:
    left, then right). A hyperparameter of zero has the logarithm -inf and stays zero.
    """

    def __call__(self, X: Array, Z: Array | None = None) -> Array:
        """Return the kernel matrix k(x_i, z_j), (n, m); `Z=None` means `X`."""
        raise TypeError(f"{type(self).__name__} must define __call__(X, Z=None).")

    def row(self, C: Array, x: Array) -> Array:
        """Return k(c_i, x) for the centers `C` (m, d) and one point `x` (d,)."""
        return self(C, x[None, :])[:, 0]

    def diag(self, X: Array) -> Array:
        """Return k(x_i, x_i), (n,)."""
        return np.array([self(x[None, :])[0, 0] for x in X])

    # Derivatives with respect to theta

    def derivatives(self, X: Array) -> Iterator[Array]:
        """Yield dK/dtheta_i, (n, n), for each hyperparameter."""
        h = 1e-5
        for e in np.eye(self.theta.size):
            yield (self.with_theta(self.theta + h * e)(X) - self.with_theta(self.theta - h * e)(X)) / (2 * h)

    def gradient(self, X: Array) -> Array:
        """Return dK/dtheta, (p, n, n)."""
        return np.array([*self.derivatives(X)]).reshape(-1, len(X), len(X))

    def pullback(self, X: Array, W: Array) -> Array:
        """Return sum_ij W_ij dK_ij/dtheta, (p,), for a symmetric `W`."""
        return self.with_pullback(X)[1](W)

    def with_pullback(self, X: Array) -> tuple[Array, Pullback]:
        """Return K, (n, n), and the function W -> pullback(X, W). Both share intermediate results."""
        return self(X), lambda W: np.array([np.vdot(W, D) for D in self.derivatives(X)])

    # Hyperparameters

    @property
    def theta(self) -> Array:
        """The logarithms of the hyperparameters, (p,)."""
        with np.errstate(divide="ignore"):
            parts = [
                v.theta if isinstance(v, Kernel) else np.log(np.ravel(np.asarray(v, float)))
                for v in self._tuned().values()
            ]
        return np.concatenate([np.empty(0), *parts])

    def with_theta(self, theta: ArrayLike) -> Self:
        """Return the same kernel with these log hyperparameters."""
        theta = np.asarray(theta, dtype=np.float64)
        if theta.shape != self.theta.shape:
            raise ValueError(
                f"theta must have shape {self.theta.shape}, got {theta.shape}. "
                f"It contains the logarithms of: {', '.join(self.names) or 'nothing'}."
            )
        changes: dict[str, Any] = {}
        for name, old in self._tuned().items():
            size = old.theta.size if isinstance(old, Kernel) else np.size(old)
            here, theta = theta[:size], theta[size:]
            if isinstance(old, Kernel):
                changes[name] = old.with_theta(here)
            else:
                changes[name] = tuple(np.exp(here).tolist()) if np.ndim(old) else float(np.exp(here[0]))
        return dataclasses.replace(self, **changes)

    @property
    def names(self) -> tuple[str, ...]:
        """One name for each entry of `theta`: "length_scale[0]", "left.length_scale", ..."""
        names: list[str] = []
        for name, value in self._tuned().items():
            if isinstance(value, Kernel):
                names += [f"{name}.{inner}" for inner in value.names]
            else:
                names += [f"{name}[{i}]" for i in range(np.size(value))] if np.ndim(value) else [name]
        return tuple(names)

    def _tuned(self) -> dict[str, Any]:
        return {f.name: getattr(self, f.name) for f in dataclasses.fields(self) if not f.metadata.get("fixed")}

    # Algebra

    def __add__(self, other: Kernel | float) -> Kernel:
        from onlinegp.kernels.algebra import Constant, Sum

        if isinstance(other, Kernel):
            return Sum(self, other)
        return Sum(self, Constant(float(other))) if _is_number(other) else NotImplemented

    def __radd__(self, other: float) -> Kernel:
        from onlinegp.kernels.algebra import Constant, Sum

        return Sum(Constant(float(other)), self) if _is_number(other) else NotImplemented

    def __mul__(self, other: Kernel | float) -> Kernel:
        from onlinegp.kernels.algebra import Product, Scaled

        if isinstance(other, Kernel):
            return Product(self, other)
        return Scaled(self, float(other)) if _is_number(other) else NotImplemented

    def __rmul__(self, other: float) -> Kernel:
        return self * other

    __array_ufunc__ = None  # so that np.float64(2) * kernel reaches __rmul__

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Kernel) or type(self) is not type(other):
            return NotImplemented
        names = [f.name for f in dataclasses.fields(self)]
        return all(_same(getattr(self, name), getattr(other, name)) for name in names)

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self  # kernels are immutable, and a nested kernel may be too deep to copy recursively

    __hash__ = None  # type: ignore[assignment]  # length scales may be lists or arrays


def _same(a: Any, b: Any) -> bool:
    return bool(a == b) if isinstance(a, Kernel) else np.array_equal(a, b)


def _is_number(value: object) -> bool:
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


def each_positive(kernel: Kernel, name: str, remedy: str) -> None:
    """Check that a field is a positive number or a sequence of positive numbers. Sequences are copied."""
    value = getattr(kernel, name)
    if not (isinstance(value, (list, tuple)) or (isinstance(value, np.ndarray) and value.ndim)):
        positive(remedy, **{name: value})
    elif len(value) == 0:
        raise ValueError(f"{name} must be a number, or one number per column, got {value!r}. {remedy}")
    else:
        for i, item in enumerate(value):
            positive(remedy, **{f"{name}[{i}]": item})
        own = copy(value)
        if isinstance(own, np.ndarray):
            own.flags.writeable = False
        object.__setattr__(kernel, name, own)


def per_dimension(d: int, **argument: Scales) -> Array:
    """Return the keyword argument as an array that broadcasts over `d` columns: () or (d,)."""
    ((name, value),) = argument.items()
    values = np.asarray(value, dtype=np.float64)
    if values.ndim and values.size != d:
        raise ValueError(
            f"{name} has {values.size} value(s), but the inputs have {d} column(s). "
            f"Give a single number for all columns, or one value per column."
        )
    return values
