"""Kernel affine projection with coherence."""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import Any, ClassVar

import numpy as np

from onlinegp.checks import Array, count, fraction, positive, stored_array, stored_names
from onlinegp.kernels import Kernel
from onlinegp.learner import Contents
from onlinegp.models.affine.base import NO_VARIANCE, AffineRegressor, Kind, WindowLearner
from onlinegp.models.affine.window import KernelRows, enlarged, solve_positive
from onlinegp.models.expansion import Expansion
from onlinegp.models.lms.coherence import largest_coherence
from onlinegp.models.recipe import parameters


class CoherentLearner(WindowLearner):
    """An expansion that x joins if it is coherent with no center; with the kernel rows of the last rows.

    The coherence of two inputs is |k(x, c)| / sqrt(k(x, x) k(c, c)).
    """

    window: KernelRows

    def __init__(self, f: Expansion, length: int, coherence: float, engine: str) -> None:
        super().__init__(f)
        self.window = KernelRows(engine, f.kernel, self.features, self.outputs, length)
        self.coherence = coherence
        self.parts["window"] = self.window

    def novel(self, k: Array, kxx: float) -> bool:
        """Return whether x, with kernel row k, becomes a center. One whose k(x, x) is zero has nothing to give."""
        return kxx > 0.0 and largest_coherence(k, kxx, self.f.numbers("kcc")) <= self.coherence

    def admit(self, x: Array, kxx: float, r: int) -> None:
        self.f.append(x, kcc=kxx)
        self.window.admit(r)

    def opened(self, room: int, capacity: int) -> tuple[Any, dict[str, Any]]:
        return None, {"H": self.window.opened_rows(capacity)}

    def _run(self, *block: Any) -> None:
        super()._run(*block)
        self.window.centers = self.f.size

    def load(self, contents: Contents) -> None:
        super().load(contents)
        if self.window.count != self.seen or self.window.centers != self.f.size:
            raise ValueError(
                f"the window has {self.window.count} rows and {self.window.centers} centers, "
                f"and the model {self.seen} and {self.f.size}: they must be the same."
            )


class KAPLearner(CoherentLearner):
    """alpha <- alpha + step H' (epsilon I + H H')^-1 (Y - H alpha), with H = k(X, C) over the window.

    G = H H' (n, n) is kept up: a new row of H has a row of G, a new column h of H adds h h'. So is F = H alpha, to
    which a correction alpha + H' Z adds G Z.
    """

    def __init__(
        self, f: Expansion, *, length: int, step: float, coherence: float, epsilon: float, engine: str
    ) -> None:
        super().__init__(f, length, coherence, engine)
        self.step, self.epsilon = step, epsilon
        self.gram = Gram()
        self.parts["gram"] = self.gram

    def correct(self, x: Array, y: Array, e: Array, seen: Any) -> None:
        (k, mean), window, kxx = seen, self.window, self.f.diagonal(x)
        novel = self.novel(k, kxx)
        r = window.push_row(x, y, mean, k)
        self.gram.replace(r, window.H)
        if novel:
            self.admit(x, kxx, r)
            self.gram.add(window.H[:, -1])
        G = np.ascontiguousarray(self.gram.G)
        Z = solve_positive(G + self.epsilon * np.eye(len(G)), self.step * (window.Y - window.F))
        self.f.weights[...] += window.H.T @ Z
        window.F[...] += G @ Z
        self.errors.add(e)

    def opened(self, room: int, capacity: int) -> tuple[Any, dict[str, Any]]:
        others, arrays = super().opened(room, capacity)
        return others, arrays | {"G": self.gram.opened(room)}

    def _run(self, *block: Any) -> None:
        super()._run(*block)
        self.gram.size = self.window.size

    def load(self, contents: Contents) -> None:
        super().load(contents)
        if len(self.gram.G) != self.window.size:
            raise ValueError(f"G must have {self.window.size} rows, as the window, got {len(self.gram.G)}.")


