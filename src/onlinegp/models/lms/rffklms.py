"""Least mean squares on random Fourier features."""

from __future__ import annotations

from dataclasses import KW_ONLY
from functools import cached_property
from math import sqrt
from typing import Any, ClassVar

import numpy as np

from onlinegp.checks import Array, count, positive, seed_of
from onlinegp.engine.compiled import leaf
from onlinegp.engine.plan import Plan
from onlinegp.kernels import Kernel, kernel_or_default
from onlinegp.kernels.spec import columns
from onlinegp.learner import Learner
from onlinegp.models.base import OnlineRegressor
from onlinegp.models.facts import Facts
from onlinegp.models.features.random_basis import check_width, frequencies, parts_of, turns
from onlinegp.models.recipe import parameters
from onlinegp.models.rowwise import StepLearner
from onlinegp.state import array, integer

MOST_FEATURES = 1_000_000


class RFFKLMSLearner(StepLearner):
    """Linear model of D features, z(x) = sqrt(2 variance / D) cos(W x + b), with z(x)'z(x') close to k(x, x').

    The learner stores the weights of cos(W x + b), which are sqrt(2 variance / D) times the weights of z.
    """

    fields = {"seen": integer(), "w.w": array("basis", "outputs", attribute="w")}

    def __init__(
        self,
        kernel: Kernel,
        features: int,
        outputs: int,
        *,
        step: float,
        basis: int,
        seed: int,
    ) -> None:
        self.features, self.outputs = features, outputs
        self.step, self.basis, self.seed = step, basis, seed
        self.variance, self.shape = parts_of(kernel)
        self.share = 2.0 * self.variance / basis
        self.variance_of_y = max(1.0 / step, self.variance)

    # Created on first use, so that a damaged file that claims many features does not allocate memory

    @cached_property
    def drawn(self) -> tuple[Array, Array]:
        """The frequencies W (D, d) and the phases b (D,)."""
        return self.draw()

    @cached_property
    def w(self) -> Array:
        return np.zeros((self.basis, self.outputs))

    def draw(self) -> tuple[Array, Array]:
        """Draw the frequencies and phases from the seed."""
        rng = np.random.default_rng(self.seed)
        W = frequencies(self.shape, self.features, self.basis, rng)
        return W, rng.uniform(0.0, 2.0 * np.pi, self.basis)

    def z(self, x: Array) -> Array:
        """Return the features of x (d,), (D,)."""
        return sqrt(self.share) * self.cosines(x)

    def cosines(self, x: Array) -> Array:
        """Return cos(W x + b), (D,)."""
        W, b = self.drawn
        angles = W @ x
        angles += b
        return np.cos(angles, out=angles)

    def look(self, x: Array) -> tuple[Array, float, Array]:
        c = self.cosines(x)
        return c @ self.w, sqrt(self.variance_of_y), c

    def correct(self, x: Array, y: Array, e: Array, seen: Array) -> None:
        self.w += np.multiply.outer(seen, self.step * self.share * e)

    def leaf_plan(self) -> Plan:
        constants = {"gain": self.step * self.share, "variance": self.variance_of_y, "basis": self.basis}
        return Plan("cosines", self, {**constants, "turns": turns(*self.drawn)})


@parameters
class RFFKLMS(OnlineRegressor):
    """KLMS on random Fourier features: LMS on D cosines, whose products approximate the kernel.

        w <- w + step e z(x),   z(x) = sqrt(2 / D) cos(W x + b),   z(x)'z(x') ~ k(x, x')

    O(D d) per sample, independent of the number of samples. The variance of y is 1 / step everywhere, as for KLMS.

    Use it if cost and memory must not depend on the data. With many inputs or a short length scale, use many cosines.
    :class:`~onlinegp.RandomFeatureGP` learns faster from the same features, at O(D^2), and has a variance.

    Cost: O(D d) per sample with D cosines
    Memory: O(D d)
    Equation: w <- w + step e z(x), z(x) = sqrt(2 / D) cos(W x + b)
    Variance of y: 1 / step everywhere, as for KLMS; it never shrinks

    Parameters
    ----------
    kernel : Kernel, optional
        RBF, Matern12, Matern32 or Matern52, or a multiple of one; ``RBF()`` if None.
    step : float
        The learning rate. Stable below 1 / k(x, x), and on average below 2 / k(x, x).
    basis : int
        The number D of cosines. The error of the approximated kernel decreases with the square root of D.
    seed : int
        The seed of the frequencies and phases.
    engine : {"auto", "native", "python"}
        The engine: compiled, pure Python, or the best available.

    Notes
    -----
    Differs from KAFBOX: 2 / D instead of 1 / D makes the features match the kernel. The same model needs twice the step
    in KAFBOX. The frequencies are orthogonal to each other (:mod:`onlinegp.models.features.random_basis`) and come from
    a random generator of the model, while KAFBOX seeds the global generator.

    Examples
    --------
    >>> import numpy as np, onlinegp as ogp
    >>> X = np.random.default_rng(0).uniform(-3, 3, (500, 1))
    >>> y = np.sin(X[:, 0])
    >>> model = ogp.kafbox.RFFKLMS(ogp.kernels.RBF(1.0), step=0.5, basis=100).fit(X, y)
    >>> model.score(X, y) > 0.99
    True

    References
    ----------
    Singh, Ahuja and Moulin, "Online learning with kernels: overcoming the growing sum problem", MLSP, 2012.
    """

    kernel: Kernel | None = None
    _: KW_ONLY
    step: float = 0.5
    basis: int = 300
    seed: int = 0
    engine: str = "auto"

    facts: ClassVar[Facts] = Facts(remedy="Lower the step (it is stable below 1 / k(x, x)), and start again with fit.")

    def check(self) -> None:
        self.start(columns(kernel_or_default(self.kernel)), 1)

    def start(self, features: int, outputs: int) -> Learner:
        kernel, rule = kernel_or_default(self.kernel), self.rule()
        check_width(parts_of(kernel)[1], features)
        return leaf(self.engine, RFFKLMSLearner(kernel, features, outputs, **rule))

    def rule(self) -> dict[str, Any]:
        """Return the parameters of the learner. Raise an error that names the first invalid value."""
        if count("300 is a usual choice.", basis=self.basis) > MOST_FEATURES:
            raise ValueError(f"basis must be at most {MOST_FEATURES}, got {self.basis}. 300 is a usual choice.")
        return {"step": positive(step=self.step), "basis": int(self.basis), "seed": seed_of(seed=self.seed)}
