"""Fleets of trackers: 10,000, where every event touches a model that no cache holds any more, and 64, which fit."""

from __future__ import annotations

from time import perf_counter

import limits
import numpy as np

import onlinegp as ogp
from onlinegp.kernels import RBF

M, D = 50, 4
SIZES = {10_000: 256 << 20, 64: 32 << 10}  # where the models are when their turn comes: in memory, in the nearest cache
EVENTS = 10_000


def events(rng: np.random.Generator, models: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Equally many events for each model, in a random order."""
    X = 2.0 * rng.standard_normal((EVENTS // models * models, D))
    return rng.permutation(len(X)) % models, X, np.sin(X[:, 0]) + 0.1 * rng.standard_normal(len(X))


def fleet(repeats: int) -> list[dict]:
    """Return a row for each size on one thread and on two."""
    return [row for models in SIZES for row in measure(models, repeats)]


def measure(models: int, repeats: int) -> list[dict]:
    """Return a row for one thread and one for two; the limit is what memory gives to so many for two matrices."""
    rng = np.random.default_rng(0)
    best: dict[int, float] = {}
    fleets = {threads: ogp.Fleet(ogp.KRLST(RBF(1.0), noise=0.01, budget=M), threads=threads) for threads in (1, 2)}
    for trackers in fleets.values():
        for _ in range(M + 5):
            trackers.learn(*events(rng, models))
    for _ in range(6 * repeats):
        keys, X, y = events(rng, models)
        keys = keys.tolist()
        for threads, trackers in fleets.items():
            start = perf_counter()
            trackers.learn(keys, X, y)
            best[threads] = min(best.get(threads, np.inf), (perf_counter() - start) / len(X))
    size = 2 * 8 * M * (M + 1) // 2
    limit = {threads: 2 * size / limits.bandwidth(SIZES[models], threads=threads) for threads in best}
    return [
        {
            "case": f"fleet of {models}, M = {M}, d = {D}, {threads} thread{'s' * (threads > 1)}",
            "centers": float(M),
            "us": {"onlinegp": 1e6 * seconds, "limit": 1e6 * limit[threads]},
            "bound": "DRAM" if models > 1000 else "L1",
            "share of limit": limit[threads] / seconds,
            "speed-up": best[1] / seconds,
            "speed-up of memory": limit[1] / limit[threads],
            "targets": (None, None, 0.70),
        }
        for threads, seconds in best.items()
    ]
