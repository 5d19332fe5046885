"""`onlinegp demo`: four filters, from KLMS to KRLS-T, on a nonlinear channel that changes at once."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

import numpy as np

from onlinegp import KLMS, KRLST, QKLMS, BetaKLMS, Trace, run
from onlinegp.checks import Array
from onlinegp.cli.paths import Paths
from onlinegp.datasets import channel_switch
from onlinegp.kernels import RBF
from onlinegp.metrics import coverage, mse, to_db
from onlinegp.models import OnlineRegressor

ROWS, SWITCH, NOISE = 1500, 750, 0.01
SETTLED = 250  # rows after the start and after the switch that do not count: the filters are converging
PATHS = Paths(folders={"--out": lambda folder: [folder / "demo.png"]})


@dataclass
class Result:
    name: str
    trace: Trace
    seconds: float


def models() -> dict[str, OnlineRegressor]:
    """The four filters, with one kernel: cheapest first."""
    kernel = RBF(length_scale=3.0)
    return {
        "KLMS": KLMS(kernel, step=0.5),
        "QKLMS": QKLMS(kernel, step=0.5, radius=1.2),
        "beta-KLMS": BetaKLMS(kernel, beta="auto", noise=NOISE),
        "KRLS-T": KRLST(kernel, noise=NOISE, budget=100, forgetting=0.998),
    }


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--out", type=Path, default=Path("out"), metavar="DIR", help="where to write demo.png (out)")
    parser.add_argument("--seed", type=int, default=0, metavar="S", help="seed of the channel and the noise (0)")


def main(args: argparse.Namespace) -> int:
    X, y = channel_switch(ROWS, switch=SWITCH, noise=NOISE, seed=args.seed)
    results = stream(X, y)
    print(f"A nonlinear channel of 5 taps, {ROWS} samples, which changes at sample {SWITCH}. Each value is predicted,")
    print("then learned. Errors are mean squares in dB, log density in nats per sample.\n")
    print(table(y, results))
    args.out.mkdir(parents=True, exist_ok=True)
    path = args.out / "demo.png"
    draw(y, results).savefig(path, dpi=150)
    print(f"\nThe picture: {path}")
    return 0


def stream(X: Array, y: Array) -> list[Result]:
    """Run every model over the stream, with a progress bar on a terminal."""
    from tqdm import tqdm

    results = []
    for name, model in (bar := tqdm(models().items(), disable=None, leave=False, unit="filter")):
        bar.set_description(name)
        start = perf_counter()
        trace = run(model, X, y)
        results.append(Result(name, trace, perf_counter() - start))
    return results


def table(y: Array, results: list[Result]) -> str:
    """Return the table: what it costs, and what it gives."""
    before, after = slice(SETTLED, SWITCH), slice(SWITCH + SETTLED, ROWS)
    header = (
        f"{'filter':<10} {'centers':>7} {'before':>9} {'after':>9} {'log density':>12} "
        f"{'95% covers':>11} {'us/sample':>10}"
    )
    lines = [header, "-" * len(header)]
    for r in results:
        mean, std = r.trace.mean, r.trace.std
        errors = [to_db(mse(y[part], mean[part])) for part in (before, after)]
        settled = np.r_[before, after]
        lines.append(
            f"{r.name:<10} {r.trace.size[-1]:>7} {errors[0]:>6.1f} dB {errors[1]:>6.1f} dB "
            f"{r.trace.log_density[settled].mean():>12.2f} "
            f"{coverage(y[settled], mean[settled], std[settled]):>11.1%} {1e6 * r.seconds / len(y):>10.1f}"
        )
    return "\n".join(lines)


def draw(y: Array, results: list[Result]):
    """Return the figure: the band of the best filter around the switch, and everybody's error along the stream."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8.0, 6.4), layout="constrained")
    band, curves = figure.subplots(2, 1)
    best = results[-1]
    t = np.arange(SWITCH - 40, SWITCH + 80)
    lower, upper = best.trace.interval(0.95)
    band.fill_between(t, lower[t], upper[t], color="0.85", label="95% interval")
    band.plot(t, best.trace.mean[t], color="#0072B2", lw=1.2, label=f"{best.name}, one step ahead")
    band.plot(t, y[t], "k.", ms=5, label="channel output")
    band.set(ylabel="output", title="Prediction with its interval, around the change")
    colors = ["#E69F00", "#56B4E9", "#009E73", "#0072B2"]
    for r, color in zip(results, colors, strict=True):
        curves.plot(smoothed_db((y - r.trace.mean) ** 2), color=color, lw=1.4, label=r.name)
    curves.set(xlabel="sample", ylabel="squared error [dB]", title="Error along the stream (mean of 50 samples)")
    for axes in (band, curves):
        axes.axvline(SWITCH, color="0.4", ls="--", lw=0.8)
        axes.margins(x=0.01)
        axes.legend(loc="upper right", fontsize=8, ncols=2)
    band.set_ylim(band.get_ylim()[0], band.get_ylim()[1] * 1.35)
    return figure


def smoothed_db(squares: Array, width: int = 50) -> Array:
    """Return a trailing mean in dB."""
    total = np.cumsum(np.insert(squares, 0, 0.0))
    end = np.arange(1, len(squares) + 1)
    start = np.maximum(end - width, 0)
    return to_db((total[end] - total[start]) / (end - start))
