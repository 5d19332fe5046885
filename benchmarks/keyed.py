"""A model per key: events per second in memory, in a store where they fit, and in one where each event misses.

    python benchmarks/keyed.py [--keys 100000] [--folder DIR]

The models have 50 centers of 4 inputs; their states are exact, and then compact. "misses" visits keys in turn with room
for a hundredth of them, so that every event reads a model from the store and writes another. "disk" is what the same
bytes take without any model: states of that size read and written through SQLite in the same order.
"""

from __future__ import annotations

import argparse
import resource
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import perf_counter, process_time

import numpy as np

import onlinegp as ogp
from onlinegp.fleet import step
from onlinegp.fleet.sqlite_file import Store
from onlinegp.kernels import RBF

M, D, BLOCK = 50, 4, 4000
MODEL = ogp.KRLST(RBF(1.0), noise=0.01, budget=M)


def rows(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    X = 2.0 * rng.standard_normal((n, D))
    return X, np.sin(X[:, 0]) + 0.1 * rng.standard_normal(n)


def timed(fleet: ogp.Fleet, keys: list[int], repeats: int = 3) -> str:
    """Return the events per second over these keys, the best of some repeats, commits included.

    And those per second of processor time, which others that use the machine do not change.
    """
    rng, best, least = np.random.default_rng(1), 0.0, np.inf
    for _ in range(repeats):
        X, y = rows(rng, len(keys))
        start, used = perf_counter(), process_time()
        for i in range(0, len(keys), BLOCK):
            fleet.run(keys[i : i + BLOCK], X[i : i + BLOCK], y[i : i + BLOCK])
        fleet.commit()
        best = max(best, len(keys) / (perf_counter() - start))
        least = min(least, process_time() - used)
    return f"{best:,.0f} events per second ({len(keys) / least:,.0f} per second of processor time)"


def agreement(folder: Path, compact: bool) -> tuple[bool, float]:
    """Return whether 2,000 keys of 50 events give the same bits in memory and in a store of 200, and the seconds."""
    rng = np.random.default_rng(0)
    X, y = rows(rng, 100_000)
    keys = rng.permutation(np.repeat(np.arange(2000), 50)).tolist()
    memory, predicted, start = ogp.Fleet(MODEL, compact=compact), {}, perf_counter()
    with ogp.Fleet(MODEL, store=folder / "agreement.db", keep=200, compact=compact) as stored:
        for name, fleet in {"memory": memory, "store": stored}.items():
            parts = [fleet.run(keys[i : i + 5000], X[i : i + 5000], y[i : i + 5000]) for i in range(0, len(y), 5000)]
            predicted[name] = np.concatenate([np.stack([part.mean, part.std]) for part in parts], axis=1)
        same = np.array_equal(predicted["memory"], predicted["store"])
        same &= all(stored[key].to_bytes() == memory[key].to_bytes() for key in range(0, 2000, 10))
    return bool(same), perf_counter() - start


def many(folder: Path, keys: int, keep: int, compact: bool) -> tuple[str, float, float]:
    """Return the events per second when each event is a new key or a miss, the peak of memory and the bytes per key."""
    full = full_state(compact)
    with ogp.Fleet(MODEL, store=folder / "many.db", keep=keep, compact=compact) as fleet:
        fleet.learn([0], *rows(np.random.default_rng(0), 1))
    store = Store(folder / "many.db")  # full states for all keys: learning each would take hours
    for i in range(1, keys, 1000):
        some = range(i, min(i + 1000, keys))
        store.put([(key, None, full) for key in some], len(some))
        store.commit()
    store.close()
    with ogp.Fleet.load(folder / "many.db", keep=keep) as fleet:
        speed = timed(fleet, [(7919 * i) % keys for i in range(min(keys, 20_000))])
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return speed, peak, (folder / "many.db").stat().st_size / keys


def full_state(compact: bool) -> bytes:
    return step(MODEL, None, *rows(np.random.default_rng(0), 200), compact=compact)[0]


def disk(folder: Path, keys: int, bytes_each: int) -> str:
    """Return how many states a second SQLite reads and writes, in the order of the misses, without any model."""
    state, store = bytes(bytes_each), Store(folder / "disk.db")
    for i in range(0, keys, 1000):
        store.put([(key, None, state) for key in range(i, i + 1000)], 1000)
    store.commit()
    order = [(7919 * i) % keys for i in range(20_000)]
    start, used = perf_counter(), process_time()
    for i in range(0, len(order), 1000):
        store.get(order[i : i + 1000])
        store.put([(key, None, state) for key in order[i : i + 1000]], 0)
    store.commit()
    seconds, used = perf_counter() - start, process_time() - used
    store.close()
    return (
        f"{len(order) / seconds:,.0f} states read and written per second ({len(order) / used:,.0f} of processor time)"
    )


def fitting(make: Callable[[], ogp.Fleet]) -> str:
    """Return the events per second over 500 keys, which all fit."""
    with make() as fleet:
        for _ in range(M + 5):
            X, y = rows(np.random.default_rng(2), 500)
            fleet.learn(list(range(500)), X, y)
        return timed(fleet, np.random.default_rng(3).integers(0, 500, 100_000).tolist())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keys", type=int, default=100_000)
    parser.add_argument("--folder", type=Path, help="where the stores are made (a temporary one)")
    args = parser.parse_args()
    for compact in (False, True):
        with tempfile.TemporaryDirectory(dir=args.folder) as name:
            measure(Path(name), args.keys, compact)


def measure(folder: Path, keys: int, compact: bool) -> None:
    size = len(full_state(compact))
    print(f"{'compact' if compact else 'exact'} states of {size:,} bytes: {M} centers of {D} inputs")
    speed, peak, each = many(folder, keys, keys // 100, compact)
    print(f"  {keys:,} keys, each event misses: {speed}, {peak:,.0f} MB of memory at most")
    print(f"  the file: {each:,.0f} bytes per key")
    print(f"  disk alone: {disk(folder, 20_000, size)}")
    print(f"  keys fit, in memory: {fitting(lambda: ogp.Fleet(MODEL, compact=compact))}")
    stored = fitting(lambda: ogp.Fleet(MODEL, store=folder / "fit.db", compact=compact))
    print(f"  keys fit, with a store: {stored}, a commit per 100,000 events included")
    same, seconds = agreement(folder, compact)
    print(
        f"  2,000 keys x 50 events, memory and a store that keeps 200: same bits: {same} ({seconds:.0f} s)", flush=True
    )


if __name__ == "__main__":
    main()
