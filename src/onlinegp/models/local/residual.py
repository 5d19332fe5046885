"""The GP on current residuals in Python. It defines the results of the compiled learner.

Exact GP regression has the weights (K + noise I)^-1 y over all rows. For any other weights alpha, let r be their
residual. The remaining error is a GP on r, and the nearest rows N contain most of the information about it:

    r = y - (K + noise I) alpha             stored for every row
    mean(x) = k'alpha + w'r_N               w = (K_N + noise I)^-1 k_N
    var(x)  = k(x, x) - k_N'w + noise       of y; never below the exact variance

    learn:  B = the new row, and the `refits` rows of N with the largest |r|
            alpha_B += delta,  r -= (K + noise I)[:, B] delta,   delta = (K_B + noise I)^-1 r_B

An update is an exact step of block coordinate descent on 1/2 a'(K + noise I)a - y'a, so this objective never increases.
The mean is exact for any alpha if N contains all rows, and for any N if r = 0. With forgetting, K fades with age as in
`learner`.

If the store is full, the oldest row i is removed with its weight, r += K[:, i] alpha_i. Then the weights of the
`refits` + 1 rows nearest to row i are solved for, so that these rows take over its contribution. Otherwise the error
would grow with every removed row.

A linear part, y = h'b + f(x) with h = [x, 1], is learned by least squares from the errors of the other part. Its
coefficients are g = h - H_N'w, and the variance of these errors is var(x). It adds g'b to the mean, and the weights
learn r - H b.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from onlinegp.checks import Array
from onlinegp.engine.plan import Plan
from onlinegp.learner import Sizes
from onlinegp.models.linear.information_form import LinearLearner
from onlinegp.models.local.learner import ROW_FIELDS, LocalLearner, LocalPrior, whitened
from onlinegp.predictions import Gaussian
from onlinegp.recipes.update import TINIEST
from onlinegp.state import Fields, Values, array, learner, number

NOTHING = 1e-16  # residuals with a smaller square, relative to the squared error of the new row, count as zero


@dataclass(frozen=True)
class ResidualPrior(LocalPrior):
    """The checked parameters of a GP on residuals.

    Attributes
    ----------
    refits : the number of neighbors whose weights are solved for together with the weight of a new row
    learn_power : whether to learn the scale of the variance from the errors
    linear : whether there is a linear part
    """

    refits: int = 1
    learn_power: bool = True
    linear: bool = False

    @property
    def local(self) -> LocalPrior:
        """The parameters of the LocalGP that finds the same neighbors and solves the same equations."""
        return LocalPrior(self.kernel, self.noise, self.neighbors, self.store, self.forgetting)

    def line(self, features: int, outputs: int) -> LinearLearner:
        """Return the linear part before the first row. Its weights have the prior variance one."""
        return LinearLearner(features, outputs, noise=1.0, prior=1.0, forgetting=self.forgetting, intercept=True)


class Answer(NamedTuple):
    """The prediction for a row x, before the power scales its variance.

    Attributes
    ----------
    near : the indices of the neighbors
    alone : (p,), k'alpha
    rest : (p,), the mean k'alpha + w'r_N, without the linear part
    local : (p,), the mean w'y_N of LocalGP, without the linear part
    variance : the variance of y without the linear part
    g : (d + 1,), the coefficients of the linear part
    line, doubt : (p,), mean and variance of the linear part g'b
    """

    near: NDArray[np.int64]
    alone: Array
    rest: Array
    local: Array
    variance: float
    g: Array
    line: Array
    doubt: float


class ResidualLearner(LocalLearner):
    """The stored rows with their weights and residuals, the power of the variance, and the linear part."""

    prior: ResidualPrior

    def __init__(self, prior: ResidualPrior, features: int, outputs: int) -> None:
        super().__init__(prior, features, outputs)
        self.alpha, self.residuals = np.empty((0, self.outputs)), np.empty((0, self.outputs))
        self.power, self.evidence = 1.0, 1.0
        self._line = self.prior.line(self.features, self.outputs)

    def leaf_plan(self) -> Plan:
        prior = self.prior
        more = {"refits": float(prior.refits), "learn_power": prior.learn_power, "linear": prior.linear}
        line = {"forgetting": prior.forgetting, "renewal": self._line.renewal}
        return Plan("residual gp", self, {**self._constants(), **more, **line}, kernels=self.kernels)

    def learn(self, X: Array, Y: Array) -> None:
        self.run_both(X, Y)

    def run(self, X: Array, Y: Array) -> tuple[Gaussian, Sizes]:
        own, _, size = self.run_both(X, Y)
        return own, size

    def run_both(self, X: Array, Y: Array) -> tuple[Gaussian, Gaussian, Sizes]:
        """Predict each row, then learn it. Return the predictions of ResidualGP and of LocalGP, and the sizes."""
        predicted, size = [], np.empty(len(X), dtype=np.int64)
        for i in range(len(X)):
            answer = self._ask(X[i : i + 1])
            predicted.append(self._both(answer))
            self._learn_row(X[i : i + 1], Y[i], answer)
            size[i] = self.size
        return *_gaussians(predicted, self.outputs), size

    def predict(self, X: Array) -> Gaussian:
        return self.predict_both(X)[0]

    def predict_both(self, X: Array) -> tuple[Gaussian, Gaussian]:
        """Return the predictions of ResidualGP, and of LocalGP with the same linear part. Both share one solution."""
        return _gaussians([self._both(self._ask(X[i : i + 1])) for i in range(len(X))], self.outputs)

    # One row, x (1, d) and y (p,)

    def _ask(self, x: Array) -> Answer:
        k, near = self._covariances(x, np.array([self.seen]))[0], self.neighbors(x)
        p, h = self.outputs, _H(x)[0]
        sums, variance = self._answer(x, near, np.hstack([self.Y[near], self.residuals[near], _H(self.X[near])]))
        g, line, doubt = h - sums[2 * p :], np.zeros(p), 0.0
        if self.prior.linear:
            line, doubt = self._line.predict_row(g)
        alone = k @ self.alpha
        return Answer(near, alone, alone + sums[p : 2 * p], sums[:p], variance, g, line, doubt)

    def _both(self, answer: Answer) -> tuple[Array, Array, float, float]:
        """Return both means, and both variances of y."""
        variance = answer.variance + answer.doubt
        return answer.rest + answer.line, answer.local + answer.line, self.power * variance, variance

    def _learn_row(self, x: Array, y: Array, answer: Answer) -> None:
        e, forgetting = y - answer.rest, self.prior.forgetting
        if self.prior.learn_power:
            self.evidence = forgetting * self.evidence + 1.0
            ratio = float(((e - answer.line) ** 2).mean()) / (answer.variance + answer.doubt)
            self.power = max(self.power + (ratio - self.power) / self.evidence, TINIEST)
        if self.prior.linear:
            std = np.sqrt(answer.variance)
            self._line.learn_row(answer.g / std, e / std)
        worst = self._worst(answer.near, y - answer.alone - self._line_at(x)[0])
        self._append(x, y[None, :])
        self.alpha, self.residuals = (np.pad(rows, ((0, 1), (0, 0))) for rows in (self.alpha, self.residuals))
        self._refit(np.append(self.size - 1, worst))
        if self.prior.store is not None and self.size > self.prior.store:
            left = self.X[:1]
            self._remove_oldest()
            self._refit(self.neighbors(left)[: self.prior.refits + 1])

    def _worst(self, near: NDArray[np.int64], e: Array) -> NDArray[np.int64]:
        """Return the neighbors with the largest residuals, except a row to be removed. e: the error of the new row."""
        if self.size == self.prior.store:
            near = near[near > 0]
        misfit = (self._unexplained(near) ** 2).sum(axis=1)
        misfit[misfit <= NOTHING * (e**2).sum()] = 0.0
        with np.errstate(over="ignore"):
            rounded = misfit.astype(np.float32)  # with equal residuals, the nearer row is first
        return near[np.argsort(-rounded, kind="stable")[: self.prior.refits]]

    def _unexplained(self, rows: NDArray[np.int64]) -> Array:
        """Return r - H b at these rows, the error of weights and linear part together."""
        return self.residuals[rows] - self._line_at(self.X[rows])

    def _line_at(self, X: Array) -> Array:
        """Return the linear part at rows X, H b, (m, p)."""
        return _H(X) @ self._line.w if self.prior.linear else np.zeros((len(X), self.outputs))

    def _refit(self, B: NDArray[np.int64]) -> None:
        """Solve for the weights of these rows, with all other weights fixed."""
        K = self._covariances(self.X[B], self._times()[B])
        self.residuals[B] = self.Y[B] - K @ self.alpha - self.prior.noise * self.alpha[B]
        delta = solved(K[:, B] + self.prior.noise * np.eye(len(B)), self._unexplained(B))
        self.alpha[B] += delta
        self.residuals[:] -= K.T @ delta
        self.residuals[B] -= self.prior.noise * delta

    def _remove_oldest(self) -> None:
        """Remove the oldest row and its weight: r += K[:, i] alpha_i."""
        k = self._covariances(self.X[:1], self._times()[:1])
        self.residuals[:] += k.T @ self.alpha[:1]
        self._keep(self.size - 1)
        self.alpha, self.residuals = self.alpha[1:], self.residuals[1:]

    def _covariances(self, X: Array, times: Array) -> Array:
        """Return k(x, z) a^|t - u| for rows x with times t, (m,), and all stored rows z, (m, n)."""
        fade = np.exp(-0.5 * self.prior.fade * np.abs(times[:, None] - self._times()))
        return np.asarray(self.prior.kernel(X, self.X) * fade, dtype=np.float64)

    def _times(self) -> Array:
        return self.seen - self._ages()

    @cached_property
    def fields(self) -> Fields:
        own = {
            "alpha": array("kept", "outputs"),
            "r": array("kept", "outputs", attribute="residuals"),
            "power": number(positive=True),
            "evidence": number(least=1.0),
        }
        return {**ROW_FIELDS, **own, **({"line": learner(attribute="_line")} if self.prior.linear else {})}

    def check(self, values: Values) -> None:
        super().check(values)
        if self.prior.linear and values["line"]["seen"] != values["seen"]:
            raise ValueError(f"line.seen must equal seen, {values['seen']}, got {values['line']['seen']}.")


def solved(A: Array, R: Array) -> Array:
    """Return A^-1 R for A (m, m) and R (m, p), with zero for redundant rows."""
    T = whitened(A, np.hstack([R, np.eye(len(A))]))  # L^-1 R, L^-1
    return T[:, R.shape[1] :].T @ T[:, : R.shape[1]]


def _H(X: Array) -> Array:
    return np.hstack([X, np.ones((len(X), 1))])


def _gaussians(predicted: list[tuple[Array, Array, float, float]], outputs: int) -> tuple[Gaussian, Gaussian]:
    own, local, own_variance, local_variance = (np.array(column) for column in zip(*predicted, strict=True))
    std = [np.repeat(np.sqrt(variance)[:, None], outputs, axis=1) for variance in (own_variance, local_variance)]
    return Gaussian(own, std[0]), Gaussian(local, std[1])
