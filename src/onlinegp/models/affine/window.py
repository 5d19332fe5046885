"""The window of an affine projection: the last rows of a stream and their predictions."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from onlinegp.checks import Array
from onlinegp.kernels import Kernel
from onlinegp.state import Fields, Values, WithFields, array, integer, points


class Window(WithFields):
    """The last `length` rows (x, y). A new row takes the slot of the oldest row.

    Attributes
    ----------
    count : the number of rows so far
    X : (n, d), the rows in the window
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
        self.kernel, self.features, self.outputs, self.length = kernel, features, outputs, length
        self.count, self.X, self.K = 0, np.empty((0, features)), np.empty((0, 0))
        self.Y, self.F = np.empty((0, outputs)), np.empty((0, outputs))

    def push(self, x: Array, y: Array, f: Array) -> int:
        """Add a row with its prediction f, and return its slot."""
        r = self.count % self.length
        self.X, self.Y, self.F = with_row(self.X, r, x), with_row(self.Y, r, y), with_row(self.F, r, f)
        self.K = enlarged(self.K, len(self.X))
        self.K[r] = self.K[:, r] = self.kernel.row(self.X, x)
        self.count += 1
        return r

    def check(self, values: Values) -> None:
        n, expected = len(values["X"]), min(values["count"], self.length)
        if n != expected:
            raise ValueError(f"the window must have {expected} rows after {values['count']} rows, got {n}.")


class KernelRows(Window):
    """A window that also stores the kernel rows H = k(X, C), (n, m). Centers C are never removed."""

    fields = {**Window.fields, "H": array("n", "m")}
    lengths = {**Window.lengths, "m": None}

    def __init__(self, kernel: Kernel, features: int, outputs: int, length: int) -> None:
        super().__init__(kernel, features, outputs, length)
        self.H = np.empty((0, 0))

    def push_row(self, x: Array, y: Array, f: Array, k: Array) -> int:
        """Add a row with its kernel row k (m,), and return its slot."""
        r = self.push(x, y, f)
        self.H = with_row(self.H, r, k)
        return r

    def admit(self, r: int) -> None:
        """Add a column to H. The newest row, in slot r, has become a center."""
        self.H = np.ascontiguousarray(np.column_stack([self.H, self.K[:, r]]))


def with_row(A: Array, r: int, row: Array) -> Array:
    """Return A (n, w) with `row` in slot r. Slot n is a new row at the end."""
    if r == len(A):
        return np.vstack([A, row])
    A[r] = row
    return A


def enlarged(A: Array, n: int) -> Array:
    """Return an (n, n) matrix with A in the upper left corner and zeros elsewhere."""
    return A if len(A) == n else np.pad(A, (0, n - len(A)))


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
