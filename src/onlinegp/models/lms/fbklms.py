"""Kernel least mean squares on a fixed budget."""

from __future__ import annotations

from dataclasses import KW_ONLY
from math import sqrt
from typing import Any, ClassVar

import numpy as np

from onlinegp.checks import Array
from onlinegp.engine.plan import Plan
from onlinegp.kernels import Kernel
from onlinegp.models.expansion import Expansion, ExpansionLearner
from onlinegp.models.facts import Facts
from onlinegp.models.lms.base import REMEDY, ExpansionRegressor, checked
from onlinegp.models.lms.coherence import largest_coherence
from onlinegp.models.recipe import parameters
from onlinegp.models.rowwise import StepLearner
from onlinegp.recipes.pruning import oldest_of_least, sizes


class FBKLMSLearner(ExpansionLearner):
    """Normalized LMS on the kernel row of x. The row includes k(x, x) if x becomes a center."""

    def __init__(
        self,
        kernel: Kernel,
        features: int,
        outputs: int,
        *,
        step: float,
        coherence: float,
        budget: int,
        epsilon: float,
    ) -> None:
        super().__init__(Expansion(kernel, features, outputs, also=("kcc",), most=budget))
        self.step, self.coherence, self.budget, self.epsilon = step, coherence, budget, epsilon

    def leaf_plan(self) -> Plan:
        numbers = {"step": self.step, "coherence": self.coherence, "budget": self.budget, "epsilon": self.epsilon}
        return Plan("normalized steps", self, numbers, kernels=self.kernels)

    def look(self, x: Array) -> tuple[Array, float, tuple[Array, float, float]]:
        k, mean = self.f.at(x)
        k2, kxx = float(k @ k), self.f.diagonal(x)
        s = (self.epsilon + k2 + kxx * kxx) / self.step  # as for KNLMS
        return mean, sqrt(max(s, kxx + k2)), (k, k2, kxx)

    def correct(self, x: Array, y: Array, e: Array, seen: tuple[Array, float, float]) -> None:
        k, k2, kxx = seen
        new = largest_coherence(k, kxx, self.f.numbers("kcc")) <= self.coherence
        # alpha <- [alpha; 0] + step e [k; kxx] / (epsilon + |k|^2 + kxx^2) if x becomes a center
        amount = self.step / self.energy(k2, kxx if new else 0.0) * e
        self.f.add(k, amount)
        if new:
            self.f.append(x, kxx * amount, kcc=kxx)
            if self.f.size > self.budget:
                self.f.remove(oldest_of_least(sizes(self.f.weights), np.arange(self.f.size)))

    def energy(self, k2: float, own: float) -> float:
        """Return epsilon + |k|^2, by which the step is divided. `own` is k(x, x) if x becomes a center, else zero."""
        return self.epsilon + k2 + own * own


@parameters
class FBKLMS(ExpansionRegressor):
    """KLMS with a fixed budget: incoherent samples become centers, and the center with the smallest weight is removed.

        alpha <- alpha + step e k / (epsilon + |k|^2),   k includes k(x, x) if x becomes a center

    Each sample changes all weights: this is KNLMS with a budget. O(M) per sample with M the budget. As for KNLMS, the
    variance exceeds the prior variance and grows with the data. Do not use it as a measure of uncertainty.

    Use it if the memory is fixed and coherence alone would keep too many centers. If you can afford O(M^2),
    :class:`~onlinegp.kafbox.FBKRLS` and :class:`~onlinegp.KRLST` keep better centers.

    Cost: O(M) per sample with M the budget
    Memory: O(M d) with M the budget
    Equation: alpha <- alpha + step e k / (epsilon + |k|^2); the smallest weight is removed
    Variance of y: as for KNLMS: larger than the prior's, and it grows with the data

    Parameters
    ----------
    kernel : Kernel, optional
        The covariance function; ``RBF()`` if None.
    step : float
        The learning rate, stable below 2.
    coherence : float
        In (0, 1]. A sample becomes a center if its coherence with each center is at most this value.
    budget : int
        The largest number of centers. Beyond it, the center with the smallest weight is removed.
    epsilon : float
        Regularizes the normalization.
    engine : str
        See :class:`~onlinegp.models.lms.base.ExpansionRegressor`.

    Notes
    -----
    Differs from KAFBOX, whose threshold nu is 1 - coherence: the normalization includes the new center and epsilon.
    KAFBOX divides the weight of a new center by the |k|^2 of the other centers only, so that a sample far from all
    other centers gets an unbounded weight, or 0 / 0.

    Examples
    --------
    >>> import numpy as np, onlinegp as ogp
    >>> X = np.random.default_rng(0).uniform(-3, 3, (500, 1))
    >>> y = np.sin(X[:, 0])
    >>> model = ogp.kafbox.FBKLMS(ogp.kernels.RBF(1.0), coherence=0.9, budget=10).fit(X, y)
    >>> model.score(X, y) > 0.99
    True
    >>> model.size_
    10

    References
    ----------
    Rzepka, "Fixed-budget kernel least mean squares", IEEE Conf. Emerging Technologies & Factory Automation, 2012.
    """

    kernel: Kernel | None = None
    _: KW_ONLY
    step: float = 0.5
    coherence: float = 0.95
    budget: int = 100
    epsilon: float = 1e-2

    facts: ClassVar[Facts] = Facts(remedy=REMEDY)

    readable: ClassVar[type[StepLearner]] = FBKLMSLearner

    def rule(self) -> dict[str, Any]:
        return checked(self, "step", "coherence", "budget", "epsilon")
