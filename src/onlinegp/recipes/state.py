"""The state of a filter, its prediction of a sample, and the result of learning a sample."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onlinegp.checks import Array

NEW, IGNORE, PROJECTED = -1, -2, -3  # results of a dictionary that are not the slot of a center
MOST_SEEN = 2**63 - 1  # limit of the count of samples


# The kinds of fields in a state, for the compiled engine and for files
POINTS, OUTPUTS = {"kind": "points"}, {"kind": "outputs"}  # (m, d), (m, p)
VECTOR, COUNTS = {"kind": "vector"}, {"kind": "counts"}  # (m,); counts are integers
TRIANGULAR, SYMMETRIC = {"kind": "triangular"}, {"kind": "symmetric"}  # (m, m); triangular is zero above the diagonal
INTEGER, NUMBER = {"kind": "integer"}, {"kind": "number"}


@dataclass
class State:
    """The state of a filter between two samples. Buffers have `capacity` rows; the first `size` rows are in use.

    L, S, dQ and rowsum exist only if the recipe tracks them. At its budget, a filter never allocates memory. Without a
    budget, buffers double when they are full.

    Attributes
    ----------
    centers : (capacity, d)
    alpha : (capacity, p), the weights of the kernel row k, one column per output. If the belief tracks L, these are the
        weights b of t = L^-1 k
    kcc : (capacity,), the prior variance k(c, c) of each center
    born : (capacity,), the number of the sample that became the center
    L : (capacity, capacity), lower triangular, L L' = K
    S : (capacity, capacity), the covariance of u = L^-1 f(C), as scale S + (1 - scale) I
    dQ : (capacity,), the diagonal of (L L')^-1, for the choice of the center to remove
    rowsum : (capacity,), sums of |k(c, c')| over the centers c', which bound the eigenvalues of K
    """

    centers: Array = field(metadata=POINTS)
    alpha: Array = field(metadata=OUTPUTS)
    kcc: Array = field(metadata=VECTOR)
    born: NDArray[np.int64] = field(metadata=COUNTS)
    L: Array | None = field(default=None, metadata=TRIANGULAR)
    S: Array | None = field(default=None, metadata=SYMMETRIC)
    dQ: Array | None = field(default=None, metadata=VECTOR)
    rowsum: Array | None = field(default=None, metadata=VECTOR)
    size: int = field(default=0, metadata=INTEGER)
    seen: int = field(default=0, metadata=INTEGER)
    scale: float = field(default=1.0, metadata=NUMBER)
    bound: float = field(default=0.0, metadata=NUMBER)
    power: float = field(default=1.0, metadata=NUMBER)
    evidence: float = field(default=1.0, metadata=NUMBER)

    @classmethod
    def empty(cls, features: int, outputs: int, capacity: int, *, tracks: tuple[str, ...] = ()) -> State:
        """Return a state without centers, with the buffers named in `tracks`."""
        state = cls(
            centers=np.zeros((capacity, features)),
            alpha=np.zeros((capacity, outputs)),
            kcc=np.zeros(capacity),
            born=np.zeros(capacity, dtype=np.int64),
        )
        for name in tracks:
            setattr(state, name, np.zeros((capacity, capacity) if name in MATRICES else capacity))
        return state

    @property
    def capacity(self) -> int:
        return len(self.alpha)

    @property
    def C(self) -> Array:
        """The centers in use, (m, d)."""
        return self.centers[: self.size]

    @property
    def a(self) -> Array:
        """The weights in use, (m, p)."""
        return self.alpha[: self.size]

    b = a  # the name of the weights if L is tracked

    def square(self, name: str) -> Array:
        """Return the part of a matrix that is in use, (m, m), as a view."""
        return getattr(self, name)[: self.size, : self.size]

    def used(self, name: str) -> Array:
        """Return the part of a buffer that is in use, as a view."""
        return self.square(name) if name in MATRICES else getattr(self, name)[: self.size]

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the buffers that exist, by name."""
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        return {name: value for name, value in values.items() if isinstance(value, np.ndarray)}

    def reserve(self, rows: int, budget: int | None = None) -> None:
        """Grow the buffers to at least `rows` rows by doubling, but not beyond budget + 1."""
        if rows <= self.capacity:
            return
        capacity = max(rows, 2 * self.capacity)
        if budget is not None:
            capacity = max(rows, min(capacity, budget + 1))
        for name, old in self.arrays().items():
            shape = (capacity, capacity) if name in MATRICES else (capacity, *old.shape[1:])
            new = np.zeros(shape, dtype=old.dtype)
            new[tuple(slice(0, n) for n in old.shape)] = old
            setattr(self, name, new)

    def push(self, x: Array, kxx: float, budget: int | None = None) -> None:
        """Append x as a center with weight zero. The belief fills in the rows of its matrices."""
        m = self.size
        self.reserve(m + 1, budget)
        self.centers[m], self.alpha[m], self.kcc[m], self.born[m] = x, 0.0, kxx, self.seen
        self.size = m + 1

    def move_last_to(self, j: int) -> int:
        """Move the last center into the free slot j, and return j. For beliefs without matrices."""
        last = self.size - 1
        for buffer in self.arrays().values():
            buffer[j] = buffer[last]
        self.size = last
        return j

    def border(self, name: str, row: Array | float, corner: float) -> None:
        """Fill the last row and column of a symmetric matrix."""
        matrix = self.square(name)
        matrix[-1, :-1] = matrix[:-1, -1] = row
        matrix[-1, -1] = corner

    def close_gap(self, j: int) -> None:
        """Move the centers after slot j up by one slot. The belief moves weights and matrices."""
        last = self.size - 1
        for name, buffer in self.arrays().items():
            if name not in ("alpha", *MATRICES):
                buffer[j:last] = buffer[j + 1 : last + 1]
        self.size = last


KINDS: dict[str, str] = {f.name: f.metadata["kind"] for f in fields(State)}
TRACKED = tuple(f.name for f in fields(State) if f.default is None)  # arrays that exist only if the recipe tracks them
MATRICES = tuple(name for name, kind in KINDS.items() if kind in ("triangular", "symmetric"))


@dataclass(slots=True)
class Prediction:
    """The prediction for one input, and intermediate results that learning reuses.

    Attributes
    ----------
    k : (m,), the kernel row k(C, x)
    kxx : k(x, x), with the jitter of the belief
    mean : (p,), the prediction of y
    v : the variance of f at x
    s : the variance of y at x, s = v + noise
    t : (m,), L^-1 k, if L is tracked
    h : (m,), S t, if S is tracked
    gamma2 : the part of k(x, x) that the centers do not explain: the square of the last entry in the next row of L
    beta : the factor of k in the gain, for the belief `Beta`
    """

    k: Array
    kxx: float
    mean: Array
    v: float
    s: float
    t: Array = field(default_factory=lambda: np.empty(0))
    h: Array = field(default_factory=lambda: np.empty(0))
    gamma2: float = 0.0
    beta: float = 0.0


@dataclass(slots=True)
class Step:
    """The result of learning one sample.

    Attributes
    ----------
    mean, variance : the prediction of y before learning it, including the noise
    error : y - mean, after forgetting
    slot : the center that the sample became or corrected; PROJECTED if it corrected all centers, IGNORE if none
    admitted : whether the sample became a center
    left : the slot of the removed center; NEW if no center was removed
    """

    mean: Array
    variance: float
    error: Array
    slot: int
    admitted: bool
    left: int
