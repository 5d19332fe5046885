"""The longest pauses of live streams: 3,000 rows, one every 10 ms, each predicted and then learned by `Auto()`.

It prints the 99.9th percentile and the three longest pauses in milliseconds, with their rows and, in parentheses, the
CPU time of this thread and how long it waited for a processor, where the system tells that. What is missing from the
pause was spent waiting for the process that tunes. Streams are in their own units. The data lie in a folder of your
own, as for `accuracy.py`.

    python benchmarks/live_pause.py --data DIR [--sets kin40k,drawn] [--rows 3000] [--period 0.01]

On a busy machine the process that tunes waits for a processor, too. A longer period then shows whether anything else
takes long.
"""

from __future__ import annotations

import argparse
import threading
import time
from pathlib import Path

import numpy as np

import onlinegp as ogp
import streams

SETS = ("kin40k", "elevators", "cadata", "drawn", "mg30")
LIMIT = 10.0  # ms


def rows_of(folder: Path, name: str, rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows of a set, or of a drawn function of 8 columns."""
    if name != "drawn":
        return streams.read(folder, name, rows)
    rng = np.random.default_rng(8)
    X = rng.normal(size=(rows, 8))
    return X, streams.gp_function(rng, 8, 3.0)(X) + 0.1 * rng.normal(size=rows)


def waited() -> float:
    """Return how long this thread has waited for a processor, in seconds; zero if the system does not tell."""
    path = Path(f"/proc/self/task/{threading.get_native_id()}/schedstat")
    return float(path.read_text().split()[1]) / 1e9 if path.exists() else 0.0


def pauses(X: np.ndarray, y: np.ndarray, period: float) -> np.ndarray:
    """Return wall time, CPU time and time without a processor of this thread for each row, in milliseconds, (n, 3)."""
    model, due, took = ogp.Auto(), time.monotonic(), []
    for i, (x, target) in enumerate(zip(X, y, strict=True)):
        before = time.monotonic(), time.thread_time(), waited()
        if i:
            model.predict_one(x, return_std=True)
        model.learn_one(x, target)
        took.append(np.subtract((time.monotonic(), time.thread_time(), waited()), before))
        due += period
        time.sleep(max(0.0, due - time.monotonic()))
    return 1e3 * np.array(took)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", type=Path, required=True, help="the folder of the data sets")
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--rows", type=int, default=3000)
    parser.add_argument("--period", type=float, default=0.01, help="seconds between two rows")
    args = parser.parse_args()
    print(f"{'stream':<10} {'median':>7} {'p99.9':>7} {'> 10 ms':>7}   longest, in ms (CPU, waited)")
    for name in args.sets.split(","):
        took = pauses(*rows_of(args.data, name, args.rows), args.period)
        wall = took[:, 0]
        longest = ["row {}: {:.1f} ({:.1f}, {:.1f})".format(i + 1, *took[i]) for i in np.argsort(-wall)[:3]]
        late = np.sum(wall > LIMIT)
        middle, high = np.quantile(wall, (0.5, 0.999))
        print(f"{name:<10} {middle:>7.2f} {high:>7.2f} {late:>7}   {', '.join(longest)}", flush=True)


if __name__ == "__main__":
    main()
