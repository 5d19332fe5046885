"""Kernel affine projection with coherence."""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import Any, ClassVar

import numpy as np

from onlinegp.checks import Array, count
from onlinegp.kernels import Kernel
from onlinegp.models.affine.base import FIELDS, REMEDY, WindowLearner
from onlinegp.models.affine.coherent_window import admit, check_window, novel
from onlinegp.models.affine.window import KernelRows, enlarged, solve_positive
from onlinegp.models.expansion import Expansion
from onlinegp.models.facts import Facts
from onlinegp.models.lms.base import ExpansionRegressor, checked
from onlinegp.models.recipe import parameters
from onlinegp.models.rowwise import StepLearner
from onlinegp.state import Values, array


class KAPLearner(WindowLearner):
    """Affine projections: alpha <- alpha + step H' (epsilon I + H H')^-1 (Y - H alpha), with H = k(X, C) of the window.

    G = H H' (n, n) and F = H alpha are updated and never computed from scratch: a new row of H gives a new row of G, a
    new column h of H adds h h' to G, and a correction alpha + H' Z adds G Z to F.
    """

    kind = "kap"
    constants = ("step", "coherence", "epsilon")
    fields = {**FIELDS, "gram.G": array("gram.n", "gram.n", attribute="G")}
    lengths = {"gram.n": None}

    window: KernelRows

    def __init__(
        self,
        kernel: Kernel,
        features: int,
        outputs: int,
        *,
        window: int,
        step: float,
        coherence: float,
        epsilon: float,
    ) -> None:
        f = Expansion(kernel, features, outputs, also=("kcc",))
        super().__init__(f, KernelRows(kernel, features, outputs, window))
        self.step, self.coherence, self.epsilon = step, coherence, epsilon
        self.G = np.empty((0, 0))

    def correct(self, x: Array, y: Array, e: Array, seen: Any) -> None:
        (k, mean), window, kxx = seen, self.window, self.f.diagonal(x)
        new = novel(self.f, k, kxx, self.coherence)
        r = window.push_row(x, y, mean, k)
        self.G = enlarged(self.G, len(window.H))
        self.G[r] = self.G[:, r] = window.H @ window.H[r]
        if new:
            admit(self.f, self.window, x, kxx, r)
            self.G += np.multiply.outer(window.H[:, -1], window.H[:, -1])
        Z = solve_positive(self.G + self.epsilon * np.eye(len(self.G)), self.step * (window.Y - window.F))
        self.f.weights[...] += window.H.T @ Z
        window.F[...] += self.G @ Z
        self.errors.add(e, y, self.seen)

    def check(self, values: Values) -> None:
        check_window(values)
        size, rows = len(values["window"]["Y"]), len(values["gram.G"])
        if rows != size:
            raise ValueError(f"G must have {size} rows like the window, got {rows}.")


@parameters
class KAP(ExpansionRegressor):
    """Kernel affine projection: the smallest change of the weights that corrects the errors of the last rows.

        alpha <- alpha + step H' (epsilon I + H H')^-1 (y - H alpha),    H = k(X, C) of the last `window` rows

    O(m w + w^3) per sample with m centers and w rows in the window; m is bounded on a bounded input domain. With a
    window of one row this is :class:`~onlinegp.KNLMS`. The algorithm defines no variance: the variance of y is the mean
    squared error of about the last 100 rows, the same everywhere.

    Use it if inputs are correlated, like the lags of a series: then it learns faster than KNLMS. With strong noise, use
    a small window, or :class:`~onlinegp.KRLST`, which also gives intervals.

    Differs from KAFBOX: KAFBOX stores only the norm of the first center, so its coherence is wrong for kernels
    whose k(x, x) is not 1, and a negative k(x, c) counts as incoherent.

    Cost: O(m w + w^3) per sample with w the window; m is bounded by the coherence on a bounded domain
    Memory: O(m (d + w)), bounded by the coherence on a bounded input domain
    Equation: alpha <- alpha + step H' (epsilon I + H H')^-1 (y - H alpha)
    Variance of y: the mean squared error of about the last 100 rows, the same everywhere

    Parameters
    ----------
    kernel : Kernel, optional
        The covariance function; ``RBF()`` if None.
    step : float
        The learning rate, stable below 2.
    window : int
        The number of rows to correct at once.
    coherence : float
        In (0, 1]. A sample becomes a center if its coherence with every center is at most this value.
    epsilon : float
        Regularizes the projection.
    engine : str
        See :class:`~onlinegp.models.lms.base.ExpansionRegressor`.

    Examples
    --------
    >>> import numpy as np, onlinegp as ogp
    >>> X = np.random.default_rng(0).uniform(-3, 3, (500, 1))
    >>> y = np.sin(X[:, 0])
    >>> model = ogp.kafbox.KAP(ogp.kernels.RBF(1.0), window=5).fit(X, y)
    >>> model.score(X, y) > 0.99
    True

    References
    ----------
    Richard, Bermudez and Honeine, "Online prediction of time series data with kernels", IEEE Trans. Signal Processing,
    2009.
    """

    kernel: Kernel | None = None
    _: KW_ONLY
    step: float = 0.5
    window: int = 20
    coherence: float = 0.95
    epsilon: float = 1e-2

    facts: ClassVar[Facts] = Facts(std_from_errors=True, remedy=REMEDY)

    readable: ClassVar[type[StepLearner]] = KAPLearner

    def rule(self) -> dict[str, Any]:
        window = count("With one row this is KNLMS.", window=self.window)
        return {"window": window} | checked(self, "step", "coherence", "epsilon")
