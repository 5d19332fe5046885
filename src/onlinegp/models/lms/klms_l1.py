"""Kernel least mean squares with a coherence dictionary and an l1 penalty that removes centers."""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import Any, ClassVar

import numpy as np

from onlinegp.checks import Array
from onlinegp.engine.plan import Plan
from onlinegp.kernels import Kernel
from onlinegp.models.expansion import Expansion, ExpansionLearner
from onlinegp.models.facts import Facts
from onlinegp.models.lms.base import ExpansionRegressor, checked
from onlinegp.models.lms.coherence import largest_coherence
from onlinegp.models.recipe import parameters
from onlinegp.models.rowwise import ErrorScale, StepLearner
from onlinegp.state import learner


class L1Learner(ExpansionLearner):
    """Least mean squares with an l1 penalty that removes centers of weight zero.

    First alpha <- alpha + step e k, then |alpha_i| <- max(|alpha_i| - penalty, 0). With epsilon, the penalty of each
    weight is divided by |alpha_i| + epsilon, so that large weights hardly shrink, and the first center predicts its
    sample exactly.
    """

    fields = {**ExpansionLearner.fields, "errors": learner()}

    def __init__(
        self,
        kernel: Kernel,
        features: int,
        outputs: int,
        *,
        step: float,
        coherence: float,
        penalty: float,
        epsilon: float | None = None,
    ) -> None:
        super().__init__(Expansion(kernel, features, outputs, also=("kcc",)))
        self.step, self.coherence, self.penalty, self.epsilon = step, coherence, penalty, epsilon
        self.errors = ErrorScale(outputs)

    def leaf_plan(self) -> Plan:
        numbers = {"step": self.step, "coherence": self.coherence, "penalty": self.penalty}
        if self.epsilon is None:
            return Plan("penalized steps", self, numbers, kernels=self.kernels)
        return Plan("adaptively penalized steps", self, numbers | {"epsilon": self.epsilon}, kernels=self.kernels)

    def look(self, x: Array) -> tuple[Array, Array, tuple[Array, float]]:
        k, mean = self.f.at(x)
        return mean, self.errors.std, (k, self.f.diagonal(x))

    def correct(self, x: Array, y: Array, e: Array, seen: tuple[Array, float]) -> None:
        k, kxx = seen
        self.errors.add(e, y, self.seen)
        if self.f.size == 0:
            first = self.first_weight(y, kxx)
            e = e - kxx * first
            self.f.append(x, first, kcc=kxx)
            thresholds = self.thresholds()
            self.f.add(np.array([kxx]), self.step * e)
        else:
            thresholds = self.thresholds()
            self.f.add(k, self.step * e)
            if largest_coherence(k, kxx, self.f.numbers("kcc")) <= self.coherence:
                self.f.append(x, self.step * kxx * e, kcc=kxx)
                thresholds = np.append(thresholds, np.full((1, self.outputs), self.penalty), axis=0)
        self.shrink(thresholds)

    def first_weight(self, y: Array, kxx: float) -> Array | float:
        """Return the initial weight of the first center."""
        return 0.0 if self.epsilon is None or not kxx > 0.0 else y / kxx

    def thresholds(self) -> Array:
        """Return the amounts by which the absolute weights shrink, (m, p), computed before the weights change."""
        if self.epsilon is None:
            return np.full((self.f.size, self.outputs), self.penalty)
        return self.penalty / (np.abs(self.f.weights) + self.epsilon)

    def shrink(self, thresholds: Array) -> None:
        """Reduce the absolute weights by `thresholds`, and remove the centers whose weight becomes zero."""
        alpha = self.f.weights
        alpha[:] = np.sign(alpha) * np.maximum(np.abs(alpha) - thresholds, 0.0)
        for j in np.flatnonzero(~alpha.any(axis=1))[::-1].tolist():
            self.f.remove(j)


