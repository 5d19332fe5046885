"""How well the models predict real streams, one row ahead: error, density and coverage, in one table.

The first 1,000 rows are for tuning; the next, at most 5,000, are each predicted and then learned, and scored. Error is
the mean squared error over the variance of those rows, density the mean negative log density in units of the standard
deviation of the first 1,000 targets, coverage that of 95% intervals. The data lie in a folder of your own (--data):
`streams/*.csv.gz` with the target in the last column, a single column being a series that is predicted from its last
10 values, `kin40k.csv.gz`, and the series `lorenz.txt` (6 values), `mg30.txt` and `santafe.txt`.

    python benchmarks/accuracy.py --data DIR [--sets kin40k,price] [--models auto,krlst]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import onlinegp as ogp
from onlinegp.batch.tuning import MATERN, SMOOTH, Hyperparameters, likely_kernels
from onlinegp.datasets import embed

TUNED, SCORED = 1000, 5000
SETS = ("kin40k", "elevators", "cadata", "house8l", "price", "elecfeat", "climate", "lorenz", "mg30", "santafe")
Row = tuple[float, float, float, float]


def read(folder: Path, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return inputs and targets of a set, lags included."""
    if (text := folder / f"{name}.txt").exists():
        return embed(np.loadtxt(text), 6 if name == "lorenz" else 10)
    path = folder / f"{name}.csv.gz"
    path = path if path.exists() else folder / "streams" / f"{name}.csv.gz"
    table = np.loadtxt(path, delimiter=",", skiprows=1, max_rows=TUNED + SCORED, ndmin=2)
    return embed(table[:, 0], 10) if table.shape[1] == 1 else (table[:, :-1], table[:, -1])


