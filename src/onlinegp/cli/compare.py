"""`onlinegp compare`: the same stream through several models, in parallel."""

from __future__ import annotations

import argparse
import io
import json
import os
import tempfile
from concurrent.futures import as_completed
from dataclasses import dataclass
from pathlib import Path
from time import process_time
from typing import Any

from onlinegp.batch.choice import BUDGET, recommend
from onlinegp.batch.tuning import Hyperparameters
from onlinegp.checks import count
from onlinegp.cli.options import (
    EXIT_CODES,
    add_model,
    add_source,
    chosen_columns,
    given_parameters,
    imported,
    opened,
    say,
    source_of,
)
from onlinegp.cli.parsing import parse_model, parse_models
from onlinegp.cli.paths import Paths
from onlinegp.files.atomic import write_atomically
from onlinegp.models.base import OnlineRegressor
from onlinegp.processes import worker_pool
from onlinegp.streams.errors import printable
from onlinegp.streams.reading.raw import file_of
from onlinegp.streams.running.advance import size_of
from onlinegp.streams.running.job import Job
from onlinegp.streams.running.prepare import Scaling, first_rows, hyperparameters, teach, tuning_density, wrapped
from onlinegp.streams.running.registry import algorithms
from onlinegp.streams.running.score import Curves
from onlinegp.streams.running.warm_up import WarmUp
from onlinegp.streams.writing.sinks import NoSink

EPILOG = f"""examples:
  onlinegp compare data.csv
  onlinegp compare series.txt --lags 10 --models 'klms,qklms,krlst,krlst(budget=50)' --out compare.png

All models share the kernel and the noise, tuned on the first rows. The table is ranked by the mean log density of the
rows after those, which rewards small errors and honest intervals alike; --by error ranks by the error alone. Cost is
processor time per row, reading included.

{EXIT_CODES}"""
PATHS = Paths(reads=("SOURCE",), replaces=("--out", "--json"), pipes=("SOURCE",))


