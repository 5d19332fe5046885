"""Parallel hyperslab projection along affine subspaces."""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from onlinegp.checks import Array, count
from onlinegp.kernels import Kernel
from onlinegp.models.affine.base import FIELDS, REMEDY, WindowLearner
from onlinegp.models.affine.coherent_window import admit, check_window, novel
from onlinegp.models.affine.window import KernelRows, enlarged, most_of
from onlinegp.models.expansion import Expansion, kernel_rows
from onlinegp.models.facts import Facts
from onlinegp.models.lms.base import ExpansionRegressor, checked
from onlinegp.models.recipe import parameters
from onlinegp.models.rowwise import StepLearner
from onlinegp.state import Contents, Values, WithFields, array, integers, learner, points

MOST = 10_000  # the largest window x selected
LONGEST = 1e4  # the largest L, which would be unbounded if rows contradict each other
DEPENDENT = 1e-12  # a center is linearly dependent if its pivot is a smaller share of k(c, c)


class Chosen(WithFields):
    """The chosen centers of each row in the window: s centers for each of n rows.

    Attributes
    ----------
    places : (n, s), the slots of the centers, the most coherent center first; -1 if there are fewer than s
    a : (n, s), the weights of the projections: K_i a_i = y_i, where K_i is the kernel matrix of the centers of row i,
        and y_i contains k(x_i, c) for these centers
    d : (n,), y_i . a_i
    K : (n s, n s), the kernel matrix of all chosen centers, row by row; entries of missing centers are meaningless
    """

    fields = {
        "places": integers("n", "most", least=-1),
        "a": array("n", "most"),
        "d": array("n"),
        "K": array("all", "all"),
        "C": points("all"),
    }
    lengths = {"n": None, "all": None}

    def __init__(self, kernel: Kernel, features: int, most: int) -> None:
        self.kernel, self.features, self.most = kernel, features, most
        self.places: NDArray[np.int64] = np.empty((0, most), dtype=np.int64)
        self.a, self.d = np.empty((0, most)), np.empty(0)
        self.K, self.C = np.empty((0, 0)), np.empty((0, features))

    def choose(self, r: int, coherences: Array, k: Array, f: Expansion) -> None:
        """Choose the most coherent centers for row r. `k` is the kernel row of row r."""
        best = most_of(coherences, self.most)
        own = np.array([f.center(j) for j in best])
        if r == len(self.places):
            self.places = np.vstack([self.places, np.zeros(self.most, dtype=np.int64)])
            self.a = np.vstack([self.a, np.zeros(self.most)])
            self.d, self.K = np.append(self.d, 0.0), enlarged(self.K, self.places.size)
            self.C = np.vstack([self.C, np.zeros((self.most, self.features))])
        first, m = r * self.most, len(best)
        chosen = slice(first, first + m)
        self.places[r], self.places[r, :m] = -1, best
        self.C[chosen] = own
        self.K[chosen] = kernel_rows(self.kernel, self.C, own)
        self.K[:, chosen] = self.K[chosen].T
        self.a[r], self.a[r, :m] = 0.0, projection(self.K[chosen, chosen], k[best])
        self.d[r] = k[best] @ self.a[r, :m]

    def dump(self) -> Contents:
        there = (self.places >= 0).reshape(-1, 1)  # entries of missing centers are not stored
        K, C = np.where(there & there.T, self.K, 0.0), np.where(there, self.C, 0.0)
        return {"places": self.places.copy(), "a": self.a.copy(), "d": self.d.copy(), "K": K, "C": C}

    def check(self, values: Values) -> None:
        if len(values["C"]) != values["places"].size:
            raise ValueError(f"there must be {values['places'].size} chosen centers, got {len(values['C'])}.")


def projection(K: Array, y: Array) -> Array:
    """Solve K a = y for the kernel matrix K (s, s) of centers, and y in its range. Return a, (s,).

    A center that depends linearly on earlier centers, such as a duplicate, gets the weight 0. Its pivot in Gaussian
    elimination is zero, up to rounding.
    """
    rest, part = K.copy(), np.ones(len(K), dtype=bool)
    for j in range(len(K)):
        part[j] = not rest[j, j] <= DEPENDENT * K[j, j]
        if part[j]:
            rest -= np.multiply.outer(rest[j] / rest[j, j], rest[j])
    a = np.zeros(len(K))
    a[part] = np.linalg.solve(K[np.ix_(part, part)], y[part])
    return a


