"""The Kalman filter of the weights in square-root form: the Python loop, and its compiled twin.

w_t = w_(t-1) + d_t with d_t ~ N(0, drift I), and y_t = w_t'x_t + e_t with e_t ~ N(0, noise). The posterior of w is
N(w, P), and P is stored as a triangle U with U'U = P. Per sample, h = P x and f = U x:

    U'U <- U'U + drift I,   s = f'f + noise,   w <- w + h e / s,   U'U <- U'U - h h' / s

Both changes of U are orthogonal transformations: the first stacks U on sqrt(drift) I and makes the result triangular,
the second rotates [sqrt(noise) 0; f U] to [sqrt(s) h'/sqrt(s); 0 U+]. So P always stays positive definite. (Kailath,
Sayed and Hassibi, Linear Estimation, 2000, ch. 12.)
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from onlinegp.checks import Array
from onlinegp.engine.plan import Plan
from onlinegp.models.linear.base import check_upper
from onlinegp.models.linear.weight_filter import FilterLearner
from onlinegp.state import Values, array, integer


class KalmanLearner(FilterLearner):
    """The weights w (m, p), and the triangle U (m, m) of their covariance."""

    fields = {"w": array("weights", "outputs"), "U": array("weights", "weights"), "seen": integer()}

    def __init__(
        self, features: int, outputs: int, *, noise: float, drift: float, prior: float, intercept: bool
    ) -> None:
        super().__init__(features, outputs, intercept=intercept)
        self.noise, self.drift, self.prior = noise, drift, prior

    @cached_property
    def U(self) -> Array:
        return np.sqrt(self.prior) * np.eye(self.weights)

    def step(self, x: Array, y: Array) -> tuple[Array, float]:
        self.U = self._drifted()
        mean, f = x @ self.w, self.U @ x
        gain, s = self._observe(f)
        self.w += np.outer(gain, y - mean)
        return mean, s

    def leaf_plan(self) -> Plan:
        return Plan("kalman filter", self, {"noise": self.noise, "drift": self.drift, "intercept": self.intercept})

    def at(self, X: Array) -> tuple[Array, Array]:
        f = np.einsum("nm,km->nk", X, self._drifted())
        return np.einsum("nm,mp->np", X, self.w), (f**2).sum(axis=1) + self.noise

    def _drifted(self) -> Array:
        """Return the triangle of U'U + drift I, with a positive diagonal."""
        if self.drift == 0.0:
            return self.U
        stacked = np.vstack([self.U, np.sqrt(self.drift) * np.eye(self.weights)])
        U = np.asarray(np.linalg.qr(stacked, mode="r"))
        return U * np.where(np.diag(U) < 0.0, -1.0, 1.0)[:, None]

    def _observe(self, f: Array) -> tuple[Array, float]:
        """Shrink P for a row with f = U x, and return h / s and s."""
        root, t = np.sqrt(self.noise), np.zeros(self.weights)
        for i in reversed(range(self.weights)):
            h = np.hypot(root, f[i])
            c, s = root / h, f[i] / h
            t, self.U[i] = c * t + s * self.U[i], c * self.U[i] - s * t
            root = h
        return t / root, float(root**2)

    def check(self, values: Values) -> None:
        check_upper("U", values["U"])
