"""Events and models for the tests of fleets, the engines to run them on, and the states of a fleet."""

import numpy as np
import pytest

import onlinegp as ogp
from onlinegp.engine import available
from onlinegp.kernels import RBF, Matern32

ENGINES = [
    "python",
    pytest.param("native", marks=pytest.mark.skipif(not available(), reason="the compiled engine was not built")),
]
every = pytest.mark.parametrize("engine", ENGINES)


def events(n: int, keys: int, seed: int = 0) -> tuple[list[str], np.ndarray, np.ndarray]:
    """Return n keys, inputs (n, 2) and targets (n,)."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, 2))
    return [f"key{i}" for i in rng.integers(0, keys, n)], X, np.sin(3 * X[:, 0]) + 0.1 * rng.standard_normal(n)


def states(fleet: ogp.Fleet) -> dict:
    """Return the bytes of each model, by key."""
    return {key: fleet[key].to_bytes() for key in sorted(fleet)}


def models(engine: str) -> list:
    """Return filters of several kinds."""
    return [
        ogp.KRLST(RBF(0.7), budget=12, forgetting=0.99, engine=engine),
        ogp.KRLST(RBF(3.0), budget=25, jitter=1e-9, engine=engine),  # nearly singular: refined, with K kept
        ogp.KLMS(RBF(0.7), step=0.4, engine=engine),
        ogp.BetaKLMS(Matern32([0.7, 1.0]), noise=0.05, engine=engine),
        ogp.kafbox.SWKRLS(RBF(0.7), budget=9, engine=engine),
    ]
