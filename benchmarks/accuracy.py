"""How well the models predict real streams, one row ahead: error, density and coverage, in one table.

The first 1,000 rows are for tuning; the next, at most 5,000, are each predicted and then learned, and scored. Error is
the mean squared error over the variance of those rows, density the mean negative log density in units of the standard
deviation of the first 1,000 targets, coverage that of 95% intervals. The data lie in a folder of your own (--data):
`streams/*.csv.gz` with the target in the last column, a single column being a series that is predicted from its last
10 values, `kin40k.csv.gz`, and the series `lorenz.txt` (6 values), `mg30.txt` and `santafe.txt`.

    python benchmarks/accuracy.py --data DIR [--sets kin40k,price] [--models auto,krlst]
    python benchmarks/accuracy.py --data DIR --part still|drift|outliers|start|skewed|ablation [--half 0|1]

still: the streams above, beside commit 385e471 and the member that is best alone, chosen in hindsight; then the 90%
interval of that ratio over other draws of the rows (bootstrap of blocks of 50), and the share of the squared error in
its 12 largest rows. On streams with rare large errors a few rows decide which member is best.
drift: streams that change at a random row (`streams.py`), after the change: error of Auto over their variance, over
that of commit 385e471, after 100 rows over that of the best KRLST that forgets, chosen in hindsight, and in the last
500 rows over that of an Auto that learned no row before the change; coverage of the first 500 rows.
outliers: 2% of the targets are off by ten standard deviations, error against the clean targets.
start: errors in rows 20-100, 100-300 and 300-1,000 over the better of linear regression and persistence, and coverage.
skewed: log-normal targets, counts and many zeros, beside commit 385e471. The scales to try were chosen on
lognormal-0, counts-0, counts-1, zeros-0 and cadata in its own units; the others were looked at once.
ablation: drift and still streams without one part of Auto. Members were chosen on half 0 of the streams; the gate and
the constants for outliers after looking at all of them, so that half 1 is no clean check of these.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import onlinegp as ogp
import streams
from onlinegp.auto.members import MEMBERS, around
from onlinegp.batch.likely_kernels import MATERN, MATERN_LINEAR, SMOOTH, Hyperparameters, likely_kernels
from onlinegp.models.combined.base import OuterRegressor, innermost

TUNED, SCORED = 1000, 5000
LAST = 500  # rows of a changing stream, in which it is steady
BLOCK = 50  # rows
SETS = streams.SETS
FORGETTING = (0.9999, 0.999, 0.998, 0.995, 0.99, 0.98)
EARLY = ((20, 100), (100, 300), (300, 1000))  # rows
OUTLIER_SETS = ("kin40k", "elevators", "cadata", "climate", "gp2", "gp5", "mg30", "santafe")
# Error and NLPD of commit 385e471 on streams with skewed targets
SKEWED = {
    "lognormal-0": (0.825, 1.151),
    "lognormal-1": (0.258, 6.053),
    "counts-0": (0.176, 2.758),
    "counts-1": (0.252, 2.517),
    "negbin-0": (0.884, 2.270),
    "gamma-1": (0.655, 2.908),
    "zeros-1": (0.859, 2.220),
}
# Likewise, on streams that stay as they are
STILL = {
    "kin40k": (0.07288, 0.009),
    "elevators": (0.14816, 0.442),
    "cadata": (0.17522, 0.379),
    "house8l": (0.44045, 0.526),
    "price": (0.31545, 0.910),
    "elecfeat": (0.00782, -1.411),
    "climate": (0.04619, -0.145),
    "lorenz": (7.441e-11, -10.644),
    "mg30": (9.018e-06, -5.337),
    "santafe": (0.00432, -2.498),
}
Row = tuple[float, float, float, float]


def standard(folder: Path, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows of a set that are used, in units of its first rows."""
    return streams.standard(*streams.read(folder, name, TUNED + SCORED))


def auto(X: np.ndarray, y: np.ndarray) -> ogp.Auto:
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
        predicted = ogp.predictions.Gaussian(mean[TUNED:], std[TUNED:])
        return figures(predicted, y[TUNED:], time.process_time() - began)


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


def figures(predicted: ogp.predictions.Predictions, y: np.ndarray, seconds: float) -> Row:
    low, high = predicted.interval()
    inside = float(np.mean((low <= y) & (y <= high)))
    error = float(np.mean((y - predicted.mean) ** 2) / np.var(y))
    return error, -float(predicted.log_density(y).mean()), inside, 1e6 * seconds / len(y)


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


def auto_run(stream: streams.Stream, **options: Any) -> ogp.Trace:
    """Return what Auto, tuned on the first rows, predicts of the others."""
    model = ogp.Auto(rows=TUNED, earliest=TUNED, tuning_delay=0.0, **options)
    model.fit(stream.X[:TUNED], stream.y[:TUNED])
    return model.run(stream.X[TUNED:], stream.y[TUNED:])


