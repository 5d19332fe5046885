"""Streams that change, made from streams that do not: `accuracy.py` measures drift on them.

All begin with the rows of the stream they are made from, so that one tuning serves all of a source. The change comes at
a random row. Sources: tables of the data folder, and functions drawn from Gaussian processes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from onlinegp.datasets import channel_switch, embed

Array = np.ndarray
TUNED, ROWS = 1000, 4500  # of a changing stream
EARLIEST, LATEST = 1600, 2400  # the row of the change
GRADUAL = 1000  # rows that a gradual change takes


@dataclass(frozen=True)
class Stream:
    """Rows in units of the first TUNED, and the rows where something changes."""

    name: str
    X: Array
    y: Array
    changes: tuple[int, ...] = ()


def read(folder: Path, name: str, rows: int) -> tuple[Array, Array]:
    """Return inputs and targets of a set, lags included."""
    if (text := folder / f"{name}.txt").exists():
        X, y = embed(np.loadtxt(text), 6 if name == "lorenz" else 10)
        return X[:rows], y[:rows]
    path = folder / f"{name}.csv.gz"
    path = path if path.exists() else folder / "streams" / f"{name}.csv.gz"
    table = np.loadtxt(path, delimiter=",", skiprows=1, max_rows=rows, ndmin=2)
    return embed(table[:, 0], 10) if table.shape[1] == 1 else (table[:, :-1], table[:, -1])


def standard(X: Array, y: Array) -> tuple[Array, Array]:
    """Return rows in units of the first ones."""
    scale = np.where(np.ptp(X[:TUNED], axis=0) > 0, X[:TUNED].std(axis=0), 1.0)
    return (X - X[:TUNED].mean(axis=0)) / scale, (y - y[:TUNED].mean()) / y[:TUNED].std()


def gp_function(rng: np.random.Generator, features: int, length_scale: float) -> Callable[[Array], Array]:
    """Return a function drawn from a GP with an RBF kernel, by 500 random features."""
    W, b = rng.normal(size=(500, features)) / length_scale, rng.uniform(0, 2 * np.pi, 500)
    c = rng.normal(size=500) * np.sqrt(2 / 500)
    return lambda X: np.cos(X @ W.T + b) @ c


def still(folder: Path, name: str) -> tuple[Array, Array]:
    """Return ROWS standardized rows of a source that stays as it is: a set, or "gp2" or "gp5", drawn functions."""
    if not name.startswith("gp"):
        return standard(*read(folder, name, ROWS))
    rng = np.random.default_rng(int(name[2:]))
    X = rng.normal(size=(ROWS, int(name[2:])))
    return standard(X, gp_function(rng, X.shape[1], 1.0 + 0.3 * X.shape[1])(X) + 0.1 * rng.normal(size=ROWS))


def abrupt(X: Array, y: Array, at: int, rng: np.random.Generator) -> tuple[Array, Array]:
    return X, np.where(np.arange(len(y)) < at, y, _another(X, y, rng))


def flip(X: Array, y: Array, at: int, rng: np.random.Generator) -> tuple[Array, Array]:
    return X, np.where(np.arange(len(y)) < at, y, -y)


def offset(X: Array, y: Array, at: int, rng: np.random.Generator) -> tuple[Array, Array]:
    return X, np.where(np.arange(len(y)) < at, y, y + 3.0)


def gradual(X: Array, y: Array, at: int, rng: np.random.Generator) -> tuple[Array, Array]:
    share = np.clip((np.arange(len(y)) - at) / GRADUAL, 0.0, 1.0)
    return X, np.where(rng.uniform(size=len(y)) < share, _another(X, y, rng), y)


def recurring(X: Array, y: Array, at: int, rng: np.random.Generator) -> tuple[Array, Array]:
    other = (np.arange(len(y)) - at) // 900 % 2 == 0
    return X, np.where(other & (np.arange(len(y)) >= at), _another(X, y, rng), y)


def scale(X: Array, y: Array, at: int, rng: np.random.Generator) -> tuple[Array, Array]:
    return X, np.where(np.arange(len(y)) < at, y, 5.0 * y)


def permuted(X: Array, y: Array, at: int, rng: np.random.Generator) -> tuple[Array, Array]:
    order = rng.permutation(X.shape[1])
    while (order == np.arange(X.shape[1])).sum() > X.shape[1] // 3:
        order = rng.permutation(X.shape[1])
    return np.where((np.arange(len(y)) < at)[:, None], X, X[:, order]), y


def units(X: Array, y: Array, at: int, rng: np.random.Generator) -> tuple[Array, Array]:
    factors = np.exp(rng.uniform(-2.0, 2.0, X.shape[1]))
    return np.where((np.arange(len(y)) < at)[:, None], X, X * factors + 1.0), y


def noise(X: Array, y: Array, at: int, rng: np.random.Generator) -> tuple[Array, Array]:
    return X, y + np.where(np.arange(len(y)) < at, 0.0, 0.7 * rng.normal(size=len(y)))


def covariate(X: Array, y: Array, at: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Rows with small values of a column come first, the others after the change."""
    column = X @ rng.normal(size=X.shape[1])
    low = np.argsort(column, kind="stable")[: at + (len(y) - at) // 8]
    first = np.sort(low[rng.permutation(len(low))[:at]])
    rest = np.setdiff1d(np.arange(len(y)), first)
    order = np.concatenate([rng.permutation(first), rng.permutation(rest)])
    return X[order], y[order]


def _another(X: Array, y: Array, rng: np.random.Generator) -> Array:
    """Return targets of another function of the same inputs, with the same variance and a tenth of noise."""
    f = gp_function(rng, X.shape[1], 1.0 + 0.3 * X.shape[1])(X)
    return y.mean() + y.std() * ((f - f.mean()) / f.std() + 0.1 * rng.normal(size=len(y)))


KINDS = (abrupt, flip, offset, gradual, recurring, scale, permuted, units, noise, covariate)
SETS = ("kin40k", "elevators", "cadata", "house8l", "price", "elecfeat", "climate", "lorenz", "mg30", "santafe")
SOURCES = ("kin40k", "elevators", "cadata", "gp2", "gp5")


def changing(folder: Path) -> list[Stream]:
    """Return the streams that change: each kind of change on two sources or more, and the channel."""
    streams = []
    for i, kind in enumerate(KINDS):
        for source in dict.fromkeys(("kin40k", SOURCES[1 + i % 2], SOURCES[3 + i % 2])):
            rng = np.random.default_rng([i, SOURCES.index(source)])
            at = int(rng.integers(EARLIEST, LATEST))
            X, y = kind(*still(folder, source), at, rng)
            changes = tuple(range(at, len(y), 900)) if kind is recurring else (at,)
            streams.append(Stream(f"{kind.__name__}-{source}", X, y, changes))
    for seed in range(3):
        at = int(np.random.default_rng(seed).integers(EARLIEST, LATEST))
        X, y = standard(*channel_switch(ROWS, switch=at, seed=seed))
        streams.append(Stream(f"channel-{seed}", X, y, (at,)))
    return streams


def halves(streams: list[Stream]) -> tuple[list[Stream], list[Stream]]:
    """Return the streams to choose constants on, and those to check them on."""
    return streams[::2], streams[1::2]


def with_outliers(folder: Path, name: str) -> tuple[Stream, Stream]:
    """Return 4,000 rows of a source, and the same with 2% of the targets off by ten standard deviations."""
    X, y = (one[:4000] for one in still(folder, name))
    rng = np.random.default_rng(7)
    off = rng.uniform(size=len(y)) < 0.02
    return Stream(name, X, y), Stream(name, X, y + np.where(off, 10.0 * y.std() * rng.choice([-1, 1], len(y)), 0.0))


def beginnings(folder: Path) -> list[tuple[str, Array, Array]]:
    """Return the first 1,000 rows of many streams, and 1,000 rows from their middle, in their own units."""
    found = []
    for name in (*SETS, "gp2", "gp5"):
        X, y = still(folder, name) if name.startswith("gp") else read(folder, name, 6000)
        found += [(f"{name}@{a}", X[a : a + 1000], y[a : a + 1000]) for a in ((0, 2500) if len(y) > 4000 else (0,))]
    return found


def skewed(kind: str, seed: int, rows: int = 3000) -> tuple[Array, Array]:
    """Return inputs, and targets that are positive or zero: "lognormal", "counts", "negbin", "gamma" or "zeros"."""
    rng = np.random.default_rng(seed)
    features = 2 + seed % 4
    X = rng.normal(size=(rows, features))
    f = gp_function(rng, features, 1.0 + 0.3 * features)(X)
    if kind == "lognormal":
        return X, np.exp(f + (0.3 if seed % 2 else 0.8) * rng.normal(size=rows)) * (100.0 if seed % 3 else 1.0)
    if kind == "counts":
        return X, rng.poisson(np.exp(f + (1.0 if seed % 2 else 3.0))).astype(float)
    if kind == "negbin":
        return X, rng.poisson(np.exp(f + 1.0) * rng.gamma(1.0, 1.0, size=rows)).astype(float)
    if kind == "gamma":
        return X, rng.gamma(2.0, np.exp(f))
    return X, np.where(rng.uniform(size=rows) < 0.5, 0.0, np.exp(f + 0.5 * rng.normal(size=rows)))
