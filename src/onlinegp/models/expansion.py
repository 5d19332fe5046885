"""A kernel expansion f(x) = sum_i weights_i k(c_i, x), for the algorithms that are not recipes.

Centers c_i can be added and removed. A learner updates the weights in place.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from onlinegp.checks import Array
from onlinegp.kernels import Kernel
from onlinegp.models.rowwise import StepLearner
from onlinegp.state import Contents, Fields, Values, WithFields, array, integer, learner, points

MAX_BLOCK_VALUES = 1 << 18  # kernel values per block: limits memory, and the time until Ctrl-C works


class Expansion(WithFields):
    """Centers with weights (m, outputs), and additional numbers per center, by name.

    Parameters
    ----------
    kernel : Kernel
    features, outputs : int
    also : tuple of str
        The names of additional numbers per center.
    most : int, optional
        The largest number of centers in stored contents.
    """

    lengths = {"m": "most"}

    def __init__(
        self,
        kernel: Kernel,
        features: int,
        outputs: int,
        *,
        also: tuple[str, ...] = (),
        most: int | None = None,
    ) -> None:
        self.kernel, self.features, self.outputs, self.also, self.most = kernel, features, outputs, also, most
        kernel(np.zeros((1, features)))  # raises an error if the kernel has another width
        self.centers = np.empty((0, features))
        self._numbers = np.zeros((outputs + len(also), 0))  # the weights, then the additional numbers

    @property
    def size(self) -> int:
        return len(self.centers)

    def center(self, j: int) -> Array:
        """Return a copy of center j, (d,)."""
        return self.centers[j].copy()

    @property
    def weights(self) -> Array:
        """The weights, (m, outputs): a view to change in place, valid until the centers change."""
        return self._numbers[: self.outputs].T

    def numbers(self, name: str) -> Array:
        """Return the additional numbers of this name, (m,): also a view."""
        return self._numbers[self.outputs + self.also.index(name)]

    # Evaluation

    def at(self, x: Array) -> tuple[Array, Array]:
        """Return the kernel row k (m,) of x (d,) and the mean f(x) (outputs,)."""
        k = self.kernel.row(self.centers, x)
        return k, self._numbers[: self.outputs] @ k

    def diagonal(self, x: Array) -> float:
        """Return k(x, x)."""
        return float(self.kernel.diag(x[None, :])[0])

    def rows(self, X: Array) -> Array:
        """Return the kernel rows of X (n, d), (n, m)."""
        step = max(1, MAX_BLOCK_VALUES // max(self.size, 1))
        parts = [kernel_rows(self.kernel, self.centers, X[i : i + step]) for i in range(0, len(X), step)]
        return np.concatenate([np.empty((0, self.size)), *parts])

    def nearest(self, x: Array) -> tuple[int, float]:
        """Return the first nearest center to x and its squared Euclidean distance."""
        d2 = ((self.centers - x) ** 2).sum(axis=1)
        j = int(d2.argmin())
        return j, float(d2[j])

    # Changes

    def append(self, x: Array, weight: Array | float = 0.0, **also: float) -> None:
        """Append x (d,) as a center, with a weight (outputs,) and additional numbers, which are zero by default."""
        self.centers = np.vstack([self.centers, x])
        self._numbers = np.pad(self._numbers, ((0, 0), (0, 1)))
        self.replace(self.size - 1, x, weight, **also)

    def replace(self, j: int, x: Array, weight: Array | float = 0.0, **also: float) -> None:
        """Replace center j by x (d,), with a new weight and new additional numbers."""
        self.centers[j], self.weights[j] = x, weight
        for name in self.also:
            self.numbers(name)[j] = also.get(name, 0.0)

    def remove(self, j: int) -> None:
        """Remove center j. Later centers move up by one."""
        self.centers, self._numbers = np.delete(self.centers, j, axis=0), np.delete(self._numbers, j, axis=1)

    def add(self, k: Array, amount: Array) -> None:
        """Add k_i amount to the weights of each center i. k: (m,). amount: (outputs,)."""
        self.weights[...] += np.multiply.outer(k, amount)

    # Storage

    @cached_property
    def fields(self) -> Fields:
        own = {"centers": points("m"), "weights": array("m", "outputs")}
        return own | {name: array("m") for name in self.also}

    def dump(self) -> Contents:
        stored = {"centers": self.centers.copy(), "weights": self.weights.copy(order="C")}
        return stored | {name: self.numbers(name).copy() for name in self.also}

    def assign(self, values: Values) -> None:
        self.centers = np.array(values["centers"], order="C")
        numbers = np.vstack([values["weights"].T, *(values[name] for name in self.also)])
        self._numbers = np.ascontiguousarray(numbers)  # rounding depends on the memory layout


def kernel_rows(kernel: Kernel, C: Array, X: Array) -> Array:
    """Return the kernel rows of X (n, d) with the centers C (m, d), (n, m), computed row by row as in `at`."""
    return np.array([kernel.row(C, x) for x in np.ascontiguousarray(X)]).reshape(len(X), len(C))


class ExpansionLearner(StepLearner):
    """A learner with the mean f(x), an expansion `f`."""

    fields: Fields = {"seen": integer(), "f": learner()}

    def __init__(self, f: Expansion) -> None:
        self.f, self.features, self.outputs = f, f.features, f.outputs

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        return (self.f.kernel,)

    @property
    def size(self) -> int:  # type: ignore[override]
        return self.f.size
