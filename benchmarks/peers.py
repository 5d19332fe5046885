"""Other libraries on the same stream, where they are installed: microseconds per sample, and the error they reach."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from time import perf_counter

import numpy as np

import onlinegp as ogp
from onlinegp.datasets import robot_arm
from onlinegp.kernels import RBF
from onlinegp.metrics import nmse, to_db

ROWS = 3000
SETTLED = 1000

Filter = Callable[[np.ndarray, np.ndarray], np.ndarray]


def ours() -> Iterator[tuple[str, Filter]]:
    kernel = RBF(1.8)
    for model in (
        ogp.KLMS(kernel, step=0.5),
        ogp.QKLMS(kernel, step=0.5, radius=0.5),
        ogp.BetaKLMS(kernel, noise=0.01),
        ogp.KRLST(kernel, noise=0.01, budget=100),
        ogp.KRLST(kernel, noise=0.01, budget=500),
    ):
        yield repr(model), lambda X, y, model=model: ogp.run(model, X, y).mean


def of_river() -> Iterator[tuple[str, Filter]]:
    from river import forest, neighbors

    def through(model):
        def run(X, y):
            out = np.empty(len(y))
            for i, (x, target) in enumerate(zip(X, y.tolist(), strict=True)):
                row = dict(enumerate(x.tolist()))
                out[i] = model.predict_one(row) or 0.0
                model.learn_one(row, target)
            return out

        return run

    yield "river KNNRegressor", through(neighbors.KNNRegressor())
    yield "river ARFRegressor", through(forest.ARFRegressor(seed=0))


def of_sklearn() -> Iterator[tuple[str, Filter]]:
    from sklearn.kernel_approximation import RBFSampler
    from sklearn.linear_model import SGDRegressor

    def run(X, y):
        features = RBFSampler(gamma=0.5 / 1.8**2, n_components=500, random_state=0).fit(X[:1])
        model = SGDRegressor(learning_rate="constant", eta0=0.1, alpha=1e-7)
        out = np.zeros(len(y))
        for i in range(len(y)):
            z = features.transform(X[i : i + 1])
            if i:
                out[i] = model.predict(z)[0]
            model.partial_fit(z, y[i : i + 1])
        return out

    yield "scikit-learn, 500 random features + SGD", run


def of_krls() -> Iterator[tuple[str, Filter]]:
    import krls

    for name in ("KRLST", "KRLS"):
        if hasattr(krls, name):
            yield f"krls {name}", _with_krls(getattr(krls, name)())


def _with_krls(model) -> Filter:
    def run(X, y):
        out = np.zeros(len(y))
        for i in range(len(y)):
            if i:
                out[i] = np.ravel(model.predict(X[i : i + 1]))[0]
            model.update(X[i : i + 1], y[i : i + 1])
        return out

    return run


def peers() -> list[dict]:
    """Run everybody that can be imported, print a table, return it."""
    X, y = robot_arm(ROWS, seed=0)
    X, y = (X - X.mean(0)) / X.std(0), (y - y.mean()) / y.std()
    rows = []
    print(f"\n{'peer':<60} {'us/sample':>10} {'nMSE':>9}")
    for library in (ours, of_river, of_sklearn, of_krls):
        try:
            for name, run in library():
                start = perf_counter()
                mean = run(X, y)
                us = 1e6 * (perf_counter() - start) / ROWS
                error = float(to_db(nmse(y[SETTLED:], mean[SETTLED:])))
                rows.append({"peer": name, "us": us, "nmse_db": error})
                print(f"{name[:60]:<60} {us:>10.1f} {error:>6.1f} dB")
        except ImportError as missing:
            print(f"{library.__name__.removeprefix('of_')}: not installed ({missing.name})")
    return rows
