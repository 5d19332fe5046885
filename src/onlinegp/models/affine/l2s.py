"""Online learning in L2 space with Gaussians of several widths, and selective updates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from onlinegp.checks import Array, count, positive
from onlinegp.engine.compiled import leaf
from onlinegp.engine.plan import Plan
from onlinegp.learner import Learner
from onlinegp.models.affine.window import most_of
from onlinegp.models.base import OnlineRegressor
from onlinegp.models.facts import Facts
from onlinegp.models.lms.base import checked
from onlinegp.models.recipe import parameters
from onlinegp.models.rowwise import ErrorScale, StepLearner
from onlinegp.state import Values, WithFields, array, integer, learner, points

SHRINKAGE = 1e-3  # shrinks the inner products toward the identity


class Atoms(WithFields):
    """Normalized Gaussians g(x) = (2 pi s)^(-d/2) exp(-|x - c|^2 / (2 s)), each with a center, a variance and weights.

    The inner product of two Gaussians in L2 is a Gaussian with the sum of their variances: <g_1, g_2> = g_(s1 + s2)(c1
    - c2). `columns` stores what depends only on the variance, one row per variance: the height and rate of g = height
    exp(-rate |x - c|^2), the inverse of its norm, and the heights and rates of its coherence with the Gaussians of each
    variance.
    """

    fields = {"C": points("m"), "weights": array("m", "outputs"), "variance": array("m")}
    lengths = {"m": "most"}

    def __init__(self, features: int, outputs: int, variances: Array, most: int) -> None:
        self.features, self.outputs, self.variances, self.most = features, outputs, variances, most
        self.columns = np.array([self._column(float(s)) for s in variances])
        self.C, self.weights, self.variance = np.empty((0, features)), np.empty((0, outputs)), np.empty(0)

    @property
    def _facts(self) -> Array:
        """The row of `columns` for each Gaussian, as one column per Gaussian."""
        return self.columns[(self.variance[:, None] == self.variances).argmax(axis=1)].T

    def height(self, variance: Any) -> Any:
        """Return the value of a normalized Gaussian at its center."""
        return (2.0 * np.pi * variance) ** (-0.5 * self.features)

    def _column(self, s: float) -> Array:
        norms = np.sqrt(self.height(2.0 * s) * self.height(2.0 * self.variances))
        both = s + self.variances
        own = (self.height(s), 0.5 / s, self.height(2.0 * s) ** -0.5)
        return np.concatenate([own, self.height(both) / norms, 0.5 / both])

    def at(self, x: Array) -> tuple[Array, Array]:
        """Return the squared distances from the centers to x, and the values of the Gaussians at x, (m,) each."""
        difference = self.C - x
        d2 = np.einsum("ij,ij->i", difference, difference)
        height, rate = self._facts[:2]
        return d2, height * np.exp(-rate * d2)

    def coherences(self, d2: Array, i: int) -> Array:
        """Return <g, g_j> / (|g| |g_j|) for a new Gaussian g with the i-th variance, (m,). d2: squared distances."""
        height, rate = self._facts[3 + i :: len(self.variances)]
        return height * np.exp(-rate * d2)

    def shares(self, k: Array) -> Array:
        """Return g_j(x) / |g_j|, (m,). k: the values g_j(x)."""
        return k * self._facts[2]

    def products(self, which: NDArray[np.int64]) -> Array:
        """Return the inner products of the selected Gaussians, (s, s)."""
        C, variance = self.C[which], self.variance[which]
        both, difference = variance[:, None] + variance, C[:, None] - C
        return self.height(both) * np.exp(-0.5 / both * np.einsum("ijk,ijk->ij", difference, difference))

    def append(self, x: Array, variance: float) -> None:
        """Add a Gaussian at x with weight zero. If the budget is full, remove the oldest."""
        kept = slice(1 if len(self.C) == self.most else 0, None)
        self.C, self.variance = np.vstack([self.C[kept], x]), np.append(self.variance[kept], variance)
        self.weights = np.vstack([self.weights[kept], np.zeros(self.outputs)])

    def check(self, values: Values) -> None:
        if not np.isin(values["variance"], self.variances).all():
            raise ValueError("variance must contain only squares of the length scales.")


class L2SLearner(StepLearner):
    """A sum of Gaussians, f = sum of w_i g_i. Each sample corrects the weights of the Gaussians that are largest at x.

        w_s <- w_s + step e G^-1 k / (epsilon + k' G^-1 k),   k = g_s(x),   G the inner products of the selected

    A sample becomes the center of a new Gaussian with the first width at which its coherence with all Gaussians is low.
    For every width but the first, e^2 > novelty f(x)^2 must also hold.
    """

    fields = {"seen": integer(), "atoms": learner(), "errors": learner()}

    def __init__(
        self,
        atoms: Atoms,
        *,
        step: float,
        coherence: float,
        epsilon: float,
        selected: int,
        novelty: float,
        width: float,
    ) -> None:
        self.atoms, self.errors = atoms, ErrorScale(atoms.outputs)
        self.features, self.outputs = atoms.features, atoms.outputs
        self.step, self.coherence, self.epsilon = step, coherence, epsilon
        self.selected, self.novelty, self.width = selected, novelty, width

    @property
    def size(self) -> int:  # type: ignore[override]
        return len(self.atoms.C)

    def leaf_plan(self) -> Plan:
        names = ("step", "coherence", "epsilon", "selected", "novelty", "width")
        numbers = {name: float(getattr(self, name)) for name in names}
        of_all = {"most": float(self.atoms.most), "shrinkage": SHRINKAGE}
        tables = {"variances": self.atoms.variances, "columns": self.atoms.columns}
        return Plan("gaussians", self, {**numbers, **of_all, **tables})

    def look(self, x: Array) -> tuple[Array, Array, Any]:
        d2, k = self.atoms.at(x)
        mean = k @ self.atoms.weights
        return mean, self.errors.std, (d2, k, mean)

    def correct(self, x: Array, y: Array, e: Array, seen: Any) -> None:
        d2, k, mean = seen
        variance = self.novel(d2, mean, e)
        if variance is not None:
            self.atoms.append(x, variance)
            k = self.atoms.at(x)[1]
        if self.size:
            self._correct(k, e)
        self.errors.add(e, y, self.seen)

    def novel(self, d2: Array, mean: Array, e: Array) -> float | None:
        """Return the variance of the new Gaussian at x, or None for no new Gaussian."""
        for i, variance in enumerate(self.atoms.variances):
            if (len(d2) == 0 or self.atoms.coherences(d2, i).max() < self.coherence) and (
                i == 0 or e @ e > self.novelty * (mean @ mean)
            ):
                return float(variance)
        return None

    def _correct(self, k: Array, e: Array) -> None:
        which = most_of(self.atoms.shares(k), self.selected)
        z = np.linalg.solve(self.products(which), k[which])
        e = np.sign(e) * np.maximum(np.abs(e) - self.width, 0.0)
        self.atoms.weights[which] += np.multiply.outer(z, self.step / (self.epsilon + k[which] @ z) * e)

    def products(self, which: NDArray[np.int64]) -> Array:
        """Return G, the inner products of the selected Gaussians, shrunk slightly toward the identity."""
        return (1.0 - SHRINKAGE) * self.atoms.products(which) + SHRINKAGE * np.eye(len(which))


@parameters
class L2S(OnlineRegressor):
    """Online learning in L2 space: a sum of Gaussians of several widths. Samples correct the largest Gaussians at x.

        f(x) = sum of w_i g_i(x),    w_s <- w_s + step e G^-1 k_s / (epsilon + k_s' G^-1 k_s)

    with normalized Gaussians g_i and their inner products G in L2 space. Wide Gaussians come first; a narrow Gaussian
    is added where wide Gaussians already exist and the error is still large. O(m d) per sample, and a system of
    `selected` equations. The algorithm defines no variance: the variance of y is the mean squared error of about the
    last 100 rows, the same everywhere. The kernel is always Gaussian, so the parameters are length scales instead of a
    kernel.

    Use it if the function is smooth in some places and rough in others. Do not use it with many inputs: each input
    lowers the coherence of two Gaussians, so nearly every sample becomes a new Gaussian.

    Differs from KAFBOX: KAFBOX uses only the inner product of the first Gaussian with itself until there is a second
    Gaussian, and raises an error if the dictionary is full. This class removes the oldest Gaussian.

    Cost: O(m d + s^3) per sample with s the selected; m is at most the budget
    Memory: O(M d) with M the budget
    Equation: w_s <- w_s + step e G^-1 k_s / (epsilon + k_s' G^-1 k_s)
    Variance of y: the mean squared error of about the last 100 rows, the same everywhere

    Parameters
    ----------
    length_scales : sequence of float
        The widths of the Gaussians. The first is preferred.
    step : float
        The learning rate, stable below 2.
    coherence : float
        In (0, 1]. A sample becomes a new Gaussian if its coherence in L2 with all other Gaussians is less than this
        value.
    epsilon : float
        Regularizes the normalization.
    selected : int
        The number of weights to correct per sample.
    novelty : float
        A Gaussian of another width than the first is added only if e^2 exceeds `novelty` times the squared prediction.
    width : float
        Errors up to this size are not corrected.
    budget : int
        The largest number of Gaussians. Beyond it, the oldest Gaussian is removed.
    engine : {"auto", "native", "python"}
        The engine: compiled, pure Python, or the best available.

    Examples
    --------
    >>> import numpy as np, onlinegp as ogp
    >>> X = np.random.default_rng(0).uniform(-3, 3, (500, 1))
    >>> y = np.sin(X[:, 0])
    >>> model = ogp.kafbox.L2S((1.0, 0.3), selected=5).fit(X, y)
    >>> model.score(X, y) > 0.95
    True

    References
    ----------
    Ohnishi and Yukawa, "Online learning in L2 space with multiple Gaussian kernels", EUSIPCO 2017.
    """

    length_scales: Sequence[float] = (5.0, 1.0, 0.5)
    _: KW_ONLY
    step: float = 0.5
    coherence: float = 0.95
    epsilon: float = 1e-2
    selected: int = 1
    novelty: float = 1e-2
    width: float = 0.0
    budget: int = 1000
    engine: str = "auto"

    facts: ClassVar[Facts] = Facts(std_from_errors=True, remedy="Lower the step, and start again with fit.")

    def check(self) -> None:
        self.start(1, 1)

    def start(self, features: int, outputs: int) -> Learner:
        rule = checked(self, "step", "coherence", "epsilon", "selected", "novelty", "width")
        atoms = Atoms(features, outputs, self._variances(features), count(budget=self.budget))
        return leaf(self.engine, L2SLearner(atoms, **rule))

    def _variances(self, features: int) -> Array:
        if isinstance(self.length_scales, (str, bytes)) or not isinstance(self.length_scales, Sequence):
            raise TypeError(
                f"length_scales must be a sequence of numbers, got {self.length_scales!r}. Use (1.0,) for one."
            )
        if not self.length_scales:
            raise ValueError("length_scales must hold at least one number, got none. Use (1.0,) for one.")
        scales = np.array([positive(length_scales=scale) for scale in self.length_scales])
        exponents = np.abs(features * np.log(2.0 * np.sqrt(np.pi) * scales))
        if exponents.max() > 300.0:  # heights and inner products would overflow
            raise ValueError(
                f"length_scales must be closer to 0.3 with {features} features, got {self.length_scales!r}: normalized "
                f"Gaussians become too flat or too high. Scale the inputs, or use fewer inputs."
            )
        return scales**2
