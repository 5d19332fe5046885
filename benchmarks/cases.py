"""What is measured: each case is a stream, a model, its NumPy twins, and the least time that the hardware allows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import baselines
import limits
import numpy as np

import onlinegp as ogp
from onlinegp.datasets import embed, lorenz, mackey_glass
from onlinegp.kernels import RBF

K = RBF(1.0)


@dataclass
class Case:
    """`warm` rows are learned before the clock starts: the budget is full, or the dictionary has its size."""

    name: str
    model: Callable[[], ogp.KLMS]
    naive: Callable | None
    tuned: Callable | None
    rows: int
    warm: int
    limit: Callable[[float], float]  # seconds a sample, given the mean number of centers
    bound: str
    targets: tuple[float | None, float | None, float]  # on AVX-512: times naive, times tuned, share of the limit
    spread: float = 1.6  # of the inputs
    naive_rows: int | None = None
    d: int = 8
    series: Callable[[int], np.ndarray] | None = None  # to embed; None: inputs that have nothing in common

    def stream(self) -> tuple[np.ndarray, np.ndarray]:
        if self.series is not None:
            values = self.series(self.warm + self.rows + self.d)
            return embed((values - values.mean()) / values.std(), self.d)
        rng = np.random.default_rng(0)
        X = self.spread * rng.standard_normal((self.warm + self.rows, self.d))
        y = np.sin(X[:, 0]) + 0.3 * X[:, 1] + 0.1 * rng.standard_normal(len(X))
        return X, y


def lms(name: str, model: Callable, twin: str, targets: tuple[float, float, float], passes: int, **settings) -> Case:
    """One of the KLMS family, bound by the kernel row and so many multiply-adds with it."""
    stream = {key: settings.pop(key) for key in ("rows", "spread") if key in settings}
    return Case(
        name,
        partial(model, K, **settings),
        partial(getattr(baselines, f"{twin}_naive"), **settings),
        partial(getattr(baselines, f"{twin}_tuned"), **settings),
        **{"rows": 5000, **stream},
        warm=0,
        limit=lambda m: limits.row_seconds(m, 8, passes=passes),
        bound="arithmetic",
        targets=targets,
    )


def krlst(M: int, rows: int, targets: tuple[float, float, float], naive_rows: int) -> Case:
    settings = {"noise": 0.01, "budget": M, "forgetting": 0.999}
    return Case(
        f"KRLS-T, M = {M}",
        partial(ogp.KRLST, K, **settings),
        partial(baselines.krlst_naive, **settings),
        partial(baselines.krlst_tuned, **settings),
        rows=rows,
        warm=M + 20,
        naive_rows=naive_rows,
        limit=lambda m: limits.matrix_seconds(M) + limits.row_seconds(M, 8),
        bound="memory",
        targets=targets,
    )


def smooth(name: str, series: Callable[[int], np.ndarray], length_scale: float, M: int, rows: int) -> Case:
    """KRLS-T where neighbors in time are neighbors in space; the NumPy twins, which track inverses, lose it there."""
    return Case(
        f"KRLS-T, M = {M}, {name}",
        partial(ogp.KRLST, RBF(length_scale), noise=1e-4, budget=M, forgetting=0.999),
        None,
        None,
        rows=rows,
        warm=M + 20,
        limit=lambda m: limits.matrix_seconds(round(m)) + limits.row_seconds(m, 8),
        bound="memory",
        targets=(None, None, 0.30),
        series=series,
    )


KNLMS = partial(ogp.KNLMS, coherence=1.0)  # every sample becomes a center
QUANTISED = {"step": 0.5, "radius": 2.3, "rows": 20000, "spread": 0.75}
CASES = [
    lms("KLMS growing to 5000", ogp.KLMS, "klms", (70, 12, 0.60), 1, step=0.5),
    lms("KNLMS growing to 5000", KNLMS, "knlms", (55, 11, 0.55), 3, step=0.5, epsilon=0.01),
    lms("beta-KLMS growing to 5000", ogp.BetaKLMS, "beta", (55, 11, 0.55), 3, beta=0.1, noise=0.01),
    lms("QKLMS, some 200 centers", ogp.QKLMS, "qklms", (170, 55, 0.45), 3, **QUANTISED),
    krlst(50, 20000, (100, 14, 0.40), naive_rows=1000),
    krlst(100, 10000, (100, 14, 0.50), naive_rows=600),
    krlst(500, 2000, (95, 4, 0.85), naive_rows=60),
    # Length scales of the largest likelihood on the first 500 rows, out of 0.5, 1, 1.5, 2, 3, 4, 5, 6, 8, ..., 32
    smooth("Lorenz", lambda n: lorenz(n)[:, 0], 5.0, 100, 10000),
    smooth("Mackey-Glass", mackey_glass, 2.0, 100, 10000),
]
