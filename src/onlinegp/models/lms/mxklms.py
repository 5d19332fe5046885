"""A mixture of kernel least mean squares filters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY
from functools import cached_property
from math import sqrt
from typing import Any, ClassVar

import numpy as np

from onlinegp.checks import Array, non_negative, positive
from onlinegp.engine.plan import Plan
from onlinegp.kernels import Kernel
from onlinegp.models.facts import Facts
from onlinegp.models.lms.base import REMEDY
from onlinegp.models.lms.multikernel import MultikernelLearner, MultikernelRegressor
from onlinegp.models.recipe import parameters
from onlinegp.models.rowwise import StepLearner
from onlinegp.state import Fields, array

LOWEST = -700.0  # v stays within 700 of the largest v, so that no share is below 1e-304


def shares(v: Array) -> Array:
    """Return psi = exp(v) / sum exp(v), for each column of v (Q, p)."""
    w = np.exp(v - v.max(axis=0))
    return w / w.sum(axis=0)


def gradient(v: Array, parts: Array, y: Array) -> Array:
    """Return the gradient of (y - sum_q psi_q parts_q)^2 with respect to v. y: (p,). v, parts: (Q, p).

    d psi_q / d v_r = psi_q ([q = r] - psi_r), so the gradient is -2 e psi_r (parts_r - mean)
    """
    psi = shares(v)
    mean = (psi * parts).sum(axis=0)
    return -2.0 * (y - mean) * psi * (parts - mean)


class MXKLMSLearner(MultikernelLearner):
    """KLMS filters f_q with the mean sum_q psi_q f_q. Gradient steps on the squared error learn weights and shares."""

    def __init__(
        self, kernels: Sequence[Kernel], features: int, outputs: int, *, step: float, mixing_step: float
    ) -> None:
        super().__init__(kernels, features, outputs)
        self.step, self.mixing_step = step, mixing_step
        self.gates = np.zeros((len(self.fs), outputs))  # v

    @cached_property
    def fields(self) -> Fields:
        return {**super().fields, "gates.v": array("fs", "outputs", attribute="gates")}

    def leaf_plan(self) -> Plan:
        numbers = {"several": 1.0, "step": self.step, "mixing_step": self.mixing_step}
        return Plan("mixed kernels", self, numbers, kernels=self.kernels)

    def look(self, x: Array) -> tuple[Array, float, Array]:
        psi, parts = shares(self.gates), np.array([f.at(x)[1] for f in self.fs])
        prior = max(f.diagonal(x) for f in self.fs)  # at least the prior variance of sum_q psi_q^2 k_q
        return (psi * parts).sum(axis=0), sqrt(max(1.0 / self.step, prior)), parts

    def correct(self, x: Array, y: Array, e: Array, seen: Array) -> None:
        v = self.gates
        v -= self.mixing_step * self.gradient(v, seen, y)
        v -= v.max(axis=0)
        np.maximum(v, LOWEST, out=v)
        psi = shares(v)
        for q, f in enumerate(self.fs):
            f.append(x, self.step * psi[q] * e)

    def gradient(self, v: Array, parts: Array, y: Array) -> Array:
        """Return the gradient for the descent of v."""
        return gradient(v, parts, y)


@parameters
class MXKLMS(MultikernelRegressor):
    """Mixture of KLMS filters with different kernels. The share of each filter is learned, too.

        mean = sum_q psi_q f_q,   psi = softmax(v)
        v <- v + 2 mixing_step e psi (f - mean),   alpha_q <- [alpha_q; step psi_q e]

    O(Q m) per sample with Q kernels, and m grows by one per sample. As an online GP this is KLMS with the kernel sum_q
    psi_q^2 k_q: the variance of y is 1 / step everywhere and does not shrink.

    Use it to find the best of several kernels while learning. Do not use it on long streams, because the number of
    centers grows without bound; :class:`~onlinegp.kafbox.MKNLMS` bounds it. Shares close to 0 or 1 hardly change, so
    the model adapts slowly to changes.

    Cost: O(Q m) per sample with Q kernels, and m grows by one per sample
    Memory: O(Q m d), grows by one center per sample
    Equation: mean = sum_q psi_q f_q, v <- v + 2 mixing_step e psi (f - mean), alpha_q <- [alpha_q; step psi_q e]
    Variance of y: 1 / step everywhere, as for KLMS; it never shrinks

    Parameters
    ----------
    kernels : sequence of Kernel, optional
        The covariance functions; RBF with the length scales 0.5, 1, 1.5 and 2 if None.
    step : float
        The learning rate of the weights. Stable below 2 / k(x, x), with the largest k(x, x) of all kernels.
    mixing_step : float
        The learning rate of the shares. With zero, all shares stay equal.
    engine : str
        See :class:`~onlinegp.models.lms.multikernel.MultikernelRegressor`.

    Notes
    -----
    Differs from KAFBOX: the gradient with respect to v contains psi (f - mean). KAFBOX uses psi (f + mean), which does
    not always lower the error.

    Examples
    --------
    >>> import numpy as np, onlinegp as ogp
    >>> X = np.random.default_rng(0).uniform(-3, 3, (500, 1))
    >>> y = np.sin(X[:, 0])
    >>> model = ogp.kafbox.MXKLMS([ogp.kernels.RBF(0.01), ogp.kernels.RBF(1.0)]).fit(X, y)
    >>> model.score(X, y) > 0.99
    True
    >>> int(model.shares_.argmax())  # the kernel that is wide enough
    1

    References
    ----------
    Pokharel, Seth and Principe, "Mixture kernel least mean square", Int. Joint Conf. Neural Networks, 2013.
    """

    kernels: Sequence[Kernel] | None = None
    _: KW_ONLY
    step: float = 0.5
    mixing_step: float = 0.5

    facts: ClassVar[Facts] = Facts(bounded=False, remedy=REMEDY)

    readable: ClassVar[type[StepLearner]] = MXKLMSLearner

    def rule(self) -> dict[str, Any]:
        return {
            "step": positive(step=self.step),
            "mixing_step": non_negative("Use 0.0 for equal shares.", mixing_step=self.mixing_step),
        }

    @property
    def shares_(self) -> Array:
        """The shares of the kernels, (Q,) or (Q, outputs)."""
        learner = self._several
        assert isinstance(learner, MXKLMSLearner)
        psi = shares(learner.gates)
        return psi[:, 0] if self._single else psi
