"""Measure onlinegp against NumPy and against the machine: `make bench`.

All figures are ratios within one run: the contenders take turns, and the least time of several repeats counts.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from time import perf_counter

import limits
import numpy as np
import trees
from cases import CASES, Case
from interrupts import interrupts, lines
from local import local, residual

import onlinegp as ogp
from fleet import fleet


class Least:
    """The least time that each of several actions took."""

    def __init__(self) -> None:
        self.seconds: dict[object, float] = {}

    def time(self, name: object, action: Callable[[], object]) -> None:
        start = perf_counter()
        action()
        self.keep(name, perf_counter() - start)

    def keep(self, name: object, seconds: float) -> None:
        self.seconds[name] = min(self.seconds.get(name, np.inf), seconds)

    def after(self, name: str, rows: int) -> float:
        """Seconds a sample of a run over a warm-up and so many rows, less those of the warm-up alone."""
        return (self.seconds.get((name, "all"), np.inf) - self.seconds.get((name, "warm-up"), 0.0)) / rows


def engine_seconds(case: Case, engine: str) -> tuple[float, float]:
    """Seconds a sample, and the mean number of centers."""
    X, y = case.stream()
    model = case.model().set_params(engine=engine)
    if case.warm:
        model.partial_fit(X[: case.warm], y[: case.warm])
    start = perf_counter()
    trace = ogp.run(model, X[case.warm :], y[case.warm :])
    return (perf_counter() - start) / case.rows, float(trace.size.mean())


def measure(case: Case, engine: str, repeats: int) -> dict:
    """Interleave the contenders, and keep the best of each."""
    X, y = case.stream()
    rows = {"naive": min(case.rows, case.naive_rows or case.rows), "tuned": min(case.rows, 5000)}
    least, centers = Least(), 0.0
    for i in range(repeats):
        for name, twin in (("naive", case.naive), ("tuned", case.tuned)):
            if twin is None or (name == "naive" and i >= 3):  # slow, and known well enough
                continue
            end = case.warm + rows[name]
            least.time((name, "all"), lambda twin=twin, end=end: twin(X[:end], y[:end]))
            if case.warm:
                least.time((name, "warm-up"), lambda twin=twin: twin(X[: case.warm], y[: case.warm]))
        time, centers = engine_seconds(case, engine)
        least.keep("onlinegp", time)
    best = {name: least.after(name, rows[name]) for name in rows} | {"onlinegp": least.seconds["onlinegp"]}
    limit = case.limit(centers)
    return {
        "case": case.name,
        "centers": centers,
        "us": {name: 1e6 * value for name, value in best.items()} | {"limit": 1e6 * limit},
        "bound": case.bound,
        "times naive": best["naive"] / best["onlinegp"],  # infinite without a twin
        "times tuned": best["tuned"] / best["onlinegp"],
        "share of limit": limit / best["onlinegp"],
        "targets": case.targets,
    }


def one_call(engine: str, repeats: int) -> dict:
    """One call for one sample: KLMS with 200 centers, through the estimator's own method."""
    from baselines import klms_naive

    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 8))
    y = np.sin(X[:, 0])
    least = Least()
    for i in range(20 * repeats):
        model = ogp.KLMS(step=0.5, engine=engine).partial_fit(X[:200], y[:200])
        samples = list(zip(X[200:], y[200:].tolist(), strict=True))
        learn_one = model.learn_one
        start = perf_counter()
        for x, target in samples:
            learn_one(x, target)
        least.keep("onlinegp", (perf_counter() - start) / len(samples))
        if i % 10 == 0:
            least.time(("naive", "all"), lambda: klms_naive(X, y, step=0.5))
            least.time(("naive", "warm-up"), lambda: klms_naive(X[:200], y[:200], step=0.5))
    best, naive = least.seconds["onlinegp"], least.after("naive", 100)
    return {
        "case": "one call for one sample, KLMS, 200 centers",
        "centers": 250.0,
        "us": {"naive": 1e6 * naive, "onlinegp": 1e6 * best},
        "bound": "call",
        "times naive": naive / best,
        "targets": (50, None, None),
    }


