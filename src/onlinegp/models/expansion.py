"""A kernel expansion f(x) = sum_i weights_i k(c_i, x), for the algorithms that are not recipes.

Centers c_i can be added and removed. The compiled engine computes kernel rows if it supports the kernel. A learner
updates the weights in place.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from onlinegp.checks import Array
from onlinegp.kernels import Kernel
from onlinegp.models.rowwise import StepLearner
from onlinegp.state import Contents, Fields, Values, WithFields, array, integer, learner, points

FIRST_CAPACITY = 16
MAX_BLOCK_VALUES = 1 << 18  # kernel values at a time, to bound the memory of a block and the response time to Ctrl-C


class Points:
    """The centers in Python. They define the results of the compiled twin."""

    def __init__(self, kernel: Kernel, features: int) -> None:
        self._kernel, self._size, self._room = kernel, 0, np.empty((0, features))

    @property
    def C(self) -> Array:
        """The centers, (m, d)."""
        return self._room[: self._size]

    def __len__(self) -> int:
        return self._size

    def append(self, x: Array) -> None:
        if self._size == len(self._room):
            room = np.empty((max(FIRST_CAPACITY, 2 * self._size), x.size))
            room[: self._size] = self.C
            self._room = room
        self._room[self._size] = x
        self._size += 1

    def replace(self, j: int, x: Array) -> None:
        self._room[j] = x

    def remove(self, j: int) -> None:
        """Remove center j; those after it move up by one."""
        self._room[j : self._size - 1] = self._room[j + 1 : self._size]
        self._size -= 1

    def diagonal(self, x: Array) -> float:
        """Return k(x, x)."""
        return float(self._kernel.diag(x[None, :])[0])

    def row(self, x: Array, weights: Array, k: Array, mean: Array) -> None:
        """Write the kernel row into the first entries of k, and weights k into mean; weights (p, >= m)."""
        k[: self._size] = self._kernel.row(self.C, x)
        np.dot(weights[:, : self._size], k[: self._size], out=mean)

    def rows(self, X: Array) -> Array:
        """Return the kernel rows of X (n, d), (n, m)."""
        return np.array([self._kernel.row(self.C, x) for x in X]).reshape(len(X), self._size)

    def nearest(self, x: Array) -> tuple[int, float]:
        """Return the nearest center and its squared Euclidean distance. Ties go to the first."""
        d2 = ((self.C - x) ** 2).sum(axis=1)
        j = int(d2.argmin())
        return j, float(d2[j])

    def get(self, j: int) -> Array:
        return self.C[j].copy()

    def save(self) -> Array:
        return self.C.copy()


class Expansion(WithFields):
    """Centers with weights (m, outputs), and additional numbers per center, by name.

    The capacity doubles, so a new center costs O(d). Views are valid until the centers change.

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
        kernel(np.zeros((1, features)))  # refuses a kernel of another width
        self._start()

    def _start(self) -> None:
        self.size = 0
        self._points = Points(self.kernel, self.features)
        self._numbers = np.zeros((self.outputs + len(self.also), 0))  # the weights, then the others
        self._weights, self._k, self._spare = self._numbers[: self.outputs], np.zeros(0), np.zeros(0)
        self._mean = np.zeros(self.outputs)

    # Contents

    @property
    def centers(self) -> Array:
        """A copy of the centers, (m, d)."""
        return self._points.save()

    def center(self, j: int) -> Array:
        """Return a copy of center j, (d,)."""
        return self._points.get(j)

    @property
    def weights(self) -> Array:
        """The weights, (m, outputs), a view to be changed in place."""
        return self._weights[:, : self.size].T

    def numbers(self, name: str) -> Array:
        """Return the additional numbers of this name, (m,), a view to be changed in place."""
        return self._numbers[self.outputs + self.also.index(name), : self.size]

    # Evaluation

    def at(self, x: Array) -> tuple[Array, Array]:
        """Return the kernel row k (m,) of x (d,) and the mean f(x) (outputs,). The next call overwrites both."""
        self._points.row(x, self._weights, self._k, self._mean)
        return self._k[: self.size], self._mean

    def diagonal(self, x: Array) -> float:
        """Return k(x, x)."""
        return self._points.diagonal(x)

    def rows(self, X: Array) -> Array:
        """Return the kernel rows of X (n, d), (n, m)."""
        step = max(1, MAX_BLOCK_VALUES // max(self.size, 1))
        parts = [self._points.rows(np.ascontiguousarray(X[i : i + step])) for i in range(0, len(X), step)]
        return np.concatenate([np.empty((0, self.size)), *parts])

    def nearest(self, x: Array) -> tuple[int, float]:
        """Return the center nearest to x and its squared Euclidean distance. There must be at least one center."""
        return self._points.nearest(x)

    # Changes

    def append(self, x: Array, weight: Array | float = 0.0, **also: float) -> None:
        """Make x (d,) the last center, with a weight (outputs,) and additional numbers, zero by default."""
        m = self.size
        if m == self._numbers.shape[1]:
            self._reserve(m + 1)
        self._points.append(x)
        self.size = m + 1
        self._put(m, weight, also)

    def replace(self, j: int, x: Array, weight: Array | float = 0.0, **also: float) -> None:
        """Replace center j by x (d,), with a new weight and new additional numbers."""
        self._points.replace(j, x)
        self._put(j, weight, also)

    def remove(self, j: int) -> None:
        """Remove center j; those after it move up by one."""
        self._points.remove(j)
        self._numbers[:, j : self.size - 1] = self._numbers[:, j + 1 : self.size]
        self.size -= 1

    def add(self, k: Array, amount: Array) -> None:
        """Add k_i amount (outputs,) to the weights of each center i; k (m,)."""
        m = self.size
        for weights, one in zip(self._weights, amount, strict=True):
            np.multiply(k, one, out=self._spare[:m])
            weights[:m] += self._spare[:m]

    def _put(self, j: int, weight: Array | float, also: dict[str, float]) -> None:
        self._weights[:, j] = weight
        for i, name in enumerate(self.also):
            self._numbers[self.outputs + i, j] = also.get(name, 0.0)

    def _reserve(self, rows: int) -> None:
        capacity = max(rows, FIRST_CAPACITY, 2 * self.size)
        numbers = np.zeros((len(self._numbers), capacity))
        numbers[:, : self.size] = self._numbers[:, : self.size]
        self._numbers, self._weights = numbers, numbers[: self.outputs]
        self._k, self._spare = np.zeros(capacity), np.zeros(capacity)

    # Storage

    @cached_property
    def fields(self) -> Fields:
        own = {"centers": points("m"), "weights": array("m", "outputs")}
        return own | {name: array("m") for name in self.also}

    def dump(self) -> Contents:
        stored = {"centers": self.centers, "weights": self.weights.copy(order="C")}
        return stored | {name: self.numbers(name).copy() for name in self.also}

    def assign(self, values: Values) -> None:
        C = np.ascontiguousarray(values["centers"])
        self._start()
        self._reserve(len(C))
        for x in C:
            self._points.append(x)
        self.size = len(C)
        self._numbers[:, : len(C)] = np.vstack([values["weights"].T, *(values[name] for name in self.also)])


class ExpansionLearner(StepLearner):
    """A learner whose mean is the expansion `f`."""

    fields: Fields = {"seen": integer(), "f": learner()}

    def __init__(self, f: Expansion) -> None:
        self.f, self.features, self.outputs = f, f.features, f.outputs

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        return (self.f.kernel,)

    @property
    def size(self) -> int:  # type: ignore[override]
        return self.f.size
