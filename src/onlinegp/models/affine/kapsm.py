"""Kernel adaptive projected subgradient method."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY
from enum import IntEnum
from typing import Any, ClassVar

import numpy as np

from onlinegp.checks import Array, choice, positive
from onlinegp.kernels import Kernel
from onlinegp.models.affine.base import NO_VARIANCE, WindowLearner
from onlinegp.models.affine.growing_window import RecentLearner, RecentRegressor
from onlinegp.models.expansion import Expansion
from onlinegp.models.facts import Facts
from onlinegp.models.recipe import parameters
from onlinegp.models.search_space import Move, Value
from onlinegp.recipes.costs import kernel_row
from onlinegp.state import array

Loss = IntEnum("Loss", ["squared", "absolute", "huber"], start=0)  # as in native/api.hpp


class KAPSMLearner(RecentLearner):
    """f <- P(f - step mean of L / |L'|^2 L' over the window), with P the projection onto the ball |f| <= radius.

    L' = l'(e) k(x, .), so the weight of a row is corrected by step / n times l / |l'| sign(e) / k(x, x). The norm is
    updated: a correction by Z adds 2 Z . F + Z . K Z to |f|^2, and removing a center of weight w subtracts 2 w f(c) +
    w^2 k(c, c), where f is the function without that center.
    """

    kind = "kapsm"
    constants = ("step", "loss", "bend", "radius")
    fields = {**RecentLearner.fields, "norms.squares": array("outputs", attribute="norms")}

    def __init__(self, f: Expansion, *, window: int, step: float, loss: Loss, bend: float, radius: float) -> None:
        super().__init__(f, window=window, keep=1.0)
        self.step, self.loss, self.bend, self.radius = step, loss, bend, radius
        self.norms = np.zeros(self.outputs)  # |f|^2

    def correction(self, E: Array) -> Array:
        kxx = self.window.K.diagonal()[:, None]
        return self.step / len(E) * self.distance(E) / np.where(kxx > 0.0, kxx, np.inf)

    def distance(self, E: Array) -> Array:
        """Return l / |l'| with the sign of the error: the distance of f from zero loss, by the linearized loss.

        For the squared loss e / 2; for the absolute loss e; for Huber's loss e / 2 up to its bend b, and |e| - b / 2
        beyond.
        """
        if self.loss == Loss.squared:
            return 0.5 * E
        if self.loss == Loss.absolute:
            return E
        return np.where(np.abs(E) <= self.bend, 0.5 * E, E - 0.5 * self.bend * np.sign(E))

    def _corrected(self, Z: Array, KZ: Array) -> Array | None:
        squares = self.norms
        squares += (Z * (2.0 * self.window.F + KZ)).sum(axis=0)
        np.maximum(squares, 0.0, out=squares)
        if not (squares > self.radius**2).any():
            return None
        scale = np.where(squares > self.radius**2, self.radius / np.sqrt(squares), 1.0)
        squares *= scale**2
        return scale

    def _removed(self, center: Array, weight: Array) -> None:
        _, f = self.f.at(center)
        squares = self.norms
        squares -= weight * (2.0 * f + weight * self.f.diagonal(center))
        if self.budget is not None and self.window.count % self.budget == 0:  # from scratch, against rounding
            weights = self.f.weights
            squares[...] = (weights * (self.f.rows(self.f.centers) @ weights)).sum(axis=0)
        np.maximum(squares, 0.0, out=squares)


@parameters
class KAPSM(RecentRegressor):
    """Kernel adaptive projected subgradient method: reduce the losses of the last rows, with f inside a ball.

        f <- P(f - step mean of L_i(f) / |L_i'(f)|^2 L_i'(f) over the last `window` rows)

    where P scales f back to the ball |f| <= radius in the space of the kernel if f is outside. O(m + w^2) per sample
    with w the window. Every sample becomes a center; when the budget is full, the oldest center is removed. It has no
    predictive variance of its own: the variance of y is the mean square of about its last 100 errors, the same
    everywhere.

    Use it if a bound on the norm of f is known. It is not robust against outliers, because the step grows with the
    error for all losses; :class:`~onlinegp.Robust` limits their effect. The paper is about classification; this class
    uses its update with a regression loss.

    Differs from KAFBOX: KAFBOX never computes the norm of f, so the ball has no effect, and its step for a row without
    an error is 0 / 0 up to rounding. With several outputs, each output is a separate function with its own ball.

    Parameters
    ----------
    kernel : Kernel, optional
        The covariance function; ``RBF()`` if None.
    step : float
        The learning rate, stable below 2.
    loss : {"squared", "absolute", "huber"}
        The loss of a row's error. With the squared loss a full step halves the error.
    bend : float
        The error at which Huber's loss becomes linear.
    radius : float, optional
        The radius of the ball, a bound on the norm of f; None for no bound.
    window : int
        The number of rows whose losses count.
    budget : int, optional
        The largest number of centers, at least `window`; None keeps all samples.
    engine : str
        See :class:`~onlinegp.models.affine.base.AffineRegressor`.

    Examples
    --------
    >>> import numpy as np, onlinegp as ogp
    >>> X = np.random.default_rng(0).uniform(-3, 3, (500, 1))
    >>> y = np.sin(X[:, 0])
    >>> model = ogp.kafbox.KAPSM(ogp.kernels.RBF(1.0)).fit(X, y)
    >>> model.score(X, y) > 0.95
    True
    """

    kernel: Kernel | None = None
    _: KW_ONLY
    step: float = 1.8
    loss: str = "squared"
    bend: float = 2.0
    radius: float | None = 10.0
    window: int = 10
    budget: int | None = 200

    facts: ClassVar[Facts] = Facts(
        cost="O(m + w^2) per sample with w the window; m is at most the budget",
        memory="O(M d + w^2) with M the budget and w the window",
        equation="f <- P(f - step mean of L_i / |L_i'|^2 L_i'), P the projection onto |f| <= radius",
        variance=NO_VARIANCE,
        citation=(
            'Slavakis, Theodoridis and Yamada, "Online kernel-based classification using adaptive projection '
            'algorithms", IEEE Trans. Signal Processing, 2008.'
        ),
    )

    searched: ClassVar[Mapping[str, tuple[Move, ...]]] = {
        **RecentRegressor.searched,
        "radius": tuple(map(Value, (1.0, 3.0, 10.0, 30.0))),
    }
    readable: ClassVar[type[WindowLearner]] = KAPSMLearner

    @classmethod
    def suggested(cls, kernel: Kernel, noise: float, **wishes: Any) -> dict[str, Any]:
        """Suggest the tuned kernel and no ball: its radius is a norm of f, not a distance between inputs."""
        return super().suggested(kernel, noise, **({"radius": None} | wishes))

    def multiplications(self, size: float, features: int) -> float:
        full = self.budget is not None and size >= self.budget
        total = self.looking(size, features) + self.correcting(size, features)
        # the distances of the losses, and the change of the norm
        total += (2 if self.loss == "absolute" else 3) * self.window + 1 + 2 * self.window
        if self.radius is not None:  # f is scaled back to the ball
            total += size + 1 + self.window + 3
        if full:  # f at the removed center; and once per budget, the norm from scratch
            total += 2 * (kernel_row(size, features) + size) + 3 + 1
        return total

    def rule(self) -> dict[str, Any]:
        return super().rule() | {
            "step": positive(step=self.step),
            "loss": Loss[choice(tuple(Loss.__members__), loss=self.loss)],
            "bend": positive(bend=self.bend),
            "radius": np.inf if self.radius is None else positive("Use None for no ball.", radius=self.radius),
        }