def table(results: list[dict]) -> str:
    header = f"{'case':<48} {'naive':>9} {'tuned':>8} {'onlinegp':>9} {'x naive':>8} {'x tuned':>8} {'of limit':>18}"
    lines = [header, "-" * len(header)]
    for r in results:
        us = r["us"]
        share = f"{r['share of limit']:>7.0%} of {r['bound']}" if "share of limit" in r else ""
        lines.append(
            f"{r['case']:<48} {_cell(us.get('naive'), 9)} {_cell(us.get('tuned'), 8)} {us['onlinegp']:>9.2f} "
            f"{_cell(r.get('times naive'), 8)} {_cell(r.get('times tuned'), 8)} {share:>18}"
        )
    return "\n".join(lines)


def _cell(value: float | None, width: int) -> str:
    return f"{value:>{width}.1f}" if value is not None and np.isfinite(value) else " " * width


def picture(results: list[dict], path: Path) -> None:
    """Draw microseconds per sample, a bar per contender."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8.0, 0.5 * len(results) + 1.2), layout="constrained")
    axes = figure.subplots()
    contenders = {"naive": "0.75", "tuned": "#E69F00", "onlinegp": "#0072B2", "limit": "#009E73"}
    for i, (name, color) in enumerate(contenders.items()):
        rows = [(j, r["us"][name]) for j, r in enumerate(results) if np.isfinite(r["us"].get(name, np.nan))]
        where, values = np.array([j for j, _ in rows]), [v for _, v in rows]
        label = {"naive": "NumPy, naive", "tuned": "NumPy, tuned", "limit": "hardware limit"}.get(name, name)
        axes.barh(where + 0.2 * (i - 1.5), values, height=0.18, color=color, label=label)
    axes.set_yticks(range(len(results)), [r["case"] for r in results])
    axes.set_ylim(len(results) - 0.4, -0.6)
    axes.set(xscale="log", xlabel="microseconds per sample (float64; d = 8 unless said)")
    figure.legend(fontsize=8, ncols=4, loc="outside upper center")
    figure.savefig(path, dpi=130)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("out"), help="where to write bench.json and bench.png")
    parser.add_argument("--engine", default="auto", help="auto, native or python")
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--peers", action="store_true", help="also River, scikit-learn and krls, where installed")
    parser.add_argument("--only", default="", help="only cases whose name contains this")
    args = parser.parse_args()
    machine = limits.summary()
    print("\n".join(f"{name:<24} {value:8.1f}" for name, value in machine.items()), "\n")

    from tqdm import tqdm

    results = []
    for case in tqdm([c for c in CASES if args.only in c.name], disable=None, leave=False):
        results.append(measure(case, args.engine, args.repeats))
    if args.only in "one call":
        results.append(one_call(args.engine, args.repeats))
    if args.only in "fleet":
        results += fleet(args.repeats)
    if args.only in "LocalGP":
        results += local(args.repeats)
    if args.only in "ResidualGP":
        results += residual(args.repeats)
    if results:
        print(table(results))
    for r in results:
        if r.get("speed-up", 1.0) != 1.0:
            print(f"\n{r['case']}: {r['speed-up']:.2f} times one thread; memory alone {r['speed-up of memory']:.2f}.")
    for r in results:
        if r.get("times LocalGP", 1.0) != 1.0:
            print(f"\n{r['case']}: {r['times LocalGP']:.2f} times LocalGP.")
    report = {"machine": machine, "engine": ogp.engine.info(), "results": results}
    if args.only in "trees":
        report["trees"] = trees.trees(args.repeats)
        print("\n" + trees.lines(report["trees"]))
    if args.only in "interrupts":
        report["interrupts"] = interrupts(args.repeats)
        print("\n" + lines(report["interrupts"]))
    if args.peers:
        from peers import peers

        report["peers"] = peers()
    args.out.mkdir(parents=True, exist_ok=True)
    (args.out / "bench.json").write_text(json.dumps(report, indent=1))
    written = str(args.out / "bench.json")
    if results:
        picture(results, args.out / "bench.png")
        written += ", bench.png"
    print(f"\nMicroseconds a sample; least of {args.repeats} interleaved repeats. {written}")


if __name__ == "__main__":
    main()
