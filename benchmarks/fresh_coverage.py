"""Coverage of fresh rows at a moment: how many of 3,000 new rows are within the 95% intervals that a model gives now.

Coverage along a stream is steered to 95% by `Conformal`, so it proves little. This asks for the intervals that a user
sees who learns some rows and then predicts others. The streams are like the README's, and permutations of two tables.

    python benchmarks/fresh_coverage.py [--data DIR] [--streams 12] [--rows 300,500,1000]
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

import numpy as np

import onlinegp as ogp

FRESH = 3000
TABLES = ("cadata", "elevators")


def readme_like(seed: int, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return rows as in the README: a sine in noise, far from zero."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-5.0, 5.0, (n, 1))
    return x, 70.0 + 5.0 * np.sin(x[:, 0]) + rng.standard_normal(n)


def permuted(path: Path, seed: int, n: int) -> tuple[np.ndarray, np.ndarray]:
    table = np.random.default_rng(seed).permutation(np.loadtxt(path, delimiter=",", skiprows=1))[:n]
    return table[:, :-1], table[:, -1]


def at_moments(X: np.ndarray, y: np.ndarray, moments: list[int]) -> Iterator[float]:
    """Yield the coverage of the last FRESH rows after each number of first rows."""
    model, learned = ogp.Auto(), 0
    fresh = slice(len(y) - FRESH, None)
    for rows in moments:
        model.partial_fit(X[learned:rows], y[learned:rows])
        learned = rows
        lower, upper = model.predict_interval(X[fresh], level=0.95)
        yield float(np.mean((lower <= y[fresh]) & (y[fresh] <= upper)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", type=Path, help="the folder of the data sets; without it, streams like the README's")
    parser.add_argument("--streams", type=int, default=12, help="how many of each kind")
    parser.add_argument("--rows", default="300,500,1000", help="after how many rows")
    args = parser.parse_args()
    moments = [int(rows) for rows in args.rows.split(",")]
    n = moments[-1] + FRESH
    kinds = {"README-like": lambda seed: readme_like(seed, n)}
    if args.data is not None:
        for name in TABLES:
            path = args.data / "streams" / f"{name}.csv.gz"
            kinds[name] = lambda seed, path=path: permuted(path, seed, n)
    print(f"{'stream':<12} {'rows':>6} {'mean':>7} {'sd':>7} {'least':>7} {'most':>7}")
    for kind, rows_of in kinds.items():
        found = np.array([list(at_moments(*rows_of(seed), moments)) for seed in range(args.streams)])
        for rows, covers in zip(moments, found.T, strict=True):
            print(
                f"{kind:<12} {rows:>6} {covers.mean():>7.4f} {covers.std(ddof=1):>7.4f} {covers.min():>7.3f} "
                f"{covers.max():>7.3f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