class Gram:
    """G = H H', (n, n), kept up as rows of H are replaced and columns added."""

    def __init__(self) -> None:
        self.size, self._room = 0, np.zeros((0, 0))

    @property
    def G(self) -> Array:
        return self._room[: self.size, : self.size]

    def replace(self, r: int, H: Array) -> None:
        """Row r of H (n, m) is new."""
        n = self.size = len(H)
        if n > len(self._room):
            self._room = enlarged(self._room, len(self._room), 2 * n, 2 * n)
        self._room[r, :n] = self._room[:n, r] = H @ H[r]

    def add(self, h: Array) -> None:
        """There is one more column, h (n,)."""
        self.G[...] += np.multiply.outer(h, h)

    def opened(self, room: int) -> Array:
        """Return G with room for so many rows and columns."""
        if len(self._room) != room:
            self._room = enlarged(self._room, min(room, len(self._room)), room, room)
        return self._room

    def dump(self) -> Contents:
        return {"G": self.G.copy()}

    def load(self, contents: Contents) -> None:
        stored_names(contents, ("G",), "the Gram matrix")
        n = len(contents["G"]) if isinstance(contents["G"], np.ndarray) and contents["G"].ndim else 0
        self._room = stored_array("G", contents["G"], (n, n)).copy()
        self.size = n


@parameters
class KAP(AffineRegressor):
    """Kernel affine projection: the weights move as little as corrects the last rows; coherent samples are no centers.

        alpha <- alpha + step H' (epsilon I + H H')^-1 (y - H alpha),    H = k(X, C) of the last `window` rows

    O(m w + w^3) per sample with m centers and w rows in the window; m is bounded on a bounded input domain. With one
    row it is :class:`~onlinegp.KNLMS`. It has no predictive variance of its own: the standard deviation is the root
    mean square of its last hundred errors or so.

    Differs from KAFBOX: which forgets to store the norms of all centers but the first, so that its coherence is wrong
    for kernels whose k(x, x) is not 1, and takes a negative k(x, c) for incoherent.

    Parameters
    ----------
    kernel : Kernel, optional
        The covariance function; ``RBF()`` if None.
    step : float
        The learning rate, stable below 2.
    window : int
        The number of rows that are corrected together.
    coherence : float
        In (0, 1]. A sample becomes a center if its coherence with every center is at most this.
    epsilon : float
        Regularizes the projection.
    engine : str
        See :class:`~onlinegp.models.affine.base.AffineRegressor`.

    Examples
    --------
    >>> import numpy as np, onlinegp as ogp
    >>> X = np.random.default_rng(0).uniform(-3, 3, (500, 1))
    >>> y = np.sin(X[:, 0])
    >>> model = ogp.KAP(ogp.kernels.RBF(1.0), window=5).fit(X, y)
    >>> model.score(X, y) > 0.99
    True
    """

    kernel: Kernel | None = None
    _: KW_ONLY
    step: float = 0.5
    window: int = 20
    coherence: float = 0.95
    epsilon: float = 1e-2

    cost: ClassVar[str] = "O(m w + w^3) per sample with w the window; m is bounded by the coherence on a bounded domain"
    equation: ClassVar[str] = "alpha <- alpha + step H' (epsilon I + H H')^-1 (y - H alpha)"
    memory: ClassVar[str] = "O(m (d + w)), bounded by the coherence on a bounded input domain"
    variance: ClassVar[str] = NO_VARIANCE
    citation: ClassVar[str] = (
        'Richard, Bermudez and Honeine, "Online prediction of time series data with kernels", IEEE Trans. Signal '
        "Processing, 2009."
    )

    def start(self, features: int, outputs: int) -> KAPLearner:
        rule = {
            "step": positive(step=self.step),
            "coherence": fraction(coherence=self.coherence),
            "epsilon": positive(epsilon=self.epsilon),
        }
        f = Expansion(self.engine, self.over(), features, outputs, also=("kcc",))
        length = count("One row makes it KNLMS.", window=self.window)
        return KAPLearner(f, length=length, engine=self.engine, **rule).compiled(kind=Kind.KAP, **rule)
