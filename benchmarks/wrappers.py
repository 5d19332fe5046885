"""What LinearRLS and the models made of models cost per row: `python benchmarks/wrappers.py`.

Contenders take turns, and the least time of several repeats counts. NumPy beside LinearRLS is recursive least squares
as textbooks have it, with a covariance that is updated in place.
"""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter

import numpy as np

import onlinegp as ogp

ROWS, D, REPEATS = 5000, 10, 7


def textbook(X: np.ndarray, y: np.ndarray, noise: float = 1.0) -> np.ndarray:
    """Predict, then learn: P <- P - P x x'P / (noise + x'P x)."""
    P, w, mean = np.eye(X.shape[1]), np.zeros(X.shape[1]), np.empty(len(y))
    for i, x in enumerate(X):
        mean[i] = w @ x
        g = P @ x
        s = noise + x @ g
        w += g * ((y[i] - mean[i]) / s)
        P -= np.outer(g, g) / s
    return mean


def line() -> ogp.LinearRLS:
    return ogp.LinearRLS(noise=1.0, intercept=False)


def contenders() -> dict[str, Callable[[np.ndarray, np.ndarray], object]]:
    def run(make: Callable[[], ogp.OnlineRegressor]) -> Callable[[np.ndarray, np.ndarray], object]:
        return lambda X, y: ogp.run(make(), X, y)

    def interval(make: Callable[[], ogp.OnlineRegressor]) -> Callable[[np.ndarray, np.ndarray], object]:
        return lambda X, y: ogp.run(make(), X, y).interval(0.95)

    three = [ogp.HeavyTailed(line()) for _ in range(3)]
    return {
        "least squares in NumPy": textbook,
        "LinearRLS": run(line),
        "Calibrated(LinearRLS)": run(lambda: ogp.Calibrated(line())),
        "Conformal(LinearRLS)": run(lambda: ogp.Conformal(line())),
        "HeavyTailed(LinearRLS)": run(lambda: ogp.HeavyTailed(line())),
        "HeavyTailed(LinearRLS), and its intervals": interval(lambda: ogp.HeavyTailed(line())),
        "Conformal(HeavyTailed(LinearRLS))": run(lambda: ogp.Conformal(ogp.HeavyTailed(line()))),
        "Mixture of three HeavyTailed": run(lambda: ogp.Mixture(three)),
        "Mixture of three HeavyTailed, and its intervals": interval(lambda: ogp.Mixture(three)),
    }


def main() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((ROWS, D))
    y = X @ rng.standard_normal(D) + rng.standard_t(4, ROWS)
    least = dict.fromkeys(contenders(), np.inf)
    for _ in range(REPEATS):
        for name, work in contenders().items():
            start = perf_counter()
            work(X, y)
            least[name] = min(least[name], perf_counter() - start)
    print(f"{ROWS} rows of {D} inputs")
    for name, seconds in least.items():
        print(f"{name:<50} {1e6 * seconds / ROWS:8.2f} us per row")


if __name__ == "__main__":
    main()
