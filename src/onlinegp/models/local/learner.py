"""The exact GP on the nearest rows in Python. It defines the results of the compiled learner.

The prior is cov(y_t, y_u) = k(x_t, x_u) a^|t - u| + noise [t = u] with a = sqrt(forgetting), as for
`estimate_hyperparameters`. t is the number of a row, and a prediction is for the next row.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from onlinegp.checks import Array
from onlinegp.engine.plan import Constant, Plan
from onlinegp.kernels import Kernel
from onlinegp.learner import RowLearner
from onlinegp.models.local.distance import Distance, squared
from onlinegp.predictions import Gaussian
from onlinegp.state import Fields, Values, array, integer, points

REDUNDANT = 1e-12  # a neighbor is redundant if its pivot is a smaller share of its variance

MOST_ROWS = 2**53  # larger counts are not exact in a double


@dataclass(frozen=True)
class LocalPrior:
    """The checked parameters of a model on the nearest rows.

    Attributes
    ----------
    store : the number of rows to keep, None for all
    """

    kernel: Kernel
    noise: float
    neighbors: int
    store: int | None
    forgetting: float

    @property
    def fade(self) -> float:
        """The amount that r2 grows per row of age: k a^age = exp(-(r2 + fade age) / 2) for an RBF."""
        return -float(np.log(self.forgetting))


ROW_FIELDS: Fields = {
    "X": points("kept"),
    "Y": array("kept", "outputs"),
    "seen": integer(most=MOST_ROWS),
}


class LocalLearner(RowLearner):
    """The stored rows, and the exact GP on the rows nearest to x."""

    lengths = {"kept": None}

    def __init__(self, prior: LocalPrior, features: int, outputs: int) -> None:
        self.prior, self.features, self.outputs = prior, features, outputs
        self._distance = Distance.of(prior.kernel, features)
        self.X, self.Y = np.empty((0, self.features)), np.empty((0, self.outputs))
        self.U = self._distance.places(self.X)

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        return (self.prior.kernel,)

    def leaf_plan(self) -> Plan:
        return Plan("local gp", self, self._constants(), kernels=self.kernels)

    def _constants(self) -> dict[str, Constant]:
        prior, circles = self.prior, self._distance.circles
        store = {} if prior.store is None else {"store": float(prior.store)}
        return {
            "noise": prior.noise,
            "fade": prior.fade,
            "neighbors": float(prior.neighbors),
            "rates": self._distance.rates,
            "frequencies": np.ravel([one.frequency for one in circles]),
            "radii": np.ravel([one.radius for one in circles]),
            **store,
        }

    @property
    def size(self) -> int:  # type: ignore[override]
        return len(self.X)

    def learn(self, X: Array, Y: Array) -> None:
        self._append(X, Y)
        if self.prior.store is not None:
            self._keep(self.prior.store)

    def _append(self, X: Array, Y: Array) -> None:
        self.X, self.Y = np.vstack([self.X, X]), np.vstack([self.Y, Y])
        self.U = np.vstack([self.U, self._distance.places(X)])
        self.seen += len(X)

    def _keep(self, rows: int) -> None:
        """Drop all but the newest rows."""
        self.X, self.Y, self.U = (values[max(len(values) - rows, 0) :] for values in (self.X, self.Y, self.U))

    def predict(self, X: Array) -> Gaussian:
        mean, std = np.empty((len(X), self.outputs)), np.empty((len(X), self.outputs))
        for i in range(len(X)):
            near = self.neighbors(X[i : i + 1])
            mean[i], variance = self._answer(X[i : i + 1], near, self.Y[near])
            std[i] = np.sqrt(variance)
        return Gaussian(mean, std)

    def neighbors(self, x: Array) -> NDArray[np.int64]:
        """Return the indices of the stored rows nearest to x (1, d), the nearest first. Ties go to the newest.

        The nearest rows have the smallest r2 + fade age. For an RBF these are the rows with the largest covariance k(x,
        z) a^age.
        """
        r2 = squared(self.U, self._distance.places(x)[0])
        rank = r2 + self._ages() * self.prior.fade
        count = min(self.prior.neighbors, len(rank))
        if count == 0:
            return np.empty(0, dtype=np.int64)
        near = np.flatnonzero(rank <= np.partition(rank, count - 1)[count - 1])
        return near[np.lexsort((-near, rank[near]))[:count]]

    def _ages(self) -> Array:
        return np.arange(self.size, 0, -1, dtype=np.float64)

    def _answer(self, x: Array, near: NDArray[np.int64], V: Array) -> tuple[Array, float]:
        """Return k' A^-1 V (q,) at x (1, d), and the variance of y. A = K + noise I of the rows `near`, V: (m, q).

        With A = L L', t = L^-1 k and Z = L^-1 V this is t' Z, and the variance is k(x, x) - t' t + noise.
        """
        ages = np.append(self._ages()[near], 0.0)
        K = self.prior.kernel(np.vstack([self.X[near], x]))
        K *= np.exp(-0.5 * self.prior.fade * np.abs(ages[:, None] - ages))
        A = K[:-1, :-1] + self.prior.noise * np.eye(len(near))
        T = whitened(A, np.column_stack([K[:-1, -1], V]))
        t, Z = T[:, 0], T[:, 1:]
        return t @ Z, max(K[-1, -1] - t @ t, 0.0) + self.prior.noise

    @property
    def fields(self) -> Fields:
        return ROW_FIELDS

    def check(self, values: Values) -> None:
        seen, n = values["seen"], len(values["Y"])
        kept = seen if self.prior.store is None else min(seen, self.prior.store)
        if n != kept:
            raise ValueError(f"there must be {kept} stored rows after learning {seen} rows, got {n}.")

    def rebuild(self) -> None:
        self.U = self._distance.places(self.X)


def whitened(A: Array, R: Array) -> Array:
    """Return L^-1 R for A = L L' (m, m), column by column. Rows of A with a negligible pivot are left out.

    Such a row is a linear combination of the rows before it, up to rounding.
    """
    A, R, own = A.copy(), R.copy(), np.diagonal(A).copy()
    for j in range(len(A)):
        # A <- A - c c',  R_i <- R_i - c_i R_j,  c = A_j / sqrt(A_jj)
        scale = 1.0 / np.sqrt(A[j, j]) if A[j, j] > REDUNDANT * own[j] else 0.0
        c = A[j + 1 :, j] * scale
        R[j] *= scale
        A[j + 1 :, j + 1 :] -= np.multiply.outer(c, c)
        R[j + 1 :] -= np.multiply.outer(c, R[j])
    return R
