"""Kernel adaptive projected subgradient method."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from enum import IntEnum
from typing import Any, ClassVar

import numpy as np

from onlinegp.checks import Array, choice, positive
from onlinegp.kernels import Kernel
from onlinegp.models.affine.base import REMEDY
from onlinegp.models.affine.growing_window import RecentLearner, recent_rule
from onlinegp.models.affine.window import Window
from onlinegp.models.facts import Facts
from onlinegp.models.lms.base import ExpansionRegressor
from onlinegp.models.recipe import parameters
from onlinegp.models.rowwise import StepLearner

Loss = IntEnum("Loss", ["squared", "absolute", "huber"], start=0)  # as in native/learner.hpp


@dataclass(frozen=True)
class Subgradient:
    """The rule of KAPSM: f <- f - step mean of L / |L'|^2 L' over the window.

    L' = l'(e) k(x, .), so the weight of a row is corrected by step / n times l / |l'| sign(e) / k(x, x).
    """

    step: float
    loss: Loss
    bend: float
    kind: ClassVar[str] = "kapsm"

    @property
    def constants(self) -> Mapping[str, float]:
        return {"step": self.step, "loss": self.loss, "bend": self.bend}

    def weights(self, window: Window) -> Array:
        E, kxx = window.Y - window.F, window.K.diagonal()[:, None]
        return self.step / len(E) * self.distance(E) / np.where(kxx > 0.0, kxx, np.inf)

    def distance(self, E: Array) -> Array:
        """Return l / |l'| with the sign of the error: the distance from f to zero loss, if the loss is linearized.

        This is e / 2 for the squared loss, e for the absolute loss, and for Huber's loss e / 2 up to the bend b, and
        |e| - b / 2 beyond.
        """
        if self.loss == Loss.squared:
            return 0.5 * E
        if self.loss == Loss.absolute:
            return E
        return np.where(np.abs(E) <= self.bend, 0.5 * E, E - 0.5 * self.bend * np.sign(E))


@parameters
class KAPSM(ExpansionRegressor):
    """Kernel adaptive projected subgradient method: reduce the losses of the last rows, and keep f in a ball.

        f <- P(f - step mean of L_i(f) / |L_i'(f)|^2 L_i'(f) over the last `window` rows)

    where P scales f back to the ball |f| <= radius in the space of the kernel if f is outside. Every sample becomes a
    center; when the budget is full, the oldest center is removed.

    Use it if you know a bound on the norm of f. It is not robust against outliers, because the change of f grows with
    the error for every loss; :class:`~onlinegp.Robust` limits the effect of outliers. The paper is about
    classification; this class uses the same update with a regression loss.

    Differs from KAFBOX: KAFBOX never computes the norm of f, so the ball has no effect, and its step for a row without
    an error is 0 / 0 up to rounding. With several outputs, each output is a separate function with its own ball.

    Cost: O(m + w^2) per sample with w the window; m is at most the budget
    Memory: O(M d + w^2) with M the budget and w the window
    Equation: f <- P(f - step mean of L_i / |D_i|^2 D_i), D_i the gradient of the loss L_i, P the projection onto |f| <=
        radius
    Variance of y: the mean squared error of about the last 100 rows, the same everywhere

    Parameters
    ----------
    kernel : Kernel, optional
        The covariance function; ``RBF()`` if None.
    step : float
        The learning rate, stable below 2.
    loss : {"squared", "absolute", "huber"}
        The loss of the error of a row. With the squared loss, step = 1 halves the error.
    bend : float
        The error at which Huber's loss becomes linear.
    radius : float, optional
        The radius of the ball, a bound on the norm of f; None for no bound.
    window : int
        The number of rows with losses to reduce.
    budget : int, optional
        The largest number of centers, at least `window`; None keeps all samples.
    engine : str
        See :class:`~onlinegp.models.lms.base.ExpansionRegressor`.

    Examples
    --------
    >>> import numpy as np, onlinegp as ogp
    >>> X = np.random.default_rng(0).uniform(-3, 3, (500, 1))
    >>> y = np.sin(X[:, 0])
    >>> model = ogp.kafbox.KAPSM(ogp.kernels.RBF(1.0)).fit(X, y)
    >>> model.score(X, y) > 0.95
    True

    References
    ----------
    Slavakis, Theodoridis and Yamada, "Online kernel-based classification using adaptive projection algorithms", IEEE
    Trans. Signal Processing, 2008.
    """

    kernel: Kernel | None = None
    _: KW_ONLY
    step: float = 1.8
    loss: str = "squared"
    bend: float = 2.0
    radius: float | None = 10.0
    window: int = 10
    budget: int | None = 200

    facts: ClassVar[Facts] = Facts(std_from_errors=True, remedy=REMEDY)

    readable: ClassVar[type[StepLearner]] = RecentLearner

    def rule(self) -> dict[str, Any]:
        loss = Loss[choice(tuple(Loss.__members__), loss=self.loss)]
        return recent_rule(self.window, self.budget) | {
            "correction": Subgradient(positive(step=self.step), loss, positive(bend=self.bend)),
            "radius": np.inf if self.radius is None else positive("Use None for no bound.", radius=self.radius),
        }
