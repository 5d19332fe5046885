"""False alarms and detection of `Detector`, beside a windowed Gaussian z-score and half-space trees.

Clean stretches: the training parts of files of the UCR anomaly archive, hourly series of M4, simulated streams. There,
events over nominal at rates of 1e-2, 1e-3 and 1e-4, and rows (`tail`). Planted faults: with at least 1,000 rows before
them, at a rate of 1e-3; how many are found, and after how many rows. UCR: whether the row with the highest score after
the training part is within 100 rows of the anomaly. Reasons: which of eight inputs is blamed for its fault. Nothing is
tuned to a file. The data lie in a folder of your own (--data): `anomalies/*.txt.gz`, whose names end in the last row of
the training part, and the first and last anomalous row, and `series/m4_hourly.csv.gz` (series, t, y).

    python benchmarks/alarms.py --data DIR [--only clean,planted,ucr,reasons,cost] [--faults 200] [--seed 5]
"""

from __future__ import annotations

import argparse
import csv
import gzip
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path

import numpy as np

import onlinegp as ogp
from onlinegp.models.alarms.constants import C
from onlinegp.models.alarms.watch import Watch
from onlinegp.progress import bar

RATES = (1e-2, 1e-3, 1e-4)
CLEAR = 20  # calm rows
Judged = tuple[np.ndarray, np.ndarray, np.ndarray]  # -log10 of the tail of each row, score, evidence


def detector(y: np.ndarray) -> Judged:
    out = Watch(scores=False, season=None, daily=False, native=True).add(y, y)
    return out[:, C["tail"]], out[:, C["score"]], out[:, C["evidence"]]


def z_score(y: np.ndarray, window: int = 500) -> Judged:
    """-log10 of the two-sided normal tail by mean and standard deviation of the last rows."""
    from scipy.special import log_ndtr

    past: deque[float] = deque(maxlen=window)
    s = np.zeros(len(y))
    for i, value in enumerate(y.tolist()):
        if i >= 150:
            std = float(np.std(past)) or 1e-12
            s[i] = -(float(log_ndtr(-abs(value - float(np.mean(past))) / std)) + np.log(2.0)) / np.log(10.0)
        past.append(value)
    return s, s, s


def half_space_trees(y: np.ndarray) -> Judged:
    """The score of river's trees on three lags, as the rank among its past scores."""
    from river import anomaly

    trees = anomaly.HalfSpaceTrees(n_trees=25, height=8, window_size=250, seed=1)
    low, high = y.min(), y.max()  # which it should not know
    scores: list[float] = []
    s = np.zeros(len(y))
    for i in range(3, len(y)):
        x = {k: float((y[i - k] - low) / (high - low or 1.0)) for k in range(3)}
        score = trees.score_one(x)
        trees.learn_one(x)
        if i >= 150:
            s[i] = -np.log10((1 + sum(one >= score for one in scores[-5000:])) / (1 + len(scores[-5000:])))
        scores.append(score)
    return s, s, s


def opened(score: np.ndarray, evidence: np.ndarray, threshold: float) -> int:
    """Return how many events open: at the threshold, until there are 20 calm rows."""
    low, count, until = min(1.8, 0.75 * threshold), 0, -1
    for start in np.flatnonzero(score >= threshold).tolist():
        if start <= until:
            continue
        count, calm, until = count + 1, 0, start
        while calm < CLEAR and until + 1 < len(score):
            until += 1
            calm = 0 if evidence[until] >= low else calm + 1
    return count


# Streams


def ucr(folder: Path) -> list[tuple[str, np.ndarray, int, int, int]]:
    """Return name, series, last training row, first and last anomalous row of each file."""
    found = []
    for path in sorted((folder / "anomalies").glob("*.txt.gz")):
        numbers = path.name.split(".")[0].split("_")[-3:]
        with gzip.open(path, "rt") as file:
            found.append((path.name[:40], np.array(file.read().split(), float), *map(int, numbers)))
    return found


def m4(folder: Path) -> dict[str, np.ndarray]:
    series: dict[str, list[float]] = {}
    with gzip.open(folder / "series" / "m4_hourly.csv.gz", "rt") as file:
        for row in csv.DictReader(file):
            series.setdefault(row["series"], []).append(float(row["y"]))
    return {name: np.array(values) for name, values in series.items()}


