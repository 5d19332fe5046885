"""The last rows of a stream, which affine projections correct together, and their predictions."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from onlinegp.checks import Array
from onlinegp.kernels import Kernel
from onlinegp.models.expansion import Points
from onlinegp.state import Contents, Fields, Values, WithFields, array, integer, points

FIRST_CAPACITY = 8


class Window(WithFields):
    """The last `length` rows (x, y). A new row takes the slot of the oldest row.

    Attributes
    ----------
    count : the number of rows so far
    size : the number of rows in the window, n
    K : (n, n), their kernel matrix
    Y : (n, p), their outputs
    F : (n, p), their current predictions; the learner updates them
    """

    fields: Fields = {
        "X": points("n"),
        "K": array("n", "n"),
        "Y": array("n", "outputs"),
        "F": array("n", "outputs"),
        "count": integer(),
    }
    lengths: Mapping[str, int | str | None] = {"n": "length"}

    def __init__(self, kernel: Kernel, features: int, outputs: int, length: int) -> None:
        self.length, self.features, self.outputs = length, features, outputs
        self._kernel = kernel
        self.start()

    def start(self) -> None:
        self.count = self.size = 0
        self._points = Points(self._kernel, self.features)
        self._K, self._k, self._nothing = np.zeros((0, 0)), np.zeros(0), np.zeros((1, 0))
        self._Y, self._F, self._zero = np.zeros((0, self.outputs)), np.zeros((0, self.outputs)), np.zeros(1)

    @property
    def K(self) -> Array:
        # contiguous, without spare capacity: the rounding of a product depends on the memory layout
        return np.ascontiguousarray(self._K[: self.size, : self.size])

    @property
    def Y(self) -> Array:
        return self._Y[: self.size]

    @property
    def F(self) -> Array:
        return self._F[: self.size]

    def row(self, x: Array) -> Array:
        """Return k(X, x), (n,). The next call overwrites it."""
        self._points.row(x, self._nothing, self._k, self._zero)
        return self._k[: self.size]

    def push(self, x: Array, y: Array, f: Array) -> int:
        """Add a row with its prediction f, and return its slot."""
        r = self.count % self.length
        if self.size < self.length:
            if self.size == len(self._Y):
                self._reserve(min(max(FIRST_CAPACITY, 2 * self.size), self.length))
            self._points.append(x)
            self.size += 1
        else:
            self._points.replace(r, x)
        self.count += 1
        self._K[r, : self.size] = self._K[: self.size, r] = self.row(x)
        self._Y[r], self._F[r] = y, f
        return r

    def _reserve(self, capacity: int) -> None:
        n = self.size
        self._K, self._Y, self._F = (
            enlarged(self._K, n, capacity, capacity),
            enlarged(self._Y, n, capacity, self.outputs),
            enlarged(self._F, n, capacity, self.outputs),
        )
        self._k, self._nothing = np.zeros(capacity), np.zeros((1, capacity))

    def dump(self) -> Contents:
        about = {"X": self._points.save(), "K": self.K.copy(), "Y": self.Y.copy(), "F": self.F.copy()}
        return about | {"count": self.count}

    def check(self, values: Values) -> None:
        n, expected = len(values["X"]), min(values["count"], self.length)
        if n != expected:
            raise ValueError(f"the window must have {expected} rows after {values['count']} rows, got {n}.")

    def assign(self, values: Values) -> None:
        X = np.ascontiguousarray(values["X"])
        n = len(X)
        self.start()
        self._reserve(n)
        for x in X:
            self._points.append(x)
        self.count, self.size = values["count"], n
        self._K[:n, :n], self._Y[:n], self._F[:n] = values["K"], values["Y"], values["F"]


class KernelRows(Window):
    """A window that stores the kernel rows of its rows: H = k(X, C), (n, m). Centers C are never removed."""

    fields = {**Window.fields, "H": array("n", "m")}
    lengths = {**Window.lengths, "m": None}

    def start(self) -> None:
        super().start()
        self.centers, self._H = 0, np.zeros((0, 0))

    @property
    def H(self) -> Array:
        return np.ascontiguousarray(self._H[: self.size, : self.centers])  # as K

    def push_row(self, x: Array, y: Array, f: Array, k: Array) -> int:
        """Add a row with its kernel row k (m,), and return its slot."""
        r = self.push(x, y, f)
        if self.size > len(self._H):
            self._H = enlarged(self._H, len(self._H), len(self._Y), self._H.shape[1])
        self._H[r, : self.centers] = k
        return r

    def admit(self, r: int) -> None:
        """Update H after the newest row, in slot r, became the last center."""
        m = self.centers
        if m == self._H.shape[1]:
            self._H = enlarged(self._H, len(self._H), len(self._H), max(FIRST_CAPACITY, 2 * m))
        self._H[: self.size, m] = self._K[: self.size, r]
        self.centers = m + 1

    def dump(self) -> Contents:
        return super().dump() | {"H": self.H.copy()}

    def assign(self, values: Values) -> None:
        super().assign(values)
        self._H, self.centers = values["H"].copy(), values["H"].shape[1]


def enlarged(array: Array, rows: int, height: int, width: int) -> Array:
    """Return a larger array that starts with the first rows of `array`, and is zero elsewhere."""
    room, kept = np.zeros((height, width)), min(width, array.shape[1])
    room[:rows, :kept] = array[:rows, :kept]
    return room


def most_of(values: Array, count: int) -> NDArray[np.int64]:
    """Return the indices of the `count` largest values, the largest first. Ties go to the first."""
    if count == 1:
        return np.array([values.argmax()])
    few = np.argpartition(-values, count - 1)[:count] if count < len(values) else np.arange(len(values))
    return few[np.lexsort((few, -values[few]))]


def solve_positive(A: Array, B: Array) -> Array:
    """Return A^-1 B for a positive definite A (n, n) and B (n, p), or NaN if A is not positive definite."""
    from scipy.linalg.lapack import dposv

    _, X, failed = dposv(A, B)
    return X if failed == 0 else np.full_like(B, np.nan)
