"""The longest pauses of live streams: 3,000 rows, one every 10 ms, each predicted and then learned by `Auto()`.

It prints the 99.9th percentile and the three longest pauses in milliseconds, with their rows and, in parentheses, the
CPU time of this thread: a pause that is much longer waited for the process that tunes, or for a processor. Streams are
in their own units. The data lie in a folder of your own, as for `accuracy.py`.

    python benchmarks/live_pause.py --data DIR [--sets kin40k,drawn] [--rows 3000]
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np

import onlinegp as ogp
import streams

SETS = ("kin40k", "elevators", "cadata", "drawn", "mg30")
PERIOD = 0.01  # seconds


def rows_of(folder: Path, name: str, rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows of a set, or of a drawn function of 8 columns."""
    if name != "drawn":
        return streams.read(folder, name, rows)
    rng = np.random.default_rng(8)
    X = rng.normal(size=(rows, 8))
    return X, streams.gp_function(rng, 8, 3.0)(X) + 0.1 * rng.normal(size=rows)


def pauses(X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return wall time and CPU time of this thread for each row, in milliseconds, (n, 2)."""
    model, due, took = ogp.Auto(), time.monotonic(), []
    for i, (x, target) in enumerate(zip(X, y, strict=True)):
        began, worked = time.monotonic(), time.thread_time()
        if i:
            model.predict_one(x, return_std=True)
        model.learn_one(x, target)
        took.append((time.monotonic() - began, time.thread_time() - worked))
        due += PERIOD
        time.sleep(max(0.0, due - time.monotonic()))
    return 1e3 * np.array(took)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", type=Path, required=True, help="the folder of the data sets")
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--rows", type=int, default=3000)
    args = parser.parse_args()
    print(f"{'stream':<10} {'median':>7} {'p99.9':>7} {'> 10 ms':>7}   longest, in ms (CPU)")
    for name in args.sets.split(","):
        took = pauses(*rows_of(args.data, name, args.rows))
        wall = took[:, 0]
        longest = [f"row {i + 1}: {took[i, 0]:.1f} ({took[i, 1]:.1f})" for i in np.argsort(-wall)[:3]]
        late = np.sum(wall > 1e3 * PERIOD)
        middle, high = np.quantile(wall, (0.5, 0.999))
        print(f"{name:<10} {middle:>7.2f} {high:>7.2f} {late:>7}   {', '.join(longest)}", flush=True)


if __name__ == "__main__":
    main()
