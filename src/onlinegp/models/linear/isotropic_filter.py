"""Linear filters with a single variance for all weights: the Python loop, and its compiled twin.

y = w'x + e. The m weights are assumed to be N(w, v I), with one variance v for all. Per sample

    w <- keep w,   v <- keep^2 v + drift
    s = floor + slope v x'x,   g = v / s,   e = y - w'x
    w <- w + g x e,   v <- v (floor + (slope - share) v x'x) / s

s is the variance of y. With slope = 1 and share = 1 / m this is ProbLMS, the best approximation of the Kalman filter by
one variance: the posterior v I - v^2 x x' / s has the mean variance v - share v^2 x'x / s. With share = 0 and no drift,
v is constant, and the filter is LMS (v = 1, s = 1 / step) or NLMS (s = (epsilon + x'x) / step).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from onlinegp.checks import Array
from onlinegp.engine.plan import Plan
from onlinegp.models.linear.weight_filter import FilterLearner
from onlinegp.state import array, integer


@dataclass(frozen=True)
class Rule:
    """The constants of the update, and the initial v."""

    floor: float
    slope: float
    share: float = 0.0  # the share of the information of a sample that each weight gets
    keep: float = 1.0
    drift: float = 0.0
    start: float = 1.0


class IsotropicLearner(FilterLearner):
    """The weights w (m, p), and their variance v (1,)."""

    fields = {"w": array("weights", "outputs"), "v": array(1, least=0.0), "seen": integer()}

    def __init__(self, features: int, outputs: int, *, rule: Rule, intercept: bool) -> None:
        super().__init__(features, outputs, intercept=intercept)
        self.rule, self.v = rule, np.array([rule.start])

    def step(self, x: Array, y: Array) -> tuple[Array, float]:
        r, v, row = self.rule, self._drifted(), x[None, :]
        x2 = float(np.einsum("nm,nm->n", row, row)[0])
        mean, s = (values[0] for values in self.at(row))  # without BLAS, whose rounding depends on the machine
        self.w *= r.keep
        self.w += np.outer((v / s) * x, y - mean)
        self.v[0] = v * (r.floor + (r.slope - r.share) * v * x2) / s
        return mean, float(s)

    def leaf_plan(self) -> Plan:
        r = self.rule
        rule = {"floor": r.floor, "slope": r.slope, "share": r.share, "keep": r.keep, "drift": r.drift}
        return Plan("isotropic filter", self, rule | {"intercept": self.intercept})

    def at(self, X: Array) -> tuple[Array, Array]:
        r, v = self.rule, self._drifted()
        mean = r.keep * np.einsum("nm,mp->np", X, self.w)
        return mean, r.floor + r.slope * v * np.einsum("nm,nm->n", X, X)

    def _drifted(self) -> float:
        return float(self.rule.keep**2 * self.v[0] + self.rule.drift)