def after_change(stream: streams.Stream, trace: ogp.Trace) -> tuple[float, float, float]:
    """Return error, NLPD and coverage (of 500 rows) after the first change, or of all rows."""
    begin = stream.changes[0] - TUNED if stream.changes else 0
    y = stream.y[TUNED + begin :]
    low, high = trace.interval()
    inside = ((low[begin:] <= y) & (y <= high[begin:]))[: 500 if stream.changes else None]
    error = float(np.mean((trace.mean[begin:] - y) ** 2) / np.var(y))
    return error, -float(trace.log_density[begin:].mean()), float(inside.mean())


def best_in_hindsight(stream: streams.Stream) -> float:
    """Return the error of the best KRLST with forgetting, 100 rows after the first change and later."""
    found = likely_kernels(stream.X[:TUNED], stream.y[:TUNED], families=(MATERN, MATERN_LINEAR))
    begin = stream.changes[0] + 100
    errors = []
    for one in found:
        for factor in FORGETTING:
            model = ogp.KRLST(one.kernel, noise=one.noise, budget=200, forgetting=factor)
            errors.append(np.mean((model.run(stream.X, stream.y).mean - stream.y)[begin:] ** 2))
    return float(min(errors))


def alone(chosen: OuterRegressor, X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return the squared errors of each member of a tuned Auto alone, (members, rows)."""
    mixture = innermost(chosen)
    assert isinstance(mixture, ogp.Mixture)
    models = [around(chosen, member).fit(X[:TUNED], y[:TUNED]) for _, member in mixture.named()]
    return np.array([(model.run(X[TUNED:], y[TUNED:]).mean - y[TUNED:]) ** 2 for model in models])


def redrawn(errors: np.ndarray, members: np.ndarray) -> np.ndarray:
    """Return the 90% interval of errors (rows,) over the least mean of those of the members (members, rows)."""
    rows = len(errors) // BLOCK * BLOCK
    blocks = np.vstack([errors, members])[:, :rows].reshape(len(members) + 1, -1, BLOCK).mean(axis=2)
    rng, ratios = np.random.default_rng(0), []
    for _ in range(1000):
        mean, *others = blocks[:, rng.integers(0, blocks.shape[1], blocks.shape[1])].mean(axis=1)
        ratios.append(mean / min(others))
    return np.percentile(ratios, (5, 95))


def still(folder: Path, half: int | None) -> None:
    ratios = []
    header = f"{'stream':<12} {'error':>9} {'/385e471':>9} {'NLPD':>8} {'-385e471':>9} {'/best':>6}"
    print(f"{header} {'redrawn':>14} {'12 rows':>8}")
    for name in SETS if half is None else SETS[half::2]:
        X, y = standard(folder, name)
        model = auto(X, y).fit(X[:TUNED], y[:TUNED])
        members = alone(model.chosen_, X, y)
        trace, y = model.run(X[TUNED:], y[TUNED:]), y[TUNED:]
        errors, best = (trace.mean - y) ** 2, members.mean(axis=1).min()
        low, high = redrawn(errors, members)
        largest = np.sort(errors)[-12:].sum() / errors.sum()
        error, nlpd = errors.mean() / np.var(y), -trace.log_density.mean()
        ratios.append((error / STILL[name][0], nlpd - STILL[name][1]))
        print(
            f"{name:<12} {error:>9.3g} {ratios[-1][0]:>9.3f} {nlpd:>8.3f} {ratios[-1][1]:>+9.3f} "
            f"{errors.mean() / best:>6.3f} {low:>6.2f} to {high:<5.2f} {largest:>7.0%}",
            flush=True,
        )
    logs = np.mean([(np.log(a), b) for a, b in ratios], axis=0)
    print(f"mean: error {np.exp(logs[0]):.3f} of 385e471's, NLPD {logs[1]:+.3f}")


def without_past(stream: streams.Stream) -> float:
    """Return the error in the last LAST rows of an Auto that learned no row before the change was over."""
    begin = stream.changes[0] + (streams.GRADUAL if "gradual" in stream.name else 0)
    X, y = stream.X[begin:], stream.y[begin:]
    rows = min(TUNED, len(y) - LAST)
    model = ogp.Auto(rows=rows, earliest=rows, tuning_delay=0.0).fit(X[:-LAST], y[:-LAST])
    trace = model.run(X[-LAST:], y[-LAST:])
    return float(np.mean((trace.mean - y[-LAST:]) ** 2))


def drift(folder: Path, half: int | None) -> None:
    known = json.loads((Path(__file__).parent / "drift_385e471.json").read_text())
    chosen = streams.changing(folder)
    ratios, kinds, steady = [], {}, []
    header = f"{'stream':<22} {'error':>8} {'/385e471':>9} {'NLPD':>8} {'-385e471':>9} {'/KRLST':>7} {'covers':>7}"
    print(f"{header} {'/no past':>8}")
    for stream in chosen if half is None else streams.halves(chosen)[half]:
        trace = auto_run(stream)
        error, nlpd, covers = after_change(stream, trace)
        old, begin = known[stream.name], stream.changes[0] + 100
        later = np.mean((trace.mean[begin - TUNED :] - stream.y[begin:]) ** 2) / best_in_hindsight(stream)
        ratios.append((error / old["error"], nlpd - old["nlpd"]))
        kinds.setdefault(stream.name.split("-")[0], []).append(later)
        if len(stream.changes) == 1:
            steady.append(np.mean((trace.mean - stream.y[TUNED:])[-LAST:] ** 2) / without_past(stream))
        print(
            f"{stream.name:<22} {error:>8.4f} {ratios[-1][0]:>9.3f} {nlpd:>8.3f} {ratios[-1][1]:>+9.3f} {later:>7.2f} "
            f"{covers:>7.3f} {steady[-1] if len(stream.changes) == 1 else np.nan:>8.2f}",
            flush=True,
        )
    by_kind = {kind: float(np.exp(np.mean(np.log(each)))) for kind, each in kinds.items()}
    print(f"median {np.median([one[0] for one in ratios]):.3f}, NLPD {np.mean([one[1] for one in ratios]):+.3f}")
    print(f"over KRLST, by kind: {by_kind}, median {np.median(list(by_kind.values())):.2f}")
    print(f"last {LAST} rows, over Auto without the past: median {np.median(steady):.2f}, worst {max(steady):.2f}")


def outliers(folder: Path, half: int | None) -> None:
    print(f"{'stream':<12} {'clean':>8} {'outliers':>9} {'ratio':>6}")
    for name in OUTLIER_SETS if half is None else OUTLIER_SETS[half::2]:
        clean, spoiled = streams.with_outliers(folder, name)
        both = [np.mean((auto_run(one).mean - clean.y[TUNED:]) ** 2) / np.var(clean.y) for one in (clean, spoiled)]
        print(f"{name:<12} {both[0]:>8.4f} {both[1]:>9.4f} {both[1] / both[0]:>6.2f}", flush=True)


def skewed(folder: Path, half: int | None) -> None:
    print(f"{'stream':<12} {'error':>8} {'385e471':>8} {'NLPD':>8} {'385e471':>8} {'covers':>7}")
    for name, (old_error, old_nlpd) in list(SKEWED.items())[slice(half, None, None if half is None else 2)]:
        kind, seed = name.split("-")
        stream = streams.Stream(name, *streams.skewed(kind, int(seed)))
        error, nlpd, covers = after_change(stream, auto_run(stream))
        print(f"{name:<12} {error:>8.3f} {old_error:>8.3f} {nlpd:>8.3f} {old_nlpd:>8.3f} {covers:>7.3f}", flush=True)


def start(folder: Path, half: int | None) -> None:
    found, covered = [], []
    print(f"{'stream':<16}" + "".join(f"{f'{a}-{b}':>20}" for a, b in EARLY) + "   (over the better baseline, covers)")
    for name, X, y in streams.beginnings(folder)[slice(half, None, None if half is None else 2)]:
        trace, line = ogp.Auto().run(X, y), ogp.Scaled(ogp.LinearRLS(noise=0.1), rows=20).run(X, y).mean
        low, high = trace.interval()
        inside, last = (low <= y) & (y <= high), np.append(y[0], y[:-1])
        errors = [[np.mean((mean - y)[a:b] ** 2) for a, b in EARLY] for mean in (trace.mean, line, last)]
        found.append(np.array(errors[0]) / np.minimum(*errors[1:]))
        covered.append([inside[a:b].mean() for a, b in EARLY])
        print(
            f"{name:<16}" + "".join(f"{r:>13.2f} {c:>6.3f}" for r, c in zip(found[-1], covered[-1], strict=True)),
            flush=True,
        )
    print(f"median {np.median(found, axis=0)}, worst {np.max(found, axis=0)}, coverage {np.mean(covered, axis=0)}")


def ablation(folder: Path, half: int | None) -> None:
    """Print by how much errors and NLPD grow without a member, in the mean over streams."""
    chosen = [*streams.changing(folder), *(streams.Stream(one, *streams.still(folder, one)) for one in streams.SOURCES)]
    chosen = chosen if half is None else streams.halves(chosen)[half]
    whole = [after_change(one, auto_run(one)) for one in chosen]
    still = np.array([not one.changes for one in chosen])
    print(f"{'without':<16} {'drift: error':>13} {'NLPD':>8} {'still: error':>13} {'NLPD':>8}")
    for name in MEMBERS:
        less = [after_change(one, auto_run(one, members=[m for m in MEMBERS if m != name])) for one in chosen]
        logs = np.array([[np.log(b[0] / a[0]), b[1] - a[1]] for a, b in zip(whole, less, strict=True)])
        parts = [logs[~still].mean(axis=0), logs[still].mean(axis=0)]
        print(f"{name:<16}" + "".join(f"{np.exp(e):>14.3f} {d:>+8.3f}" for e, d in parts), flush=True)


PARTS = {"still": still, "drift": drift, "outliers": outliers, "start": start, "skewed": skewed, "ablation": ablation}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", type=Path, required=True, help="the folder of the data sets")
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--models", default="")
    parser.add_argument("--part", choices=PARTS, help="instead of the table of models")
    parser.add_argument("--half", type=int, choices=(0, 1), help="of the streams; all if left out")
    args = parser.parse_args()
    if args.part:
        PARTS[args.part](args.data, args.half)
        return
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
