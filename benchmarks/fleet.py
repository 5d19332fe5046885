"""A fleet of 10,000 trackers: every event touches a model that no cache holds any more."""

from __future__ import annotations

from time import perf_counter

import limits
import numpy as np

import onlinegp as ogp
from onlinegp.kernels import RBF

MODELS, M, D = 10_000, 50, 4


def events(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """One event for each model, in a random order."""
    X = 2.0 * rng.standard_normal((MODELS, D))
    return rng.permutation(MODELS), X, np.sin(X[:, 0]) + 0.1 * rng.standard_normal(MODELS)


def fleet(repeats: int) -> list[dict]:
    """Return a row for one thread and one for two; the limit is the bandwidth of memory through two matrices."""
    rng = np.random.default_rng(0)
    best = {}
    models = {threads: ogp.Fleet(ogp.KRLST(RBF(1.0), noise=0.01, budget=M), threads=threads) for threads in (1, 2)}
    for trackers in models.values():
        for _ in range(M + 5):
            keys, X, y = events(rng)
            trackers.learn(keys.tolist(), X, y)
    for _ in range(2 * repeats):
        keys, X, y = events(rng)
        keys = keys.tolist()
        for threads, trackers in models.items():
            start = perf_counter()
            trackers.learn(keys, X, y)
            best[threads] = min(best.get(threads, np.inf), perf_counter() - start)
    size = 2 * 8 * M * (M + 1) // 2
    limit = 2 * size / limits.bandwidth(256 << 20)
    return [
        {
            "case": f"fleet of {MODELS}, M = {M}, d = {D}, {threads} thread{'s' * (threads > 1)}",
            "centres": float(M),
            "us": {"onlinegp": 1e6 * seconds / MODELS, "limit": 1e6 * limit},
            "bound": "DRAM",
            "share of limit": limit * MODELS / seconds,
            "speedup": best[1] / seconds,
            "targets": (None, None, 0.70),
        }
        for threads, seconds in best.items()
    ]