def standard(folder: Path, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows of a set that are used, in units of its first rows."""
    X, y = read(folder, name)
    X, y = X[: TUNED + SCORED], y[: TUNED + SCORED]
    scale = np.where(np.ptp(X[:TUNED], axis=0) > 0, X[:TUNED].std(axis=0), 1.0)
    return (X - X[:TUNED].mean(axis=0)) / scale, (y - y[:TUNED].mean()) / y[:TUNED].std()


def auto(X: np.ndarray, y: np.ndarray) -> ogp.OnlineRegressor:
    return ogp.Auto(rows=TUNED, earliest=TUNED, tuning_delay=0.0)


def krlst(X: np.ndarray, y: np.ndarray) -> ogp.OnlineRegressor:
    best = tuned(X, y)
    return ogp.KRLST(best.kernel, noise=best.noise, budget=300)


def local(X: np.ndarray, y: np.ndarray) -> ogp.OnlineRegressor:
    best = tuned(X, y)
    return ogp.LocalGP(best.kernel, noise=best.noise)


def residual(X: np.ndarray, y: np.ndarray) -> ogp.OnlineRegressor:
    best = tuned(X, y)
    return ogp.ResidualGP(best.kernel, noise=best.noise)


def tuned(X: np.ndarray, y: np.ndarray) -> Hyperparameters:
    return likely_kernels(X[:TUNED], y[:TUNED], families=(MATERN, SMOOTH))[0]


def linear(X: np.ndarray, y: np.ndarray) -> ogp.OnlineRegressor:
    return ogp.Calibrated(ogp.LinearRLS(noise=0.1))


class Refitted:
    """Some regressor of scikit-learn, refitted every 500 rows on all rows so far; errors of the last 500 spread it."""

    def __init__(self, build: Callable[[], Any]) -> None:
        self.build = build

    def scored(self, X: np.ndarray, y: np.ndarray) -> Row:
        mean, std, began = np.empty(len(y)), np.empty(len(y)), time.process_time()
        for start in range(TUNED, len(y), 500):
            part = slice(start, start + 500)
            mean[part] = self.build().fit(X[:start], y[:start]).predict(X[part])
            past = slice(max(TUNED, start - 500), start)
            std[part] = np.std(y[past] - mean[past]) if start > TUNED else np.std(y[:TUNED])
        said = ogp.predictions.Gaussian(mean[TUNED:], std[TUNED:])
        return figures(said, y[TUNED:], time.process_time() - began)


class Static:
    """A GP fitted to the first rows, which learns nothing after them."""

    def scored(self, X: np.ndarray, y: np.ndarray) -> Row:
        best, began = tuned(X, y), time.process_time()
        model = ogp.GPRegression(best.kernel, noise=best.noise).fit(X[:TUNED], y[:TUNED])
        mean, std = model.predict(X[TUNED:], return_std=True)
        return figures(ogp.predictions.Gaussian(mean, std), y[TUNED:], time.process_time() - began)


class Rivers:
    """A regressor of river behind a scaler, with the spread of its last errors."""

    def __init__(self, build: Callable[[], Any]) -> None:
        self.build = build

    def scored(self, X: np.ndarray, y: np.ndarray) -> Row:
        from river import preprocessing

        model, mean, began = preprocessing.StandardScaler() | self.build(), np.empty(len(y)), time.process_time()
        for i, row in enumerate(X.tolist()):
            named = dict(enumerate(row))
            mean[i] = model.predict_one(named) or 0.0
            model.learn_one(named, y[i])
        e2 = np.concatenate([[1.0], (y - mean) ** 2])
        sums = np.cumsum(e2)
        std = np.sqrt((sums[TUNED:-1] - sums[TUNED - 500 : -501]) / 500)
        return figures(ogp.predictions.Gaussian(mean[TUNED:], std), y[TUNED:], time.process_time() - began)


def figures(said: ogp.predictions.Predictions, y: np.ndarray, seconds: float) -> Row:
    low, high = said.interval()
    inside = float(np.mean((low <= y) & (y <= high)))
    error = float(np.mean((y - said.mean) ** 2) / np.var(y))
    return error, -float(said.log_density(y).mean()), inside, 1e6 * seconds / len(y)


def scored(build: Callable[..., Any], X: np.ndarray, y: np.ndarray) -> Row:
    """Return error, density, coverage and microseconds per row of a model; inputs and target in standard units."""
    model = build(X, y)
    if hasattr(model, "scored"):
        return model.scored(X, y)
    model.fit(X[:TUNED], y[:TUNED])
    began = time.process_time()
    trace = model.run(X[TUNED:], y[TUNED:])
    return figures(trace.predictions, y[TUNED:], time.process_time() - began)


def competitors() -> dict[str, Callable[..., Any]]:
    """Return what others have, as far as it is installed."""
    found: dict[str, Callable[..., Any]] = {"static GP": lambda X, y: Static()}
    try:
        from sklearn.ensemble import HistGradientBoostingRegressor

        found["boosted trees"] = lambda X, y: Refitted(lambda: HistGradientBoostingRegressor(random_state=0))
    except ImportError:
        pass
    try:
        from river import forest, neighbors

        found["river KNN"] = lambda X, y: Rivers(neighbors.KNNRegressor)
        found["river ARF"] = lambda X, y: Rivers(lambda: forest.ARFRegressor(seed=0))
    except ImportError:
        pass
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", type=Path, required=True, help="the folder of the data sets")
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--models", default="")
    args = parser.parse_args()
    models = {"auto": auto, "krlst": krlst, "local": local, "residual": residual, "linear": linear} | competitors()
    chosen = [name for name in args.models.split(",") if name] or list(models)
    print(f"{'set':<10} {'model':<14} {'nMSE':>9} {'NLPD':>8} {'covers':>7} {'us/row':>8} {'tuning':>8}")
    for name in args.sets.split(","):
        X, y = standard(args.data, name)
        for model in chosen:
            began = time.monotonic()
            error, nlpd, covers, each = scored(models[model], X, y)
            rest = time.monotonic() - began - 1e-6 * each * (len(y) - TUNED)
            print(
                f"{name:<10} {model:<14} {error:>9.3g} {nlpd:>8.3f} {covers:>7.3f} {each:>8.1f} {rest:>7.1f}s",
                flush=True,
            )


if __name__ == "__main__":
    main()
