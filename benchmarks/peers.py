"""Other libraries on the same rows, where they are installed, in one run: error, log density, coverage and CPU time.

    pip install river scikit-learn statsforecast gpy
    python benchmarks/peers.py [FOLDER] [--rows 2000] [--page docs/comparisons.md] [--kafbox KAFBOX]

FOLDER may hold public tables (`streams/elevators.csv.gz`, `streams/cadata.csv.gz`, `streams/house8l.csv.gz`; the last
column is the target) and series (`series/m3_monthly.csv.gz`). Without it, the simulated streams are run, and the data
that come with river. Every model predicts a row before it learns it. Batch models are fitted again each time the number
of rows has grown by half; their time includes all fits.
Inputs and targets are standardized by the first 200 rows, for everybody. Defaults everywhere. KAFBOX is the folder of
that toolbox; GNU Octave runs it, and the time includes Octave's start.
--page writes the page of the documentation.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import os
import subprocess
import warnings
from collections.abc import Callable, Iterator
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time

import numpy as np

import onlinegp as ogp
from onlinegp.datasets import channel_switch, robot_arm
from onlinegp.predictions import Gaussian, Predictions

FIRST = 200  # rows that set the units, and that are not scored
TABLES = ("elevators", "cadata", "house8l")
GROWTH = 1.5  # a batch model is fitted again when the rows have grown by this factor
AUTO = "onlinegp Auto"
SEASON, STEPS, SERIES = 12, 18, 20
Moments = tuple[np.ndarray, np.ndarray | None]  # mean and standard deviation, None if a model has none
Filter = Callable[[np.ndarray, np.ndarray], Predictions | np.ndarray]  # distributions, or means alone
TITLE = {"error": "error", "density": "log density", "coverage": "coverage", "us": "CPU time [us per row]"}


def ours() -> Iterator[tuple[str, Filter]]:
    models = {
        AUTO: ogp.Auto(),
        "onlinegp Tuned(KRLST)": ogp.Tuned(ogp.KRLST(budget=100)),
        "onlinegp Tuned(LinearRLS)": ogp.Tuned(ogp.LinearRLS()),
        "onlinegp LinearRLS": ogp.LinearRLS(),
    }
    for name, model in models.items():
        yield name, lambda X, y, model=model: ogp.run(model.unfitted(), X, y, progress=False).predictions


def of_river() -> Iterator[tuple[str, Filter]]:
    from river import forest, linear_model, neighbors, preprocessing, tree

    def through(make):
        def run(X, y):
            model, out = make(), np.empty(len(y))
            for i, (x, target) in enumerate(zip(X.tolist(), y.tolist(), strict=True)):
                row = dict(enumerate(x))
                out[i] = model.predict_one(row) or 0.0
                model.learn_one(row, target)
            return out

        return run

    yield "river ARFRegressor", through(lambda: forest.ARFRegressor(seed=0))
    yield "river HoeffdingAdaptiveTree", through(lambda: tree.HoeffdingAdaptiveTreeRegressor(seed=0))
    yield "river KNNRegressor", through(lambda: preprocessing.StandardScaler() | neighbors.KNNRegressor())
    yield "river LinearRegression", through(lambda: preprocessing.StandardScaler() | linear_model.LinearRegression())


def refitted(fit: Callable[[np.ndarray, np.ndarray], Callable[[np.ndarray], Moments]], most: int) -> Filter:
    """Return a batch model that is fitted after 50, 75, 112, ... rows, to the last `most` rows."""

    def run(X: np.ndarray, y: np.ndarray) -> Predictions | np.ndarray:
        mean, std = np.zeros(len(y)), np.ones(len(y))
        n, spread = 50, True
        while n < len(y):
            predict = fit(X[max(0, n - most) : n], y[max(0, n - most) : n])
            part = slice(n, min(int(GROWTH * n), len(y)))
            mean[part], deviation = predict(X[part])
            spread = deviation is not None
            std[part] = deviation if deviation is not None else 1.0
            n = part.stop
        return Gaussian(mean, std) if spread else mean

    return run


def of_sklearn() -> Iterator[tuple[str, Filter]]:
    from sklearn.ensemble import HistGradientBoostingRegressor
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

    def gp(X, y):
        kernel = ConstantKernel() * RBF(np.ones(X.shape[1])) + WhiteKernel()
        model = GaussianProcessRegressor(kernel, normalize_y=True, random_state=0).fit(X, y)
        return lambda Z: model.predict(Z, return_std=True)

    def boosted(X, y):
        model = HistGradientBoostingRegressor(random_state=0).fit(X, y)
        return lambda Z: (model.predict(Z), None)

    yield "scikit-learn GP, at most 500 rows", refitted(gp, 500)
    yield "scikit-learn boosted trees, all rows", refitted(boosted, 10**9)


def of_GPy() -> Iterator[tuple[str, Filter]]:  # the name of the module
    import GPy

    def sparse(X, y):
        kernel = GPy.kern.RBF(X.shape[1], ARD=True)
        model = GPy.models.SparseGPRegression(X, y[:, None], kernel, num_inducing=100)
        model.optimize(max_iters=200)

        def predict(Z):
            mean, variance = model.predict(Z)
            return mean[:, 0], np.sqrt(np.maximum(variance[:, 0], 1e-12))

        return predict

    yield "GPy sparse GP, 100 inducing points", refitted(sparse, 2000)


KAFBOX = ("klms", "qklms", "knlms", "krls", "krlst")
OCTAVE = """addpath(genpath('{toolbox}')); X = load('X.txt'); y = load('y.txt'); f = {name}; mean = zeros(size(y));
for i = 1:rows(X) mean(i) = f.evaluate(X(i, :)); f.train(X(i, :), y(i)); end
save('-ascii', '-double', 'mean.txt', 'mean');"""


def of_kafbox(toolbox: Path) -> Iterator[tuple[str, Filter]]:
    def through(name):
        def run(X, y):
            with TemporaryDirectory() as folder:
                np.savetxt(Path(folder, "X.txt"), X)
                np.savetxt(Path(folder, "y.txt"), y)
                script = OCTAVE.format(toolbox=toolbox.resolve(), name=name)
                subprocess.run(["octave-cli", "--quiet", "--eval", script], cwd=folder, check=True)
                return np.loadtxt(Path(folder, "mean.txt"))

        return run

    for name in KAFBOX:
        yield f"KAFBOX {name}", through(name)


LIBRARIES = {"onlinegp": ours, "river": of_river, "sklearn": of_sklearn, "GPy": of_GPy}


def streams(folder: Path | None, rows: int) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    yield "robot arm (simulated)", *robot_arm(rows, seed=0)
    yield "channel that switches (simulated)", *channel_switch(rows, switch=rows // 2, seed=0)[:2]
    for name in TABLES if folder is not None else ():
        path = folder / "streams" / f"{name}.csv.gz"
        if path.exists():
            values = np.genfromtxt(path, delimiter=",", skip_header=1, max_rows=rows)
            yield f"{name} (public table)", values[:, :-1], values[:, -1]
    yield from streams_of_river(rows)


def streams_of_river(rows: int) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Yield data that come with river: polls, weights of chickens, and a simulation that changes twice."""
    try:
        from river import datasets
    except ImportError:
        return
    drifting = datasets.synth.FriedmanDrift("gra", position=(rows // 3, 2 * rows // 3), seed=0)
    named = {
        "polls (TrumpApproval of river)": datasets.TrumpApproval(),
        "chickens (ChickWeights of river)": datasets.ChickWeights(),
        "gradual drift (FriedmanDrift of river)": drifting,
    }
    for name, stream in named.items():
        taken = list(stream.take(rows))
        yield name, np.array([list(x.values()) for x, _ in taken], dtype=float), np.array([y for _, y in taken], float)


def scores(y: np.ndarray, predicted: Predictions | np.ndarray) -> dict[str, float]:
    """Return the figures of the rows after the first ones: error is the RMSE over the spread of y."""
    y = y[FIRST:]
    if isinstance(predicted, np.ndarray):
        return {"error": _error(y, predicted[FIRST:])}
    predicted = predicted.rows(slice(FIRST, None))
    lower, upper = predicted.interval(0.95)
    return {
        "error": _error(y, predicted.mean),
        "density": float(np.mean(predicted.log_density(y))),
        "coverage": float(np.mean((lower <= y) & (y <= upper))),
    }


def _error(y: np.ndarray, mean: np.ndarray) -> float:
    return float(np.sqrt(np.mean((y - mean) ** 2)) / y.std())


def spent() -> float:
    """Return the CPU seconds of this process and, on Linux, of its children: `Auto` and `Tuned` tune in one."""
    seconds = process_time() + sum(os.times()[2:4])  # and of children that have ended
    for children in Path("/proc/self/task").glob("*/children"):
        for pid in children.read_text("utf-8").split():
            fields = Path("/proc", pid, "stat").read_text("utf-8").rpartition(")")[2].split()
            seconds += (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")  # user and system time
    return seconds


def peers_at_hand(toolbox: Path | None) -> list[tuple[str, Filter]]:
    """Return the models of every library that can be imported, and of KAFBOX if its folder is given."""
    found = [] if toolbox is None else list(of_kafbox(toolbox))
    for module, library in reversed(LIBRARIES.items()):
        try:
            import_module(module)
        except ImportError:
            print(f"{module}: not installed")
            continue
        found = [*library(), *found]
    return found


def table(folder: Path | None, rows: int, toolbox: Path | None = None) -> list[dict]:
    """Run every peer on every stream, print a line for each, return the figures."""
    found, peers = [], peers_at_hand(toolbox)
    for stream, X, y in streams(folder, rows):
        X = (X - X[:FIRST].mean(0)) / np.maximum(X[:FIRST].std(0), 1e-9)
        y = (y - y[:FIRST].mean()) / y[:FIRST].std()
        for name, run in peers:
            start = spent()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                figures = scores(y, run(X, y))
            figures["us"] = 1e6 * (spent() - start) / len(y)
            found.append({"stream": stream, "peer": name, **figures})
            print(f"{stream:35} {name:40} " + " ".join(f"{k} {v:.3g}" for k, v in figures.items()), flush=True)
    return found


def forecasts(path: Path) -> list[dict]:
    """Return the mean absolute scaled error of forecasts of monthly series, for us and for statsforecast."""
    from statsforecast.models import AutoETS, AutoTheta, SeasonalNaive

    series: dict[str, list[float]] = {}
    with gzip.open(path, "rt") as file:
        for row in csv.DictReader(file):
            series.setdefault(row["series"], []).append(float(row["y"]))
    peers = {
        "onlinegp Forecaster": lambda y: ogp.Forecaster().fit(y).forecast(STEPS).mean,
        "statsforecast AutoETS": lambda y: AutoETS(season_length=SEASON).forecast(y, STEPS)["mean"],
        "statsforecast AutoTheta": lambda y: AutoTheta(season_length=SEASON).forecast(y, STEPS)["mean"],
        "statsforecast SeasonalNaive": lambda y: SeasonalNaive(SEASON).forecast(y, STEPS)["mean"],
    }
    found = []
    for name, forecast in peers.items():
        start, errors = spent(), []
        for values in list(series.values())[:SERIES]:
            y, future = np.array(values[:-STEPS]), np.array(values[-STEPS:])
            scale = np.mean(np.abs(y[SEASON:] - y[:-SEASON]))
            errors.append(np.mean(np.abs(np.ravel(forecast(y)) - future)) / scale)
        seconds = (spent() - start) / len(errors)
        found.append({"peer": name, "MASE": float(np.mean(errors)), "s": seconds})
        print(f"{'M3 monthly':35} {name:40} MASE {found[-1]['MASE']:.3g} s {seconds:.3g}", flush=True)
    return found


PAGE = """# How it compares

After this page you know how onlinegp compares with other libraries, including where it is worse. `benchmarks/peers.py
--page` writes this page, and you can run it again. Everything has its default parameters; nearest neighbors and linear
regression of river follow its `StandardScaler`. Every model predicts a row before it learns it. Batch models are fitted
again each time the number of rows has grown by half. The data are standardized with the mean and standard deviation of
the first {first} rows, which are not scored. Each stream has at most {rows:,} rows.
Libraries: {versions}.

Error is the root mean squared error divided by the standard deviation of y: always predicting the mean gives 1. Log
density scores the mean and the spread together; larger is better. Log density and the coverage of the 95% intervals are
computed from the distribution that a model predicts, which is normal for other libraries. A dash means that the model
predicts no spread. Bold is the best of a column. The time is CPU time on a busy server, to predict and learn a row, all
fits included. `Auto` and `Tuned` spend most of it on tuning in the first rows, so that longer streams cost less per
row.

"""


def summary(found: list[dict]) -> str:
    """Return a table of the best models of every stream, with the place of `Auto` in each column."""
    text = (
        "| stream | smallest error | largest log density | place of `Auto`: error, density, time |\n|---|---|---|---|\n"
    )
    for stream in dict.fromkeys(one["stream"] for one in found):
        lines = [one for one in found if one["stream"] == stream]
        order = [
            sorted(lines, key=lambda one: one["error"]),
            sorted((one for one in lines if "density" in one), key=lambda one: -one["density"]),
            sorted(lines, key=lambda one: one["us"]),
        ]
        places = [f"{[one['peer'] for one in column].index(AUTO) + 1} of {len(column)}" for column in order]
        text += f"| {stream} | {order[0][0]['peer']} | {order[1][0]['peer']} | {', '.join(places)} |\n"
    return text + "\n"


def versions() -> str:
    """Return the versions of the libraries that are installed."""
    found = []
    for name in ("onlinegp", "river", "scikit-learn", "GPy", "statsforecast"):
        try:
            found.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            continue
    return ", ".join(found)


def page(found: list[dict], monthly: list[dict], rows: int) -> str:
    """Return the page of the documentation."""
    text = PAGE.format(first=FIRST, rows=rows, versions=versions()) + summary(found)
    for stream in dict.fromkeys(one["stream"] for one in found):
        lines = [one for one in found if one["stream"] == stream]
        text += (
            f"## {stream[0].upper()}{stream[1:]}\n\n| model | {' | '.join(TITLE.values())} |\n|---|---|---|---|---|\n"
        )
        best = {
            "error": min(one["error"] for one in lines),
            "density": max(one.get("density", -np.inf) for one in lines),
            "us": min(one["us"] for one in lines),
        }
        for one in lines:
            cells = [_cell(one.get(name), best.get(name)) for name in TITLE]
            text += f"| {one['peer']} | {' | '.join(cells)} |\n"
        text += "\n"
    if monthly:
        text += f"## Forecasts of M3's monthly series\n\nThe first {SERIES} series, {STEPS} months ahead. "
        text += "statsforecast is given the season; onlinegp is not.\n\n"
        text += "| model | MASE | CPU time [s per series] |\n|---|---|---|\n"
        best_error, best_time = min(one["MASE"] for one in monthly), min(one["s"] for one in monthly)
        for one in monthly:
            text += f"| {one['peer']} | {_cell(one['MASE'], best_error)} | {_cell(one['s'], best_time)} |\n"
        text += "\n"
    return text + CLOSING


CLOSING = """For KAFBOX, [its page](coming_from/kafbox.md) has errors and times of every algorithm. Forecasts of more
collections are in [the guide](guide/forecasting.md).
"""


def _cell(value: float | None, best: float | None) -> str:
    if value is None:
        return "-"
    text = f"{value:.3g}" if abs(value) < 1000.0 else f"{float(format(value, '.3g')):,.0f}"
    return f"**{text}**" if value == best else text


def peers() -> list[dict]:
    """Run everybody on the simulated streams: what `make bench` shows."""
    return table(None, 1000)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--rows", type=int, default=2000)
    parser.add_argument("--page", type=Path, help="write the page of the documentation")
    parser.add_argument("--kafbox", type=Path, help="the folder of KAFBOX, which GNU Octave runs")
    args = parser.parse_args()
    found = table(args.folder, args.rows, args.kafbox)
    series = None if args.folder is None else args.folder / "series" / "m3_monthly.csv.gz"
    monthly = forecasts(series) if series is not None and series.exists() else []
    if args.page is not None:
        args.page.write_text(page(found, monthly, args.rows), "utf-8")


if __name__ == "__main__":
    main()