def autoregressive(keep: float, noise: np.ndarray) -> np.ndarray:
    y = np.zeros(len(noise))
    for i in range(1, len(noise)):
        y[i] = keep * y[i - 1] + noise[i]
    return y


def simulated(seed: int, n: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    wave = 2.0 * np.pi * np.arange(n)

    def white() -> np.ndarray:
        return rng.standard_normal(n)

    return {
        "white": white(),
        "ar .5": autoregressive(0.5, white()),
        "ar .9": autoregressive(0.9, white()),
        "ar .98": autoregressive(0.98, white()),
        "t 3": rng.standard_t(3, n),
        "t 5, ar": autoregressive(0.7, rng.standard_t(5, n)),
        "season": 3.0 * np.sin(wave / 48) + white(),
        "season, ar": 2.0 * np.sin(wave / 100) + autoregressive(0.8, 0.5 * white()),
        "rounded": np.round(2.0 * white()) / 2.0,
        "counts": rng.poisson(4.0, n).astype(float),
        "rare counts": rng.poisson(0.3, n).astype(float),
        "random walk": np.cumsum(white()),
        "slow walk": np.cumsum(0.1 * white()) + white(),
        "laplace": rng.laplace(size=n),
        "daily counts": rng.poisson(5.0 + 4.0 * np.sin(wave / 96)).astype(float),
    }


def skewed(seed: int, n: int) -> dict[str, np.ndarray]:
    """Bursty and skewed streams, which no constant was chosen on."""
    rng = np.random.default_rng(seed)
    slow = autoregressive(0.95, 0.3 * rng.standard_normal(n))
    burst = np.zeros(n)
    for i in np.flatnonzero(rng.random(n) < 0.002):
        burst[i : i + 20] += 5.0 * rng.pareto(1.5)
    return {
        "log-normal": np.exp(slow + 0.3 * rng.standard_normal(n)),
        "volatile": rng.standard_normal(n) * np.exp(slow / 2.0),
        "bursts": rng.poisson(3.0 + burst).astype(float),
        "gamma": rng.gamma(0.5, size=n),
        "negative binomial": rng.poisson(rng.gamma(0.7, 3.0, n)).astype(float),
    }


# What is measured


def clean(folder: Path, judge: Callable[[np.ndarray], Judged], seed: int) -> None:
    groups = {
        "UCR, training": {name: y[:last] for name, y, last, _, _ in ucr(folder)},
        "M4 hourly": m4(folder),
        "simulated": simulated(seed, 10_000),
        "skewed, bursty": skewed(seed, 10_000),
    }
    pooled, medians = np.zeros(7), []
    for group, series in groups.items():
        total = np.zeros(7)
        for y in series.values():
            tail, score, evidence = judge(y)
            rows = [np.count_nonzero(tail >= -np.log10(rate)) for rate in RATES]
            total += [len(y), *rows, *(opened(score, evidence, -np.log10(rate)) for rate in RATES)]
            if len(y) >= 3000 and group != "skewed, bursty":
                medians.append(1000.0 * opened(score, evidence, 3.0) / len(y))
        pooled += total if group != "skewed, bursty" else 0.0
        told(group, total)
    told("first three, pooled", pooled)
    print(f"    median over series of 3,000 rows and more, events at 1e-3: {np.median(medians):.2f}")


def told(name: str, total: np.ndarray) -> None:
    rows, events = np.split(total[1:] / total[0] / np.array(RATES * 2), 2)
    shown = [" ".join(f"{value:6.2f}" for value in part) for part in (rows, events)]
    print(f"    {name:22} rows {shown[0]}   events {shown[1]}")


def located(folder: Path, judge: Callable[[np.ndarray], Judged]) -> None:
    found, missed = 0, []
    files = ucr(folder)
    for name, y, last, first, end in files:
        row = last + int(np.argmax(judge(y)[1][last:])) + 1
        hit = first - 100 <= row <= end + 100
        found += hit
        missed += [] if hit else [name]
    print(f"    located: {found} of {len(files)}; missed: {', '.join(missed)}")


def bases(folder: Path, seed: int) -> list[np.ndarray]:
    """Return clean series of at least 2,000 rows, walks aside, of which a standard deviation says little."""
    own = [y for name, y in simulated(seed + 100, 4000).items() if "walk" not in name]
    return [y[:last] for _, y, last, _, _ in ucr(folder) if last >= 2000] + own


FAULTS: dict[str, tuple[int, Callable[[np.ndarray, int, float, float, np.random.Generator], None]]] = {}


def fault(name: str, within: int) -> Callable[[Callable[..., None]], Callable[..., None]]:
    def keep(plant: Callable[..., None]) -> Callable[..., None]:
        FAULTS[name] = within, plant
        return plant

    return keep


@fault("spike of 6 sigma", 2)
def spike(y: np.ndarray, at: int, sigma: float, sign: float, rng: np.random.Generator) -> None:
    y[at] += sign * 6.0 * sigma


@fault("shift of 3 sigma", 300)
def shift(y: np.ndarray, at: int, sigma: float, sign: float, rng: np.random.Generator) -> None:
    y[at:] += sign * 3.0 * sigma


@fault("variance x 4", 300)
def noisier(y: np.ndarray, at: int, sigma: float, sign: float, rng: np.random.Generator) -> None:
    y[at:] += 3.0**0.5 * sigma * rng.standard_normal(len(y) - at)


@fault("stuck for 30 rows", 30)
def stuck(y: np.ndarray, at: int, sigma: float, sign: float, rng: np.random.Generator) -> None:
    y[at : at + 30] = y[at]


@fault("drift, .02 sigma a row", 300)
def drift(y: np.ndarray, at: int, sigma: float, sign: float, rng: np.random.Generator) -> None:
    y[at:] += sign * 0.02 * sigma * np.arange(len(y) - at)


def planted(folder: Path, judge: Callable[[np.ndarray], Judged], count: int, seed: int) -> None:
    rng, series = np.random.default_rng(seed), bases(folder, seed)
    for name, (within, plant) in FAULTS.items():
        delays = []
        for _ in range(count):
            y = series[rng.integers(len(series))].copy()
            at = int(rng.integers(1000, len(y) - 350))
            plant(y, at, float(y[:at].std()), float(rng.choice([-1.0, 1.0])), rng)
            rows = np.flatnonzero(judge(y[: at + within])[1][at:] >= 3.0)
            delays += rows[:1].tolist()
        print(f"    {name:24} found {len(delays) / count:.3f}, median delay {np.median(delays or [np.nan]):g}")


def events(folder: Path, count: int, seed: int) -> None:
    """A new level is one event and clears; the same fault, again after 1,500 rows, is found again."""
    rng, series = np.random.default_rng(seed), bases(folder, seed)
    once = cleared = first = again = 0
    for i in range(count):
        y = series[rng.integers(len(series))].copy()
        at = int(rng.integers(1000, len(y) - 600)) if len(y) > 1700 else 1000
        y[at:] += 4.0 * y[:at].std() * rng.choice([-1.0, 1.0])
        numbers = ogp.Detector().detect(y).event[at:]
        own = np.unique(numbers[:500][numbers[:500] > 0])
        once += len(own) == 1
        cleared += len(own) > 0 and not (numbers == own[0])[-1]
        long = [y for y in series if len(y) >= 3000]
        y = long[rng.integers(len(long))].copy()
        at, sigma = 1000 + int(rng.integers(0, 200)), float(y[:1000].std())
        for start in (at, at + 1500):
            kinds = (4.0, -4.0, 3.0 * rng.standard_normal(40))
            y[start : start + 40] += sigma * np.asarray(kinds[i % 3])
        score = detector(y)[1]
        first += (score[at : at + 45] >= 3.0).any()
        again += (score[at + 1500 : at + 1545] >= 3.0).any()
    print(f"    level shift of 4 sigma: one event within 500 rows {once / count:.3f}, clears {cleared / count:.3f}")
    print(f"    a fault of 40 rows: found {first / count:.3f}, the same again {again / count:.3f}")


def reasons(count: int, seed: int) -> None:
    """Faults in one of eight inputs of a linear model."""
    rng = np.random.default_rng(seed)
    for kind in ("shift", "spike", "stuck", "noise"):
        right = found = 0
        for i in range(count):
            X = rng.standard_normal((1500, 8))
            for j in range(4):
                X[:, j] = autoregressive(0.8, X[:, j])
            y = X @ rng.uniform(0.5, 1.5, 8) + 0.1 * rng.standard_normal(1500)
            blamed, at = i % 8, 1200
            size = 6.0 * X[:, blamed].std()
            if kind == "shift":
                X[at:, blamed] += size
            elif kind == "spike":
                X[at, blamed] += size
            elif kind == "stuck":
                X[at : at + 30, blamed] = X[at, blamed] + size / 2
            else:
                X[at : at + 30, blamed] += size / 2 * rng.standard_normal(30)
            model = ogp.Detector(ogp.LinearRLS(noise=0.01))
            model.detect(y, X)
            own = [event for event in model.events_ if at <= event.start < at + 40]
            found += bool(own)
            right += bool(own) and own[0].unusual[:1] == (blamed,)
        print(f"    fault in one of eight inputs, {kind:6} found {found / count:.3f}, blamed right {right / count:.3f}")


def innocent(count: int, seed: int) -> None:
    """Faults in the target alone, with eight inputs of each kind, none of which should be blamed."""
    t = np.arange(1500)
    for kind in ("white", "season", "walk", "steps", "skewed"):
        found = blamed = 0
        for i in range(count):
            rng = np.random.default_rng([seed, i])
            X = rng.standard_normal((1500, 8))
            if kind == "season":
                X += 10.0 * np.sin(2.0 * np.pi * (t[:, None] + 40 * np.arange(8)) / 144)
            X = {"walk": np.cumsum(X, axis=0), "steps": np.repeat(X[:30], 50, axis=0), "skewed": np.exp(X)}.get(kind, X)
            y = X.sum(axis=1) + X.std() * rng.standard_normal(1500)
            y[1200 : 1200 + (1, 40, 300)[i % 3]] += 6.0 * X.std()
            model = ogp.Detector(ogp.LinearRLS(noise=0.1))
            model.detect(y, X)
            own = [event for event in model.events_ if 1200 <= event.start < 1240]
            found += bool(own)
            blamed += any(event.unusual for event in own)
        print(
            f"    fault in the target, inputs {kind:6} found {found / count:.3f}, an input blamed {blamed / count:.3f}"
        )


def cost() -> None:
    rng = np.random.default_rng(0)
    for name, y in {"noise": rng.standard_normal(200_000), "season": simulated(0, 200_000)["season"]}.items():
        best = min(_seconds(y) for _ in range(5))
        print(f"    {name}: {1e6 * best / len(y):.2f} us per row")
    for what, model in {
        "alone": ogp.Detector(),
        "on top of LinearRLS, 3 inputs": ogp.Detector(ogp.LinearRLS()),
    }.items():
        X = rng.standard_normal((20_000, 3)) if model.model is not None else None
        began = time.process_time()
        model.detect(rng.standard_normal(20_000), X)
        seconds = time.process_time() - began
        print(f"    Detector {what}: {1e6 * seconds / 20_000:.2f} us per row, file of {len(model.to_bytes()):,} bytes")


def _seconds(y: np.ndarray) -> float:
    began = time.process_time()
    detector(y)
    return time.process_time() - began


def judges() -> dict[str, Callable[[np.ndarray], Judged]]:
    found: dict[str, Callable[[np.ndarray], Judged]] = {"Detector": detector, "windowed Gaussian z-score": z_score}
    try:
        import river  # noqa: F401
    except ImportError:
        print("river is not installed: half-space trees are left out")
    else:
        found["half-space trees"] = half_space_trees
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--only", default="clean,planted,ucr,reasons,cost")
    parser.add_argument("--faults", type=int, default=200)
    parser.add_argument("--seed", type=int, default=5)
    args = parser.parse_args()
    parts = args.only.split(",")
    with bar(len(judges()), "detectors") as progress:
        for name, judge in judges().items():
            print(f"{name}")
            if "clean" in parts:
                print("  false alarms over nominal, at 1e-2, 1e-3 and 1e-4")
                clean(args.data, judge, args.seed)
            if "planted" in parts:
                count = args.faults if name != "half-space trees" else min(20, args.faults)  # which take a while
                print(f"  planted faults, {count} each, at 1e-3")
                planted(args.data, judge, count, args.seed)
            if "ucr" in parts:
                print("  UCR")
                located(args.data, judge)
            progress.update(1)
    if "planted" in parts:
        print("Events of Detector")
        events(args.data, args.faults, args.seed)
    if "reasons" in parts:
        print("Reasons of Detector")
        reasons(max(8, args.faults // 4), args.seed)
        innocent(max(8, args.faults // 4), args.seed)
    if "cost" in parts:
        print("Cost of Detector")
        cost()


if __name__ == "__main__":
    main()
