"""Multikernel normalized least mean squares."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY
from math import sqrt
from typing import Any, ClassVar

import numpy as np

from onlinegp.checks import Array
from onlinegp.engine.plan import Plan
from onlinegp.kernels import Kernel
from onlinegp.models.facts import Facts
from onlinegp.models.lms.base import REMEDY, checked
from onlinegp.models.lms.coherence import largest_coherence
from onlinegp.models.lms.multikernel import MultikernelLearner, MultikernelRegressor
from onlinegp.models.recipe import parameters
from onlinegp.models.rowwise import StepLearner


class MKNLMSLearner(MultikernelLearner):
    """Normalized LMS on the concatenated kernel rows of all kernels."""

    def __init__(
        self,
        kernels: Sequence[Kernel],
        features: int,
        outputs: int,
        *,
        step: float,
        coherence: float,
        epsilon: float,
    ) -> None:
        super().__init__(kernels, features, outputs, also=("kcc",))
        self.step, self.coherence, self.epsilon = step, coherence, epsilon

    def leaf_plan(self) -> Plan:
        numbers = {"several": 1.0, "step": self.step, "coherence": self.coherence, "epsilon": self.epsilon}
        return Plan("normalized steps", self, numbers, kernels=self.kernels)

    def look(self, x: Array) -> tuple[Array, float, tuple[list[Array], float, list[float]]]:
        rows, mean, k2 = [], np.zeros(self.outputs), 0.0
        for f in self.fs:
            k, part = f.at(x)
            rows.append(k)
            mean += part
            k2 += float(k @ k)
        kxx = [f.diagonal(x) for f in self.fs]
        s = (self.epsilon + k2 + sum(one * one for one in kxx)) / self.step  # as for KNLMS
        return mean, sqrt(max(s, sum(kxx) + k2)), (rows, k2, kxx)

    def correct(self, x: Array, y: Array, e: Array, seen: tuple[list[Array], float, list[float]]) -> None:
        rows, k2, kxx = seen
        new = self.is_new(rows, kxx)
        if new:
            k2 += sum(one * one for one in kxx)
        # alpha_q <- alpha_q + step e k_q / (epsilon + sum_q |k_q|^2), k_q includes k_q(x, x) if x is admitted
        amount = self.step / (self.epsilon + k2) * e
        for f, k, one in zip(self.fs, rows, kxx, strict=True):
            f.add(k, amount)
            if new:
                f.append(x, one * amount, kcc=one)

    def is_new(self, rows: list[Array], kxx: list[float]) -> bool:
        """Return whether x becomes a center: its coherence with each center is small enough for all kernels."""
        return all(
            largest_coherence(k, one, f.numbers("kcc")) <= self.coherence
            for f, k, one in zip(self.fs, rows, kxx, strict=True)
        )


@parameters
class MKNLMS(MultikernelRegressor):
    """Multikernel normalized LMS: several kernels on the same centers. Each sample corrects the weights of all kernels.

        alpha_q <- alpha_q + step e k_q / (epsilon + sum_q |k_q|^2),   mean = sum_q k_q . alpha_q

    O(Q m) per sample with Q kernels; m is bounded on a bounded input domain. With one kernel this is KNLMS. As for
    KNLMS, the variance exceeds the prior variance and grows with the data. Do not use it as a measure of uncertainty.

    Use it if you do not know the length scale and cannot tune it. With a few hundred rows to tune on, use KNLMS: each
    kernel of MKNLMS costs the same as one KNLMS.

    Cost: O(Q m) per sample with Q kernels; m is bounded by the coherence on a bounded input domain
    Memory: O(Q m d), bounded by the coherence on a bounded input domain
    Equation: alpha_q <- alpha_q + step e k_q / (epsilon + sum_q |k_q|^2)
    Variance of y: as for KNLMS: larger than the prior's, and it grows with the data

    Parameters
    ----------
    kernels : sequence of Kernel, optional
        The covariance functions; RBF with the length scales 0.5, 1, 1.5 and 2 if None.
    step : float
        The learning rate, stable below 2.
    coherence : float
        In (0, 1]. A sample becomes a center if its coherence with every center is at most this for every kernel.
    epsilon : float
        Regularizes the normalization.
    engine : str
        See :class:`~onlinegp.models.lms.multikernel.MultikernelRegressor`.

    Examples
    --------
    >>> import numpy as np, onlinegp as ogp
    >>> X = np.random.default_rng(0).uniform(-3, 3, (500, 1))
    >>> y = np.sin(X[:, 0])
    >>> model = ogp.kafbox.MKNLMS([ogp.kernels.RBF(0.5), ogp.kernels.RBF(1.0)], coherence=0.95).fit(X, y)
    >>> model.score(X, y) > 0.99
    True
    >>> model.size_ < 30
    True

    References
    ----------
    Yukawa, "Multikernel adaptive filtering", IEEE Trans. Signal Processing, 2012.
    """

    kernels: Sequence[Kernel] | None = None
    _: KW_ONLY
    step: float = 0.5
    coherence: float = 0.95
    epsilon: float = 1e-2

    facts: ClassVar[Facts] = Facts(remedy=REMEDY)

    readable: ClassVar[type[StepLearner]] = MKNLMSLearner

    def rule(self) -> dict[str, Any]:
        return checked(self, "step", "coherence", "epsilon")
