"""Bayesian linear regression in square-root information form: the Python loop, and its compiled twin.

y = w'x + e with w ~ N(0, prior I) and e ~ N(0, noise). The posterior of w is stored as a triangle R and a vector z:

    R'R = I / prior + sum of x x' / noise,   R'z = sum of x y / noise,   so that w ~ N(R^-1 z, (R'R)^-1)

A row is added by plane rotations of [R z; x'/sqrt(noise) y/sqrt(noise)]. This loses few digits: nothing is subtracted,
and the condition number of R equals the condition number of the data, while a covariance matrix would square it.
(Bierman, Factorization Methods for Discrete Sequential Estimation, 1977, ch. V.)

Forgetting: R'R <- lambda R'R and R'z <- lambda R'z before each row. This also shrinks the information of the prior.
Each row restores it for one weight, in turn, so that it stays between lambda^m and 1 times I / prior. Without data, w
returns to its prior, and R never becomes singular. This is a variant of "stabilized" forgetting (Kulhavy and Zarrop,
"On a general concept of forgetting", International Journal of Control, 1993).
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from onlinegp.checks import Array
from onlinegp.engine.plan import Plan
from onlinegp.learner import RowLearner, Sizes
from onlinegp.models.linear.base import check_upper, with_constant
from onlinegp.predictions import Gaussian
from onlinegp.state import Contents, Values, array, integer

ROUNDING = 1e-15  # relative error of a column of R after n rows, divided by sqrt(n)
MOST_LOST = 1e-6  # the largest relative error after a model was subtracted
TOO_LITTLE_LEFT = (
    "other must leave enough information for six digits, but in at least one direction it contains nearly all "
    "information of this model. Learn the remaining rows from scratch."
)


class LinearLearner(RowLearner):
    """The posterior of the weights as R (m, m) and z (m, p), where m is the number of features and intercept."""

    fields = {"R": array("weights", "weights"), "z": array("weights", "outputs"), "seen": integer()}

    def __init__(
        self,
        features: int,
        outputs: int,
        *,
        noise: float,
        prior: float,
        forgetting: float,
        intercept: bool,
    ) -> None:
        self.features, self.outputs, self.noise, self.forgetting = features, outputs, noise, forgetting
        self.intercept = intercept
        m = self.weights = features + intercept
        self.prior_information = 1.0 / prior
        self.precision, self.keep = float(1.0 / np.sqrt(noise)), float(np.sqrt(forgetting))
        # the prior of a weight that was restored k + 1 rows ago has lost the share 1 - lambda^(k + 1)
        self.renewal = np.sqrt((1.0 - forgetting ** np.arange(1, m + 1)) / prior)

    # Created on first use, so that a damaged file that claims many features does not allocate memory

    @cached_property
    def R(self) -> Array:
        return np.sqrt(self.prior_information) * np.eye(self.weights)

    @cached_property
    def z(self) -> Array:
        return np.zeros((self.weights, self.outputs))

    @property
    def w(self) -> Array:
        """The means of the weights, R^-1 z, (m, p)."""
        return np.asarray(np.linalg.solve(self.R, self.z), dtype=np.float64)

    def learn(self, X: Array, Y: Array) -> None:
        self.run(X, Y)

    def run(self, X: Array, Y: Array) -> tuple[Gaussian, Sizes]:
        mean, v = np.empty(Y.shape), np.empty(len(Y))
        for i, (x, y) in enumerate(zip(with_constant(X, self.intercept), Y, strict=True)):
            mean[i], v[i] = self.predict_row(x)
            self.learn_row(x, y)
        return self._gaussian(mean, v), np.zeros(len(Y), dtype=np.int64)

    def predict(self, X: Array) -> Gaussian:
        mean, v = np.empty((len(X), self.outputs)), np.empty(len(X))
        for i, x in enumerate(with_constant(X, self.intercept)):
            mean[i], v[i] = self.predict_row(x)
        return self._gaussian(mean, v)

    # One row, x (m,) and y (p,)

    def predict_row(self, x: Array) -> tuple[Array, float]:
        """Return u'z and u'u with u = R^-T x."""
        mean, v, x = np.zeros(self.outputs), 0.0, x.copy()
        for i, row in enumerate(self.R):
            u = x[i] / row[i]
            v += u * u
            x[i + 1 :] -= u * row[i + 1 :]
            mean += u * self.z[i]
        return mean, v

    def learn_row(self, x: Array, y: Array) -> None:
        if self.keep < 1.0:
            self.R *= self.keep
            self.z *= self.keep
            which = self.seen % len(self.R)
            unit = np.zeros(len(self.R))
            unit[which] = self.renewal[which if self.seen < len(self.R) else -1]
            self._add(unit, np.zeros(self.outputs))
        self._add(self.precision * x, self.precision * y)
        self.seen += 1

    def _add(self, v: Array, t: Array) -> None:
        """Add a row: R'R <- R'R + v v' and R'z <- R'z + v t'."""
        for i, row in enumerate(self.R):
            if v[i] == 0.0:
                continue
            h = np.hypot(row[i], v[i])
            c, s = row[i] / h, v[i] / h
            row[i] = h
            row[i + 1 :], v[i + 1 :] = c * row[i + 1 :] + s * v[i + 1 :], c * v[i + 1 :] - s * row[i + 1 :]
            self.z[i], t = c * self.z[i] + s * t, c * t - s * self.z[i]

    def _gaussian(self, mean: Array, v: Array) -> Gaussian:
        std = np.sqrt(v + self.noise)[:, None]
        return Gaussian(mean, np.repeat(std, self.outputs, axis=1))

    # Merging: with the same prior and noise and without forgetting, information adds up

    def add(self, other: Contents, sign: int) -> Array:
        """Merge the contents of another learner or, with sign -1, subtract them.

        Merging adds the rows of the other learner, and removes one of two priors; subtracting does the reverse. Rows
        are added by rotations, as in learning. To remove rows [P p], with W = R^-T P' and I - W W' = C C',

            R'R - P'P = R'(I - W W')R  and  R'z - P'p = R'(z - W p),   so   R <- C'R,  z <- C^-1 (z - W p)

        Return the change of y'y / noise - z'z minus the value of the other learner, (p,).
        """
        m, seen = self.weights, self.seen + sign * other["seen"]
        theirs = np.hstack([other["R"], other["z"]])
        prior = np.hstack([np.sqrt(self.prior_information) * np.eye(m), np.zeros((m, self.outputs))])
        come, gone = (theirs, prior) if sign > 0 else (prior, theirs)
        T = np.asarray(np.linalg.qr(np.vstack([np.hstack([self.R, self.z]), come]), mode="r"))
        T[:m] *= np.sign(np.diag(T))[:m, None]
        R, z, p = T[:m, :m], T[:m, m:], gone[:, m:]
        W = np.linalg.solve(R.T, gone[:, :m].T)
        try:
            C = np.linalg.cholesky(np.eye(m) - W @ W.T)
        except np.linalg.LinAlgError:
            C = None
        if C is None or seen < 0:
            raise ValueError(
                "other must have learned only rows that this model has learned, too, but it contains more information. "
                "Subtract only a model that was merged before."
            )
        left = np.linalg.solve(C, z - W @ p)
        if sign < 0 and self._lost(R, z, C, left) > MOST_LOST:
            raise ValueError(TOO_LITTLE_LEFT)
        off = p - W.T @ z
        grown = (T[m:, m:] ** 2).sum(axis=0) - (off * np.linalg.solve(np.eye(m) - W.T @ W, off)).sum(axis=0)
        self.R, self.z, self.seen = C.T @ R, left, seen
        return np.asarray(grown)

    def _lost(self, R: Array, z: Array, C: Array, left: Array) -> float:
        """Return a bound of the relative error after subtracting, which replaces R by C'R and z by `left`.

        The columns of R have relative errors of about sqrt(n) 1e-16. These errors grow with the condition number of R
        with scaled columns, and with |C^-1|^2, the largest ratio of old to remaining information. The bound holds for
        the relative error of standard deviations, and for the error of means in units of 1 + |z| standard deviations of
        f.
        """
        condition = np.linalg.norm(np.linalg.norm(R, axis=0)[:, None] * np.linalg.inv(R))
        grown = np.linalg.norm(np.linalg.inv(C))
        size = (np.linalg.norm(z, axis=0) / (1.0 + np.linalg.norm(left, axis=0))).max()
        return float(ROUNDING * (1.0 + np.sqrt(self.seen)) * condition * grown * (grown + size))

    def leaf_plan(self) -> Plan:
        constants = {"noise": self.noise, "forgetting": self.forgetting, "intercept": self.intercept}
        return Plan("linear regression", self, {**constants, "renewal": self.renewal})

    def check(self, values: Values) -> None:
        check_upper("R", values["R"], singular=False)
