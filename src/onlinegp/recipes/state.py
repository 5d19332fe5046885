"""What a filter carries from one sample to the next, and what it sees of the sample in between."""

from __future__ import annotations

from dataclasses import dataclass, field, fields

import numpy as np
from numpy.typing import NDArray

from onlinegp.checks import Array

NEW, IGNORE = -1, -2  # a dictionary's answers, beside the slot of the center to reuse
MATRICES = ("A", "Q", "K", "P")


@dataclass
class State:
    """What the next step needs. Buffers have `capacity` rows, of which the first `size` are in use.

    Matrices exist only where the belief tracks them. Nothing here grows with the number of samples seen, and no
    buffer is reallocated while a filter is at its budget; a dictionary without a budget doubles.

    Attributes
    ----------
    centers : (capacity, d)
    alpha : (capacity, p), the kernel weights, one column an output
    kcc : (capacity,), the prior variance k(c, c) of each center
    born : (capacity,), the number of the sample that became the center
    A : (capacity, capacity), Q - Q Sigma Q up to the factor `scale`
    Q : (capacity, capacity), the inverse of K
    K : (capacity, capacity), the kernel matrix of the centers, which checks and refines Q
    P : (capacity, capacity), the posterior covariance of f at the centers over the noise (least squares)
    rowsum : (capacity,), sums of |k(c, c')| over the centers c', which bound the eigenvalues of K
    """

    centers: Array
    alpha: Array
    kcc: Array
    born: NDArray[np.int64]
    A: Array | None = None
    Q: Array | None = None
    K: Array | None = None
    P: Array | None = None
    rowsum: Array | None = None
    size: int = 0
    seen: int = 0
    scale: float = 1.0
    bound: float = 0.0
    residual: float = 0.0
    power: float = 1.0
    evidence: float = 1.0

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

    def square(self, name: str, size: int | None = None) -> Array:
        """Return the part of a matrix that is in use, (m, m), as a view."""
        m = self.size if size is None else size
        return getattr(self, name)[:m, :m]

    def arrays(self) -> dict[str, NDArray]:
        """Return the buffers that exist, by name."""
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        return {name: value for name, value in values.items() if isinstance(value, np.ndarray)}

    def reserve(self, rows: int, budget: int | None = None) -> None:
        """Make room for this many rows by doubling, but for no more than the budget and the sample to come."""
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
        """Make x the last center, with weight zero; the belief fills in its rows."""
        m = self.size
        self.reserve(m + 1, budget)
        self.centers[m], self.alpha[m], self.kcc[m], self.born[m] = x, 0.0, kxx, self.seen
        self.size = m + 1

    def move_last_to(self, j: int) -> None:
        """Let the last center take the slot j of one that has left."""
        last = self.size - 1
        for name, buffer in self.arrays().items():
            if name in MATRICES:  # row, then column: the diagonal element ends in its place
                buffer[j, :] = buffer[last, :]
                buffer[:, j] = buffer[:, last]
            else:
                buffer[j] = buffer[last]
        self.size = last


@dataclass(slots=True)
class Prediction:
    """What the model says of one input before it knows the output.

    Attributes
    ----------
    k : (m,), the kernel row k(C, x)
    kxx : k(x, x), with the jitter of the belief
    mean : (p,), the prediction k . alpha
    v : the variance of f at x
    s : the variance of y at x, s = v + noise
    w : (m,), A k where A is tracked
    q : (m,), Q k, the coordinates of x in the dictionary, where Q is tracked
    gamma2 : kxx - k . q, what the dictionary cannot express of x
    beta : the multiplier of k in the gain, for the beta belief
    residual : |K q - k| in one row, relative to kxx
    """

    k: Array
    kxx: float
    mean: Array
    v: float
    s: float
    w: Array = field(default_factory=lambda: np.empty(0))
    q: Array = field(default_factory=lambda: np.empty(0))
    gamma2: float = 0.0
    beta: float = 0.0
    residual: float = 0.0


@dataclass(slots=True)
class Step:
    """What happened when one sample was learned.

    Attributes
    ----------
    mean, variance : the prediction of y that was made before learning it (noise included)
    error : y - mean, after forgetting
    slot : the center that the sample became or corrected; NEW if it corrected all of them, IGNORE if none
    admitted : whether the sample became a center
    left : the slot whose center had to leave, NEW if none had to
    """

    mean: Array
    variance: float
    error: Array
    slot: int
    admitted: bool
    left: int
