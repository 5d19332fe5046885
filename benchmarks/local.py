"""The GPs on the nearest rows, beside NumPy and beside the limit.

`LocalGP` predicts with 64, 5,000 and 100,000 rows kept, on one thread and on two: with 64, all are neighbors, and the
time is that of the solve. `ResidualGP` predicts and learns one row at a time, with 1,000 to 100,000 rows: its times
are those of a stream of its own, and it is compared with `LocalGP` row by row, in turns.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from time import perf_counter
from typing import Any

import limits
import numpy as np

import onlinegp as ogp
from onlinegp.kernels import RBF

D, NEIGHBORS, NOISE = 8, 64, 1e-2
STORES = {64: 200, 5_000: 40, 100_000: 8}  # rows kept, and rows asked for in one call
TARGETS_US = {5_000: 20.0, 100_000: 300.0}  # on AVX-512
RESIDUAL_ROWS = (1_000, 5_000, 10_000, 50_000, 100_000)
RESIDUAL_TARGETS_US = {(5_000, 1): 30.0, (50_000, 1): 180.0}  # rows and refits; on AVX-512
CALLS = 40  # rows that are learned, one a call


def numpy_twin(X: np.ndarray, y: np.ndarray, questions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard deviation at the questions, with an RBF of length scale 2: BLAS, LAPACK and a partial sort."""
    from scipy.linalg.lapack import dpotrf, dtrtrs
    from scipy.spatial.distance import cdist

    mean, variance = np.empty(len(questions)), np.empty(len(questions))
    norms = np.einsum("ij,ij->i", X, X)
    diagonal = np.arange(min(NEIGHBORS, len(X)))
    for i, x in enumerate(questions):
        near = np.argpartition(norms - 2.0 * (X @ x), len(diagonal) - 1)[:NEIGHBORS]
        Z = X[near]
        K = np.exp(-0.125 * cdist(Z, Z, "sqeuclidean"))
        K[diagonal, diagonal] += NOISE
        L, _ = dpotrf(K, lower=1)
        k = np.exp(-0.125 * ((Z - x) ** 2).sum(axis=1))
        T, _ = dtrtrs(L, np.column_stack([k, y[near]]), lower=1)
        mean[i], variance[i] = T[:, 0] @ T[:, 1], 1.0 - T[:, 0] @ T[:, 0] + NOISE
    return mean, np.sqrt(variance)


def limit_seconds(rows: int, threads: int) -> float:
    """The scan (a difference, a product and a sum a value, or its bytes), the kernel matrix, the Cholesky factor."""
    values = rows * D
    arithmetic = 3.0 * values / limits.lanes() / limits.mixed_rate()
    memory = 8.0 * values / limits.bandwidth(8 * values, threads=threads) if rows else 0.0
    matrix = limits.row_seconds(NEIGHBORS**2 / 2, D)
    factor = NEIGHBORS**3 / 6 / limits.lanes() / limits.fma_rate()
    return max(arithmetic / threads, memory) + (matrix + factor) / threads


def residual_limit_seconds(rows: int, refits: int) -> float:
    """The same with the exponential of each row, and for each refit a kernel row, a dot product and a subtraction.

    The bytes are those of the coordinates, once for the prediction and all refits.
    """
    row = (3 * D + limits.EXP + 2) * rows / limits.lanes() / limits.mixed_rate()
    refit = limits.row_seconds(rows, D, passes=2)
    memory = 8.0 * rows * D / limits.bandwidth(8 * rows * D, threads=1)
    neighbors = limit_seconds(0, 1)
    return max(row + refits * refit, memory) + neighbors


def residual(repeats: int) -> list[dict]:
    """Return the rows of the table for ResidualGP, with LocalGP beside it: one call predicts and learns one row."""
    return [row for rows in RESIDUAL_ROWS for row in _one_at_a_time(rows, repeats)]