@parameters
class KLMSCSL1(ExpansionRegressor):
    """KLMS with a coherence dictionary and an l1 penalty that removes centers with small weights.

        alpha <- alpha + step e k,   |alpha_i| <- max(|alpha_i| - penalty, 0)

    O(m) per sample; m is bounded on a bounded input domain. The algorithm defines no variance, because an l1 penalty
    does not correspond to a Gaussian prior. The variance of y is the mean squared error of about the last 100 rows, the
    same everywhere.

    Use it if old centers must be removed because the function or the inputs change. With a coherence near one, use a
    small step: the step is not normalized, so many close centers make the model unstable. KNLMS normalizes the step.

    Cost: O(m) per sample; m is bounded by the coherence on a bounded input domain
    Memory: O(m d), bounded by the coherence on a bounded input domain
    Equation: alpha <- alpha + step e k, |alpha_i| <- max(|alpha_i| - penalty, 0)
    Variance of y: the mean squared error of about the last 100 rows, the same everywhere

    Parameters
    ----------
    kernel : Kernel, optional
        The covariance function; ``RBF()`` if None.
    step : float
        The learning rate. Stable below 2 / |k|^2, where k is the kernel row of the centers: the more centers are close
        to a sample, the smaller the step must be.
    coherence : float
        In (0, 1]. A sample becomes a center if its coherence with every center is at most this value.
    penalty : float
        The amount by which each weight shrinks per sample. With a penalty of zero, no center is removed.
    engine : str
        See :class:`~onlinegp.models.lms.base.ExpansionRegressor`.

    Notes
    -----
    Differs from KAFBOX: if all centers have been removed, the next sample becomes a center. KAFBOX stops learning.

    Examples
    --------
    >>> import numpy as np, onlinegp as ogp
    >>> X = np.random.default_rng(0).uniform(-3, 3, (500, 1))
    >>> y = np.sin(X[:, 0])
    >>> model = ogp.kafbox.KLMSCSL1(ogp.kernels.RBF(1.0), step=0.2, coherence=0.9, penalty=1e-4).fit(X, y)
    >>> model.score(X, y) > 0.99
    True
    >>> model.size_ < 20
    True

    References
    ----------
    Gao, Chen, Richard, Huang and Flamary, "Kernel LMS algorithm with forward-backward splitting for dictionary
    learning", ICASSP, 2013.
    """

    kernel: Kernel | None = None
    _: KW_ONLY
    step: float = 0.3
    coherence: float = 0.5
    penalty: float = 1e-4

    facts: ClassVar[Facts] = Facts(
        std_from_errors=True,
        remedy=(
            "Lower the step (it is stable below 2 / |k|^2, k the kernel row) or the coherence, and start again with "
            "fit."
        ),
    )

    readable: ClassVar[type[StepLearner]] = L1Learner

    def rule(self) -> dict[str, Any]:
        return checked(self, "step", "coherence", "penalty")


@parameters
class KLMSCSAL1(ExpansionRegressor):
    """KLMS with a coherence dictionary and an adaptive l1 penalty, which shrinks large weights less.

        alpha <- alpha + step e k,   |alpha_i| <- max(|alpha_i| - penalty / (|alpha_i before| + epsilon), 0)

    As for KLMSCSL1, the variance of y is the mean squared error of about the last 100 rows, the same everywhere.

    Use it if the penalty of :class:`~onlinegp.kafbox.KLMSCSL1` shrinks large weights too much. As for KLMSCSL1, use a
    small step with a coherence near one.

    Cost: O(m) per sample; m is bounded by the coherence on a bounded input domain
    Memory: O(m d), bounded by the coherence on a bounded input domain
    Equation: alpha <- alpha + step e k, |alpha_i| <- max(|alpha_i| - penalty / (|alpha_i| + epsilon), 0)
    Variance of y: the mean squared error of about the last 100 rows, the same everywhere

    Parameters
    ----------
    kernel : Kernel, optional
        The covariance function; ``RBF()`` if None.
    step : float
        The learning rate. Stable below 2 / |k|^2, where k is the kernel row of the centers.
    coherence : float
        In (0, 1]. A sample becomes a center if its coherence with every center is at most this value.
    penalty : float
        The amount by which a weight of size one shrinks per sample.
    epsilon : float
        Keeps the penalty of small weights finite.
    engine : str
        See :class:`~onlinegp.models.lms.base.ExpansionRegressor`.

    Notes
    -----
    Differs from KAFBOX: the penalty is divided by |alpha| + epsilon, as in the paper, and not by |alpha + epsilon|,
    which is 0 for a weight of -epsilon. If all centers have been removed, the next sample becomes a center; KAFBOX
    stops learning.

    Examples
    --------
    >>> import numpy as np, onlinegp as ogp
    >>> X = np.random.default_rng(0).uniform(-3, 3, (500, 1))
    >>> y = np.sin(X[:, 0])
    >>> model = ogp.kafbox.KLMSCSAL1(ogp.kernels.RBF(1.0), step=0.2, coherence=0.9, penalty=1e-5).fit(X, y)
    >>> model.score(X, y) > 0.99
    True
    >>> model.size_ < 20
    True

    References
    ----------
    Gao, Chen, Richard, Huang and Flamary, "Kernel LMS algorithm with forward-backward splitting for dictionary
    learning", ICASSP, 2013.
    """

    kernel: Kernel | None = None
    _: KW_ONLY
    step: float = 0.3
    coherence: float = 0.5
    penalty: float = 1e-5
    epsilon: float = 1e-6

    facts: ClassVar[Facts] = Facts(std_from_errors=True, remedy=KLMSCSL1.facts.remedy)

    readable: ClassVar[type[StepLearner]] = L1Learner

    def rule(self) -> dict[str, Any]:
        return checked(self, "step", "coherence", "penalty", "epsilon")