@dataclass
class Result:
    """How one model fared: its figures, its curves, or what went wrong."""

    name: str
    figures: dict[str, Any]
    curves: Curves | None
    seconds: float = 0.0
    wrong: str = ""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog, parser.formatter_class = EPILOG, argparse.RawDescriptionHelpFormatter
    add_source(parser)
    add_model(parser)
    parser.add_argument("--models", metavar="A,B", help="see `onlinegp models` (all whose dictionary is bounded)")
    parser.add_argument("--by", choices=("density", "error"), default="density", help="what to rank by (density)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, metavar="N", help="processes (one a core)")
    parser.add_argument(
        "--out", metavar="FILE", help="where to draw error over time and cost against error, .png or .svg"
    )
    parser.add_argument("--json", metavar="FILE", help="the table for programs")


def main(args: argparse.Namespace) -> int:
    count(jobs=args.jobs)
    if args.out:
        _check_picture(args.out)
    with tempfile.TemporaryDirectory() as folder:
        args.source = file_of(args.source, Path(folder) / "input")  # every model reads it
        results = compared(args)
    good = sorted((r for r in results if not r.wrong), key=lambda r: _rank(r, args.by))
    print(table(good))
    for result in results:
        if result.wrong:
            print(f"{result.name}: {printable(result.wrong)}")
    if not good:
        raise ValueError("no model came through. Use a larger --noise, or another --kernel.")
    what = "log density" if args.by == "density" else "error"
    print(f"\nRecommended: {good[0].name}, the best {what}.")
    if args.json:
        table_of = [{"model": r.name} | r.figures for r in good]
        write_atomically(args.json, [json.dumps(table_of, indent=2).encode() + b"\n"])
    if args.out:
        picture = io.BytesIO()
        draw(good).savefig(picture, format=Path(args.out).suffix[1:], dpi=150)
        write_atomically(args.out, [picture.getvalue()])
        say(f"plot: {args.out}")
    return 0


def compared(args: argparse.Namespace) -> list[Result]:
    """Tune once, then run every model in a process of its own."""
    source = opened(args)
    columns, lags = chosen_columns(args, source)
    source.select(columns)
    rows = args.tune or max(20 + 2 * lags, min(1000, source.rows_at_most(5000) // 5))
    X, y = first_rows(source, WarmUp(rows, lags=lags, horizon=args.horizon, say=say)).data()
    source.close()
    given, scaling = given_parameters(args), Scaling.of(X, y)
    Z, t = scaling(X, y)
    tuned = hyperparameters(Z, t, given)
    say(f"{columns.target}: tuned on {len(y)} rows, the rest is scored")
    bounded = [one.name for one in algorithms().values() if one.estimator.bounded]
    names = parse_models(args.models) if args.models else bounded
    if not names:
        raise ValueError(f"--models must name at least one model, got {args.models!r}. See `onlinegp models`.")
    for name in names:
        parse_model(name)  # refuses a wrong one before any work
    with worker_pool(min(args.jobs, len(names))) as pool:
        waiting = [pool.submit(one_model, args, name, tuned, Z, t, scaling, rows, lags, given) for name in names]
        return [future.result() for future in _shown(as_completed(waiting), len(waiting))]


def _shown(futures: Any, total: int) -> Any:
    from tqdm import tqdm

    return tqdm(futures, total=total, disable=None, leave=False, unit=" models")


def one_model(
    args: argparse.Namespace,
    name: str,
    tuned: list[Hyperparameters],
    Z: Any,
    t: Any,
    scaling: Scaling,
    rows: int,
    lags: int,
    given: dict[str, Any],
) -> Result:
    """Put the stream through one model; runs in its own process."""
    try:
        for module in args.imports:
            imported(module)
        choice = parse_model(name)
        own = {key: value for key, value in given.items() if key in choice.algorithm.parameters} | choice.given
        limit, candidates = own.get("budget", BUDGET), [choice.algorithm.estimator]

        def density(model: Any) -> float:
            return tuning_density(model, Z, t, horizon=args.horizon, robust=None)

        (trial,) = recommend(tuned, density, candidates=candidates, budget=limit, given=own)
        source = source_of(args)
        source.select(chosen_columns(args, source)[0])

        def prepare(warm: WarmUp) -> OnlineRegressor:
            model = wrapped(trial.build(), scaling, lags=lags, horizon=args.horizon)
            teach(model, *warm.rows_for_learning())
            return model

        warm = WarmUp(rows, lags=lags, horizon=args.horizon)
        job = Job(source, NoSink(), warm_up=warm, prepare=prepare, curves=Curves())
        began = process_time()
        job.run()
        seconds = process_time() - began
        figures = job.score.summary() | {"centers": size_of(job.model), "us_per_row": 1e6 * seconds / max(1, job.rows)}
        return Result(name, figures, job.curves, seconds)
    except (ValueError, FloatingPointError) as error:
        return Result(name, {}, None, wrong=str(error))


def _rank(result: Result, by: str) -> float:
    value = result.figures["log_density"] if by == "density" else result.figures["rmse"]
    if value is None:
        return float("inf")
    return -value if by == "density" else value


def table(results: list[Result]) -> str:
    """Return the ranked table."""
    width = max([5, *(len(r.name) for r in results)])
    titles = zip(
        ("nMSE", "RMSE", "log density", "95% covers", "centers", "us/row"), (10, 10, 12, 11, 8, 9), strict=True
    )
    header = " ".join([f"{'model':<{width}}", *(f"{title:>{room}}" for title, room in titles)])
    lines = [header, "-" * len(header)]
    for r in results:
        f = r.figures
        if not f["scored"]:
            lines.append(f"{r.name:<{width}} nothing was scored: the stream is shorter than --tune")
            continue
        nmse = "-" if f["nmse_db"] is None else f"{f['nmse_db']:.2f} dB"
        lines.append(
            f"{r.name:<{width}} {nmse:>10} {f['rmse']:>10.4g} {f['log_density']:>12.3f} {f['coverage']:>11.1%} "
            f"{f['centers']:>8} {f['us_per_row']:>9.1f}"
        )
    return "\n".join(lines)


def _check_picture(path: str) -> None:
    """Refuse a picture that could not be drawn, before the work and not after it."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise ValueError("--out needs matplotlib. Install it with: pip install 'onlinegp[plots]'") from None
    if Path(path).suffix[1:].lower() not in Figure().canvas.get_supported_filetypes():
        raise ValueError(f"--out must end in .png or .svg, got {path}.")


def draw(results: list[Result]) -> Any:
    """Return the figure: everybody's error along the stream, and what a row costs against the error."""
    from matplotlib.figure import Figure

    from onlinegp.streams.writing.report import error_curve

    figure = Figure(figsize=(10.0, 4.6), layout="constrained")
    over_time, cost = figure.subplots(1, 2, width_ratios=[3, 2])
    for i, r in enumerate(results):
        assert r.curves is not None
        rows, error = error_curve(r.curves)
        color, best, point = f"C{i % 10}", i == 0, (r.figures["us_per_row"], r.figures["nmse_db"])
        over_time.plot(rows, error, color=color, lw=2.0 if best else 1.0, label=r.name, zorder=10 - i)
        if point[1] is not None:
            cost.plot(*point, "o", color=color)
            cost.annotate(r.name, point, xytext=(5, 3), textcoords="offset points", fontsize=8)
    over_time.set(xlabel="row", ylabel="mean squared error [dB]", title="Error along the stream")
    over_time.legend(fontsize=8, ncols=2)
    cost.set(xscale="log", xlabel="processor time per row [us]", ylabel="nMSE [dB]", title="Cost against error")
    cost.margins(x=0.25)
    return figure