def _one_at_a_time(rows: int, repeats: int) -> list[dict]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((rows + CALLS, D))
    Y = (np.sin(X[:, 0]) + 0.1 * rng.standard_normal(len(X)))[:, None]
    options = {"noise": NOISE, "neighbors": NEIGHBORS}
    made = ogp.ResidualGP(RBF(2.0), noise=NOISE, neighbors=0, refits=0, power="fixed").start(D, 1)
    made.learn(X[:rows], Y[:rows])
    contents = made.dump()
    local = ogp.LocalGP(RBF(2.0), **options).start(D, 1)
    models = {str(refits): ogp.ResidualGP(RBF(2.0), refits=refits, **options).start(D, 1) for refits in (0, 1)}
    models["scan"] = ogp.ResidualGP(RBF(2.0), noise=NOISE, neighbors=0, refits=0).start(D, 1)  # no solve
    best: dict[str, float] = {}
    in_turns: dict[str, float] = {}

    def call(times: dict[str, float], name: str, i: int) -> None:
        if name == "LocalGP":
            _keep(times, name, X[:1], lambda: (local.predict_one(X[i]), local.learn_one(X[i], Y[i, 0])))
        else:  # it predicts a row before it learns it
            _keep(times, name, X[:1], lambda: models[name].learn_one(X[i], Y[i, 0]))

    def load_all() -> None:
        local.load({name: contents[name] for name in ("X", "Y", "seen")})
        for learner in models.values():
            learner.load(contents)
        for learner in (local, *models.values()):
            learner.predict(X[:1])  # the first call after loading makes the compiled twin

    for _ in range(2 * repeats):
        load_all()
        for name in ("LocalGP", *models):
            for i in range(rows, rows + CALLS):
                call(best, name, i)
        for other in "01":
            load_all()
            for i in range(rows, rows + CALLS):
                call(in_turns, "LocalGP", i)
                call(in_turns, other, i)
    limits_of = {"LocalGP": limit_seconds(rows, 1)} | {str(r): residual_limit_seconds(rows, r) for r in (0, 1)}
    limits_of["scan"] = limits_of["0"] - limit_seconds(0, 1)
    names = {"LocalGP": "LocalGP", "0": "ResidualGP, 0 refits", "1": "ResidualGP, 1 refit", "scan": "its scan"}
    return [
        {
            "case": f"{names[name]}, {rows} rows, one at a time",
            "centers": float(NEIGHBORS),
            "us": {"onlinegp": 1e6 * best[name], "limit": 1e6 * limit},
            "bound": "arithmetic" if rows < 50_000 else "memory",
            "share of limit": limit / best[name],
            "times LocalGP": in_turns[name] / in_turns["LocalGP"] if name in "01" else 1.0,
            "target [us]": RESIDUAL_TARGETS_US.get((rows, 1)) if name == "1" else None,
            "targets": (None, None, None),
        }
        for name, limit in limits_of.items()
    ]


def local(repeats: int) -> list[dict]:
    """Return the rows of the table: for each store NumPy, one thread and two."""
    return [row for rows in STORES for row in measure(rows, repeats)]


def measure(rows: int, repeats: int) -> list[dict]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((rows, D))
    y = np.sin(X[:, 0]) + 0.1 * rng.standard_normal(rows)
    questions = rng.standard_normal((STORES[rows], D))
    learner = ogp.LocalGP(RBF(2.0), noise=NOISE, neighbors=NEIGHBORS).start(D, 1)
    learner.learn(X, y[:, None])
    many = np.tile(questions, (25, 1))  # a thread takes a while to start
    best: dict[str, float] = {}
    for _ in range(10 * repeats):
        _keep(best, "onlinegp, 1", questions, lambda: _predict(learner, questions, 1))
        _keep(best, "NumPy", questions[:4], lambda: numpy_twin(X, y, questions[:4]))
    for _ in range(repeats):
        _keep(best, "onlinegp, 2", many, lambda: _predict(learner, many, 2))
    return [_row(rows, threads, best) for threads in (1, 2)]


def _predict(learner: Any, X: np.ndarray, threads: int) -> None:
    os.environ["ONLINEGP_THREADS"] = str(threads)
    learner.predict(X)
    del os.environ["ONLINEGP_THREADS"]


def _keep(best: dict[str, float], name: str, rows: np.ndarray, action: Callable[[], object]) -> None:
    start = perf_counter()
    action()
    best[name] = min(best.get(name, np.inf), (perf_counter() - start) / len(rows))


def _row(rows: int, threads: int, best: dict[str, float]) -> dict:
    seconds, limit = best[f"onlinegp, {threads}"], limit_seconds(rows, threads)
    return {
        "case": f"LocalGP, {rows} rows, {threads} thread{'s' * (threads > 1)}",
        "centers": float(NEIGHBORS),
        "us": {"tuned": 1e6 * best["NumPy"], "onlinegp": 1e6 * seconds, "limit": 1e6 * limit},
        "bound": "arithmetic" if rows < 50_000 else "memory",
        "times tuned": best["NumPy"] / seconds,
        "share of limit": limit / seconds,
        "speed-up": best["onlinegp, 1"] / seconds,
        "speed-up of memory": limits.bandwidth(8 * rows * D, threads=2) / limits.bandwidth(8 * rows * D, threads=1),
        "target [us]": TARGETS_US[rows] / threads if rows in TARGETS_US else None,
        "targets": (None, None, None),
    }
