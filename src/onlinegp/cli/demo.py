"""`onlinegp demo`: the filters of the paper and Auto on a nonlinear channel that changes abruptly."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onlinegp import KLMS, KRLST, QKLMS, Auto, BetaKLMS, Calibrated, run
from onlinegp.checks import Array
from onlinegp.cli.paths import Paths
from onlinegp.datasets import channel_switch
from onlinegp.kernels import RBF
from onlinegp.metrics import mse, to_db
from onlinegp.models import OnlineRegressor
from onlinegp.progress import shown
from onlinegp.trace import Trace

ROWS, SWITCH, NOISE = 1500, 750, 0.01
FORGETTING = 0.998  # of KRLS-T, for a memory of about 500 samples
SETTLED = 250  # rows after the start and the switch that are not scored, because the filters converge
MEANING = """
The filters of the KLMS family are cheap, but their intervals are too wide: 100% is as wrong as 90%. KRLS-T tracks its
posterior; with Calibrated, its intervals contain about as many values as they should. Auto knows neither the kernel,
nor the noise, nor that the channel changes: it scales and tunes itself, which takes most of its time."""
PATHS = Paths(folders={"--out": lambda folder: [folder / "demo.png"]})


@dataclass
class Result:
    name: str
    trace: Trace
    seconds: float


def models() -> dict[str, OnlineRegressor]:
    """Return the filters of the paper with the same kernel, the cheapest first, and Auto."""
    kernel = RBF(length_scale=3.0)
    krlst = KRLST(kernel, noise=NOISE, budget=100, forgetting=FORGETTING)
    return {
        "KLMS": KLMS(kernel, step=0.5),
        "QKLMS": QKLMS(kernel, step=0.5, radius=1.2),
        "beta-KLMS": BetaKLMS(kernel, beta="auto", noise=NOISE),
        "KRLS-T": krlst,
        "KRLS-T, calibrated": Calibrated(krlst),
        "Auto": Auto(),
    }


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--out", type=Path, default=Path("out"), metavar="DIR", help="where to write demo.png (out)")
    parser.add_argument("--seed", type=int, default=0, metavar="S", help="seed of the channel and the noise (0)")


def main(args: argparse.Namespace) -> int:
    X, y = channel_switch(ROWS, switch=SWITCH, noise=NOISE, seed=args.seed)
    results = stream(X, y)
    print(f"A nonlinear channel of 5 taps, {ROWS} samples, which changes at sample {SWITCH}. Each value is predicted,")
    print("then learned. Errors are mean squares in dB, log density in nats per sample (larger is better).\n")
    print(table(y, results))
    print(MEANING)
    args.out.mkdir(parents=True, exist_ok=True)
    path = args.out / "demo.png"
    draw(y, results).savefig(path, dpi=150)
    print(f"\nThe picture is {path}. The top shows the predictions of Auto around the change. The band should")
    print("contain 95 of 100 observed values. The bottom shows how fast each error decreases after the change.")
    print("\nTry your own data next (this predicts the last column from the others):")
    print("  onlinegp run data.csv --out predictions.csv --report report.html")
    return 0


def stream(X: Array, y: Array) -> list[Result]:
    """Run every model over the stream, with a progress bar on a terminal."""
    results, known = [], models()
    for name in shown(known, len(known), "models"):
        run(models()[name], X[:10], y[:10], progress=False)  # loads code before the time is measured
        start = perf_counter()
        trace = run(known[name], X, y, progress=False)
        results.append(Result(name, trace, perf_counter() - start))
    return results


def table(y: Array, results: list[Result]) -> str:
    """Return a table of errors, log densities, coverage and cost."""
    before, after = slice(SETTLED, SWITCH), slice(SWITCH + SETTLED, ROWS)
    header = f"{'model':<18} {'before':>9} {'after':>9} {'log density':>12} {'95% contains':>13} {'us/sample':>10}"
    lines = [header, "-" * len(header)]
    for r in results:
        errors = [to_db(mse(y[part], r.trace.mean[part])) for part in (before, after)]
        settled = np.r_[before, after]
        lines.append(
            f"{r.name:<18} {errors[0]:>6.1f} dB {errors[1]:>6.1f} dB {r.trace.log_density[settled].mean():>12.2f} "
            f"{inside(y, r.trace)[settled].mean():>13.1%} {1e6 * r.seconds / len(y):>10.1f}"
        )
    return "\n".join(lines)


def inside(y: Array, trace: Trace) -> NDArray[np.bool_]:
    """Return whether each y lies in its 95% interval."""
    lower, upper = trace.interval(0.95)
    return (lower <= y) & (y <= upper)


def draw(y: Array, results: list[Result]) -> Any:
    """Return a figure with the band of Auto around the switch, and the error of each model along the stream."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8.0, 6.4), layout="constrained")
    band, curves = figure.subplots(2, 1)
    best = results[-1]
    t = np.arange(SWITCH - 40, SWITCH + 80)
    lower, upper = best.trace.interval(0.95)
    band.fill_between(t, lower[t], upper[t], color="0.85", label="95% interval")
    band.plot(t, best.trace.mean[t], color="#D55E00", lw=1.2, label=f"{best.name}, one step ahead")
    band.plot(t, y[t], "k.", ms=5, label="observed")
    band.set(ylabel="output", title="Predictions and 95% intervals around the change")
    colors = {"KLMS": "#E69F00", "QKLMS": "#56B4E9", "beta-KLMS": "#009E73", "KRLS-T": "#0072B2", "Auto": "#D55E00"}
    for r, color in ((r, colors[r.name]) for r in results if r.name in colors):
        curves.plot(smoothed_db((y - r.trace.mean) ** 2), color=color, lw=1.4, label=r.name)
    curves.set(
        xlabel="sample",
        ylabel="squared error [dB]",
        title="Error along the stream (mean of 50 samples); dashed: the change",
    )
    for axes in (band, curves):
        axes.axvline(SWITCH, color="0.4", ls="--", lw=0.8)
        axes.margins(x=0.01)
        axes.legend(loc="upper right", fontsize=8, ncols=2)
    band.set_ylim(band.get_ylim()[0], band.get_ylim()[1] * 1.35)
    return figure


def smoothed_db(squares: Array) -> Array:
    """Return the mean of the last 50 values in dB."""
    total = np.cumsum(np.insert(squares, 0, 0.0))
    end = np.arange(1, len(squares) + 1)
    start = np.maximum(end - 50, 0)
    return to_db((total[end] - total[start]) / (end - start))
