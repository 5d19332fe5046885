"""Random trees of models: wrappers around wrappers around leaves, and rows without ties for them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import onlinegp as ogp
from onlinegp.kernels import RBF, Kernel, Linear, Matern32, Matern52

DEEPEST = 4  # wrappers from the root to a leaf
ENDS = 0.15  # the probability that a leaf comes earlier


@dataclass(frozen=True)
class Case:
    """A model that has learned nothing, and rows for it; y is (n,) or (n, 2)."""

    seed: int
    model: Any
    X: np.ndarray
    y: np.ndarray

    def with_engine(self, engine: str) -> Any:
        """Return a new model whose leaves all run on an engine."""
        model = self.model.unfitted()
        return model.set_params(**{key: engine for key in model.get_params() if key.endswith("engine")})

    def __str__(self) -> str:
        outputs = 1 if self.y.ndim == 1 else self.y.shape[1]
        return f"seed {self.seed}: {len(self.X)} rows, {self.X.shape[1]} features, {outputs} outputs, {self.model!r}"


def draw(seed: int, *, least: int = 60, most: int = 80) -> Case:
    """Return the case of a seed, with at least and at most so many rows."""
    rng = np.random.default_rng(seed)
    features, outputs = int(rng.integers(1, 4)), 2 if rng.random() < 0.3 else 1
    model = tree(rng, int(rng.integers(1, DEEPEST + 1)), features, outputs)
    X, Y = rows(rng, int(rng.integers(least, most + 1)), features, outputs)
    return Case(seed, model, X, Y[:, 0] if outputs == 1 and rng.random() < 0.9 else Y)  # seldom (n, 1)


def rows(rng: np.random.Generator, n: int, features: int, outputs: int) -> tuple[np.ndarray, np.ndarray]:
    """Return n rows of a smooth function with noise, some outliers and a change in the second half."""
    X = rng.uniform(-2.0, 2.0, (n, features))
    Y = np.sin(1.5 * X[:, :1] + np.arange(outputs)) + 0.3 * X.mean(axis=1, keepdims=True)
    Y[n // 2 :] += rng.uniform(-1.0, 1.0) * X[n // 2 :, -1:]
    Y += 0.1 * rng.standard_t(3, Y.shape)
    return X, rng.uniform(-2.0, 2.0) + rng.uniform(0.5, 2.0) * Y


def tree(rng: np.random.Generator, depth: int, features: int, outputs: int) -> Any:
    """Return a model with at most so many wrappers around each leaf."""
    if depth == 0 or rng.random() < ENDS:
        return pick(rng, LEAVES)(rng)
    return pick(rng, WRAPPERS)(rng, depth - 1, features, outputs)


def pick(rng: np.random.Generator, choices: Any) -> Any:
    return list(choices)[int(rng.integers(len(choices)))]


# Leaves


def kernel(rng: np.random.Generator) -> Kernel:
    one = pick(rng, (RBF, Matern32, Matern52))(round(rng.uniform(0.5, 1.5), 2))
    return one + 0.1 * Linear() if rng.random() < 0.2 else one


def noise(rng: np.random.Generator) -> float:
    return round(10.0 ** rng.uniform(-2.0, -0.5), 4)


def krlst(rng: np.random.Generator) -> Any:
    forgetting = pick(rng, (1.0, 0.99, 0.999))
    return ogp.KRLST(kernel(rng), noise=noise(rng), budget=int(rng.integers(5, 21)), forgetting=forgetting)


def local(rng: np.random.Generator) -> Any:
    store = None if rng.random() < 0.5 else int(rng.integers(20, 50))
    return ogp.LocalGP(kernel(rng), noise=noise(rng), neighbors=int(rng.integers(4, 13)), store=store)


def residual(rng: np.random.Generator) -> Any:
    return ogp.ResidualGP(
        kernel(rng), noise=noise(rng), neighbors=int(rng.integers(4, 13)), store=40, refits=int(rng.integers(0, 3))
    )


def knlms(rng: np.random.Generator) -> Any:
    return ogp.KNLMS(RBF(0.7), step=0.5, coherence=round(rng.uniform(0.5, 0.9), 2), epsilon=1e-2)


LEAVES: tuple[Callable[[np.random.Generator], Any], ...] = (
    krlst,
    krlst,  # the one that is used most
    lambda rng: ogp.KLMS(RBF(0.7), step=round(rng.uniform(0.1, 0.5), 2)),
    lambda rng: ogp.QKLMS(RBF(0.7), step=0.4, radius=round(rng.uniform(0.2, 0.6), 2)),
    knlms,
    lambda rng: ogp.LinearRLS(noise=noise(rng), forgetting=pick(rng, (1.0, 0.98)), intercept=bool(rng.random() < 0.5)),
    lambda rng: ogp.Kalman(noise=noise(rng), drift=pick(rng, (0.0, 1e-3))),
    lambda rng: ogp.LMS(step=0.01),
    local,
    residual,
    lambda rng: ogp.RandomFeatureGP(RBF(0.7), noise=noise(rng), pairs=int(rng.integers(4, 12))),
    lambda rng: ogp.Persistence(),
)


# Wrappers: each draws what is inside, for rows of so many features and outputs


def scaled(rng: np.random.Generator, depth: int, features: int, outputs: int) -> Any:
    inside = tree(rng, depth, features, outputs)
    given: dict[str, Any] = {}
    for axis, width in (("x", features), ("y", outputs)):
        if rng.random() < 0.3:
            center, scale = rng.uniform(-1.0, 1.0, width), rng.uniform(0.5, 2.0, width)
            given |= {f"{axis}_center": center.round(2).tolist(), f"{axis}_scale": scale.round(2).tolist()}
    return ogp.Scaled(inside, rows=int(rng.integers(5, 60)), **given)


def robust(rng: np.random.Generator, *inside: int) -> Any:
    bound, rows = round(rng.uniform(1.0, 4.0), 2), pick(rng, (0, 0, 25))
    return ogp.Robust(tree(rng, *inside), bound=bound, rows=rows, in_a_row=pick(rng, (None, None, 2)))


def calibrated(rng: np.random.Generator, *inside: int) -> Any:
    return ogp.Calibrated(tree(rng, *inside), half_life=pick(rng, (10, 100)))


def heavy_tailed(rng: np.random.Generator, *inside: int) -> Any:
    degrees = pick(rng, ((3.0, 6.0, 12.0), (2.1,), (4.0, 8.5)))
    return ogp.HeavyTailed(
        tree(rng, *inside), degrees=degrees, half_life=pick(rng, (20, 100)), fade=pick(rng, (0.9, 1))
    )


def conformal(rng: np.random.Generator, *inside: int) -> Any:
    return ogp.Conformal(tree(rng, *inside), level=pick(rng, (0.5, 0.8, 0.95)), step=pick(rng, (0.05, 0.2)))


def mixture(rng: np.random.Generator, *inside: int) -> Any:
    members = [tree(rng, *inside) for _ in range(int(rng.integers(2, 4)))]
    if rng.random() < 0.1:  # two that share their rows
        of = {"kernel": kernel(rng), "noise": noise(rng), "neighbors": 8, "store": 40}
        members[:2] = [ogp.ResidualGP(**of), ogp.HeavyTailed(ogp.LocalGP(**of))]
    first = None if rng.random() < 0.7 else rng.uniform(-2.0, 0.0, len(members)).round(2).tolist()
    return ogp.Mixture(
        members,
        fade=pick(rng, (0.9, 0.99, 1.0)),
        weights=first,
        gate=pick(rng, (0.0, 0.0, 1.0, 2.0)),
        lasting=pick(rng, (0.0, 4.0)),
    )


def lagged(rng: np.random.Generator, depth: int, features: int, outputs: int) -> Any:
    lags, horizon = int(rng.integers(0, 4)), 1 if rng.random() < 0.8 else int(rng.integers(2, 6))
    return ogp.Lagged(tree(rng, depth, features + lags * outputs, outputs), lags=lags, horizon=horizon)


WRAPPERS = (scaled, scaled, robust, calibrated, heavy_tailed, conformal, mixture, lagged)