class PHYPASSLearner(WindowLearner):
    """Correct all rows of the window at once, each by the weights of the centers that are most coherent with it.

    With P_i k(x_i, .) = sum_j a_ij k(c_j, .) over the chosen centers of row i, d_i = |P_i k(x_i, .)|^2 and
    b_i = (error of row i beyond the width) / d_i, the correction is (with L, the longest step that extrapolation
    allows):

        f <- f + step L sum_i b_i P_i k(x_i, .),    L = sum_i b_i^2 d_i / |sum_i b_i P_i k(x_i, .)|^2

    The step is zero if all errors are zero.
    """

    kind = "phypass"
    constants = ("step", "coherence", "selected", "width")
    fields = {**FIELDS, "chosen": learner()}

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
        selected: int,
        width: float,
    ) -> None:
        f = Expansion(kernel, features, outputs, also=("kcc",))
        super().__init__(f, KernelRows(kernel, features, outputs, window))
        self.step, self.coherence, self.selected, self.width = step, coherence, selected, width
        self.chosen = Chosen(kernel, features, selected)

    def correct(self, x: Array, y: Array, e: Array, seen: Any) -> None:
        (k, mean), kxx = seen, self.f.diagonal(x)
        new = novel(self.f, k, kxx, self.coherence)
        r = self.window.push_row(x, y, mean, k)
        if new:
            admit(self.f, self.window, x, kxx, r)
        if self.f.size:
            self._choose(r, new)
            self._project()
        self.errors.add(e, y, self.seen)

    def check(self, values: Values) -> None:
        check_window(values)
        places, size = values["chosen"]["places"], len(values["f"]["centers"])
        if not np.all(places < size):
            raise ValueError(f"places must be slots of the {size} centers, or -1 for no center, got {places!r}.")

    def _choose(self, r: int, new: bool) -> None:
        """Choose centers for row r, and for each row that is more coherent with a new center than with its centers."""
        H, kcc, chosen = self.window.H, self.f.numbers("kcc"), self.chosen
        chosen.choose(r, np.abs(H[r]) / np.sqrt(kcc), H[r], self.f)
        if not new:
            return
        worst = chosen.places[:, -1]
        theirs = np.abs(H[np.arange(len(H)), worst]) / np.sqrt(kcc[worst])
        for i in np.flatnonzero((worst < 0) | (np.abs(H[:, -1]) / np.sqrt(kcc[-1]) > theirs)):
            if i != r:
                chosen.choose(int(i), np.abs(H[i]) / np.sqrt(kcc), H[i], self.f)

    def _project(self) -> None:
        window, chosen = self.window, self.chosen
        E, places = window.Y - window.F, chosen.places.ravel()
        E = np.sign(E) * np.maximum(np.abs(E) - self.width, 0.0)
        B = E / np.where(chosen.d > 0.0, chosen.d, np.inf)[:, None]
        V = (chosen.a[:, :, None] * B[:, None, :]).reshape(len(places), self.outputs)
        squares, length = chosen.d @ (B * B), np.einsum("ip,ip->p", V, chosen.K @ V)
        V *= self.step * self.extrapolation(squares, length)
        np.add.at(self.f.weights, places, V)
        window.F[...] += window.H[:, places] @ V

    def extrapolation(self, squares: Array, length: Array) -> Array:
        """Return L, the sum of squared lengths divided by the squared length of the sum. Zero if there is no error."""
        return np.minimum(np.divide(squares, length, out=np.zeros_like(squares), where=length > 0.0), LONGEST)


@parameters
class PHYPASS(ExpansionRegressor):
    """Parallel hyperslab projection along affine subspaces: each of the last rows corrects a few selected weights.

        f <- f + step L sum_i b_i P_i k(x_i, .)     over the last `window` rows

    where P_i projects onto the `selected` centers most coherent with row i, b_i is the error divided by
    |P_i k(x_i, .)|^2, and L >= 1 lengthens the step by extrapolation. O(m w) per sample with w the window, and w small
    systems of equations; m is bounded on a bounded input domain. The algorithm defines no variance: the variance of y
    is the mean squared error of about the last 100 rows, the same everywhere.

    Use it if inputs are correlated and only a few weights should change per row. Do not use it for intervals. With
    strong noise, set `width` to the size of the noise.

    Differs from KAFBOX: if there is no error, KAFBOX's step is 0 / 0; here there is no step. If rows contradict each
    other, such as equal inputs with different values of y, KAFBOX's L is unbounded; here it is at most 10,000. Centers
    are chosen by coherence, which differs from k(x, c) for kernels whose k(x, x) is not 1, and linearly dependent
    centers of a row are left out. KAFBOX's omega has no effect.

    Cost: O(m w + w s^3) per sample with window w and s selected; m is bounded by the coherence
    Memory: O(m (d + w) + (w s)^2), bounded by the coherence on a bounded input domain
    Equation: f <- f + step L sum of e_i / |P_i k_i|^2 P_i k_i over the last w rows
    Variance of y: the mean squared error of about the last 100 rows, the same everywhere

    Parameters
    ----------
    kernel : Kernel, optional
        The covariance function; ``RBF()`` if None.
    step : float
        The learning rate, stable below 2.
    window : int
        The number of rows to correct at once.
    selected : int
        The number of weights that each row may change.
    coherence : float
        In (0, 1]. A sample becomes a center if its coherence with every center is at most this value.
    width : float
        Half the width of the hyperslabs. Errors up to this size are not corrected.
    engine : str
        See :class:`~onlinegp.models.lms.base.ExpansionRegressor`.

    Examples
    --------
    >>> import numpy as np, onlinegp as ogp
    >>> X = np.random.default_rng(0).uniform(-3, 3, (500, 1))
    >>> y = np.sin(X[:, 0])
    >>> model = ogp.kafbox.PHYPASS(ogp.kernels.RBF(1.0), selected=3, coherence=0.8).fit(X, y)
    >>> model.score(X, y) > 0.95
    True

    References
    ----------
    Takizawa and Yukawa, "Adaptive nonlinear estimation based on parallel projection along affine subspaces in
    reproducing kernel Hilbert space", IEEE Trans. Signal Processing, 2015.
    """

    kernel: Kernel | None = None
    _: KW_ONLY
    step: float = 0.5
    window: int = 8
    selected: int = 1
    coherence: float = 0.95
    width: float = 0.0

    facts: ClassVar[Facts] = Facts(std_from_errors=True, remedy=REMEDY)

    readable: ClassVar[type[StepLearner]] = PHYPASSLearner

    def rule(self) -> dict[str, Any]:
        window, selected = count(window=self.window), count(selected=self.selected)
        if window * selected > MOST:
            raise ValueError(
                f"window x selected must be at most {MOST}, got {window} x {selected}: memory grows with the square."
            )
        return {"window": window, "selected": selected} | checked(self, "step", "coherence", "width")
