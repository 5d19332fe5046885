"""`onlinegp compare`: run several models on the same stream, in parallel, within a time limit."""

from __future__ import annotations

import argparse
import json
import os
import tempfile
from functools import partial
from pathlib import Path
from time import monotonic
from typing import Any

from onlinegp.batch.parameter_search import EFFORT
from onlinegp.checks import count, positive
from onlinegp.cli.compare_runs import compare_over_runs, save_picture
from onlinegp.cli.help import add_renamed
from onlinegp.cli.options import (
    EXIT_CODES,
    add_model,
    add_source,
    chosen_columns,
    given_parameters,
    open_input,
    say,
    source_of,
)
from onlinegp.cli.parsing import parse_model, parse_models
from onlinegp.cli.paths import Paths
from onlinegp.comparing.compare import compare
from onlinegp.comparing.entrants import Entrant
from onlinegp.comparing.figures import label, plain
from onlinegp.comparing.ranking import Ranking, Result
from onlinegp.comparing.time_limit import LOOK, OneStream
from onlinegp.files.atomic import write_atomically
from onlinegp.models.families import OTHER, family
from onlinegp.plots import COLORS, STYLES
from onlinegp.streams.errors import printable
from onlinegp.streams.reading.raw import file_of
from onlinegp.streams.reading.source import Columns, Source
from onlinegp.streams.running.algorithms import algorithms
from onlinegp.streams.running.first_rows import FirstRows, with_lags
from onlinegp.streams.running.requested_model import first_rows
from onlinegp.streams.writing.report import error_curve

EPILOG = f"""examples:
  onlinegp compare data.csv
  onlinegp compare series.txt --lags 10 --models 'klms,qklms,krlst,krlst(budget=50)' --out compare.png --time 300
  onlinegp compare data.csv --runs 20 --rank error --latex table.tex --csv table.csv --out curves.svg

Each model is tuned separately on the first rows. Starting from the most likely kernel and noise, the search tries the
values that its class declares, such as step, length scale and radius. A trial predicts each row of the second half
before it is learned. A search uses at most {EFFORT} rows; the table shows how many. auto, the default of `onlinegp
run`, tunes itself on the same rows.

The other rows are scored. The ranking uses the mean log density, which rewards both small errors and honest intervals;
--rank error uses only the error. Cost is processor time per row, including reading but not tuning. A model that does
not finish in time, or that needs more than a gigabyte, is scored on the rows that it reached. It is listed below the
other models, and compared with the best of them on these rows.

With --runs R there is no time limit. The rows after tuning are divided into R blocks, or permuted R times (--runs-by
permutations). Every model runs on all blocks or permutations, and the table has confidence intervals.

{EXIT_CODES}"""
USUAL = (  # usual models of each family, few enough to run in a minute
    "auto",
    "betaklms",
    "fbkrls",
    "knlms",
    "krls",
    "krlst",
    "linearrls",
    "localgp",
    "norma",
    "onlinegp",
    "persistence",
    "qklms",
    "randomfeaturegp",
    "swkrls",
)
MEASURES = {"density": "log density", "error": "error"}
PATHS = Paths(reads=("SOURCE",), replaces=("--out", "--json", "--csv", "--latex"), pipes=("SOURCE",))
SECONDS = 60.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog, parser.formatter_class = EPILOG, argparse.RawDescriptionHelpFormatter
    add_source(parser)
    add_model(parser)
    parser.add_argument(
        "--models", metavar="A,B", help="see `onlinegp models`; all: all of bounded size (one or two of each kind)"
    )
    add_renamed(
        parser,
        "--by",
        "--rank",
        choices=("density", "error"),
        default="density",
        help="criterion of the ranking (density)",
    )
    parser.add_argument("--time", type=float, metavar="S", help=f"time limit in seconds ({SECONDS:g})")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, metavar="N", help="processes (one per core)")
    parser.add_argument("--out", metavar="FILE", help="figure of error over time and cost against error, .png or .svg")
    parser.add_argument("--json", metavar="FILE", help="write the table as JSON")
    runs = parser.add_argument_group("many runs")
    runs.add_argument("--runs", type=int, metavar="R", help="number of runs, with confidence intervals over them")
    runs.add_argument(
        "--runs-by", choices=("blocks", "permutations"), help="blocks of the stream, or random orders of rows (blocks)"
    )
    runs.add_argument("--effort", type=int, metavar="N", help="rows for tuning each model, over all trials (200000)")
    runs.add_argument("--csv", metavar="FILE", help="write the table as CSV")
    runs.add_argument("--latex", metavar="FILE", help="write the table as LaTeX")


def main(args: argparse.Namespace) -> int:
    count(jobs=args.jobs)
    if args.out:
        _check_picture(args.out)
    with tempfile.TemporaryDirectory() as folder:
        if args.runs is not None:
            args.source = file_of(args.source, Path(folder) / "input")
            return compare_over_runs(args, entrants(args.models, given_parameters(args)))
        for option in ("runs_by", "effort", "csv", "latex"):
            if getattr(args, option) is not None:
                raise ValueError(f"--{option.replace('_', '-')} needs --runs, such as --runs 20.")
        seconds = positive(time=SECONDS if args.time is None else args.time)
        until = monotonic() + seconds
        args.source = file_of(args.source, Path(folder) / "input")  # each model reads the source
        ranking = compared(args, until)
    for line in table_lines(ranking, seconds=seconds):
        print(line)
    for result in ranking.failed:
        print(f"{result.name}: {printable(result.wrong)}")
    if not ranking.all:
        raise ValueError("all models failed. Use a larger --noise, another --kernel, or a longer --time.")
    print(f"\n{recommended(ranking)}")
    if args.json:
        write_atomically(args.json, [json.dumps(ranking.plain(), indent=2).encode() + b"\n"])
    if args.out:
        save_picture(draw(ranking.all), args.out)
    return 0


def compared(args: argparse.Namespace, until: float) -> Ranking:
    """Run the models until the given time, and return them in order."""
    given = given_parameters(args)
    taking_part = entrants(args.models, given)
    source = open_input(args)
    encoder, lags = chosen_columns(args, source)
    rows = args.tune or max(20 + 2 * lags, min(1000, source.rows_at_most(5000) // 5))
    X, y = with_lags(*first_rows(source, FirstRows(rows, encoder, varied=True)).encoded(), lags, args.horizon)
    source.close()
    say(f"{encoder.columns.target}: tuned on {len(y)} rows, the other rows are scored")
    reopen = partial(reopened, args, encoder.columns)
    stream = OneStream(reopen, encoder, X, y, rows, until, lags, args.horizon, given)
    return compare(taking_part, stream, by=args.rank, jobs=args.jobs, say=say)


def reopened(args: argparse.Namespace, columns: Columns) -> Source:
    """Open the source again for a model, in small blocks, because the time limit is checked after each block."""
    source = source_of(args, rows=LOOK)
    source.select(columns)
    return source


def entrants(models: str | None, given: dict[str, Any]) -> list[Entrant]:
    """Return the named models, or the usual models. Raise an error for an unknown model."""
    names = _usual() if models is None else _small() if models == "all" else parse_models(models)
    if not names:
        raise ValueError(f"--models must name at least one model, got {models!r}. See `onlinegp models`.")
    if len(set(names)) < len(names):
        raise ValueError(f"--models must name each model once, got {models!r}.")
    chosen = [(name, parse_model(name)) for name in names]
    return [
        Entrant(
            name, one.algorithm.estimator, {k: v for k, v in given.items() if k in one.algorithm.parameters} | one.given
        )
        for name, one in chosen
    ]


def _small() -> list[str]:
    """Return the names of all models of bounded size, and print which models are left out."""
    known = algorithms().values()
    grow = [one.name for one in known if not (one.estimator.facts.bounded or one.estimator.facts.bounded_by)]
    if grow:
        say(f"left out, because they grow with every row: {', '.join(grow)}. Name them in --models to include them.")
    return [one.name for one in known if one.name not in grow]


def _usual() -> list[str]:
    """Return the names of the usual and the imported models, and print which models are left out."""
    known = algorithms()
    names = [name for name, one in known.items() if name in USUAL or family(one.estimator) == OTHER]
    others = ", ".join(name for name in known if name not in names)
    say(f"left out: {others}. Name them in --models to include them; --models all means all models of bounded size.")
    return names


def table_lines(ranking: Ranking, *, seconds: float) -> list[str]:
    """Return the ranked table, followed by the models that did not finish."""
    what = MEASURES[ranking.by]
    lines = [table(ranking.finished)] if ranking.finished else []
    if ranking.stopped and ranking.finished:
        first = ranking.finished[0].name
        lines.append(f"\nStopped after {seconds:g} s or at a gigabyte, and not ranked (scores up to there):")
        lines.append(table([one.result for one in ranking.stopped]))
        for one in ranking.stopped:
            verdict = "ahead" if one.ahead(ranking.by) else "not ahead"
            lines.append(
                f"{one.result.name}: {what} {_number(one.own)} in the first {one.rows} rows, {first} "
                f"{_number(one.best)}; {verdict}."
            )
    elif ranking.stopped:
        lines.append(
            f"No model finished in {seconds:g} s. Models are ranked by the {what} in the first "
            f"{ranking.stopped[0].rows} rows, which all models reached; other scores are for all rows reached."
        )
        lines.append(table([one.result for one in ranking.stopped]))
    return lines


def recommended(ranking: Ranking) -> str:
    """Name the recommended model, and models that may be better."""
    best = f"Recommended: {ranking.all[0].name}, the best {MEASURES[ranking.by]}"
    if not (ranking.stopped and ranking.finished):
        return f"{best}."
    ahead = [one.result.name for one in ranking.stopped if one.ahead(ranking.by)]
    more = f" Ahead of it when stopped: {', '.join(ahead)}; try a longer --time." if ahead else ""
    return f"{best} of the finished models.{more}"


def _number(value: float | None) -> str:
    return "none" if value is None else f"{value:.4g}"


def table(results: list[Result]) -> str:
    """Return the table of results, in order."""
    width = max([5, *(len(r.name) for r in results)])
    titles = ("nMSE", "RMSE", "log density", "95% covers", "centers", "us/row", "rows", "search rows")
    rooms = (9, 9, 11, 10, 7, 7, 7, 11)
    header = " ".join([f"{'model':<{width}}", *(f"{name:>{room}}" for name, room in zip(titles, rooms, strict=True))])
    lines = [header, "-" * len(header)]
    for r in results:
        f = r.figures
        if not f["scored"]:
            lines.append(f"{r.name:<{width}} no row was scored: the stream is shorter than --tune")
            continue
        nmse = "-" if f["nmse_db"] is None else f"{f['nmse_db']:.2f} dB"
        lines.append(
            f"{r.name:<{width}} {nmse:>9} {f['rmse']:>9.4g} {f['log_density']:>11.3f} {f['coverage']:>10.1%} "
            f"{f['centers']:>7} {f['us_per_row']:>7.1f} {f['scored']:>7} {f['search']['rows']:>11}"
        )
    return "\n".join(lines)


def _check_picture(path: str) -> None:
    """Raise an error if the picture cannot be drawn, before the work starts."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise ValueError("--out needs matplotlib. Install it with: pip install 'onlinegp[plots]'") from None
    if Path(path).suffix[1:].lower() not in Figure().canvas.get_supported_filetypes():
        raise ValueError(f"--out must end in .png or .svg, got {path}.")


def draw(results: list[Result]) -> Any:
    """Return the figure: the errors along the stream, and the cost per row against the error."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10.0, 4.6), layout="constrained")
    over_time, cost = figure.subplots(1, 2, width_ratios=[3, 2])
    points = {}
    for i, r in enumerate(results):
        assert r.curves is not None
        rows, error = error_curve(r.curves)
        color, style = COLORS[i % len(COLORS)], STYLES[i // len(COLORS) % len(STYLES)]
        over_time.plot(rows, error, color=color, ls=style, lw=2.0 if i == 0 else 1.0, label=r.name, zorder=10 - i)
        if r.figures["nmse_db"] is not None:
            points[r.name] = (r.figures["us_per_row"], r.figures["nmse_db"])
            cost.plot(*points[r.name], "o", color=color, zorder=4)  # above the names of others
    over_time.set(xlabel="row", ylabel="mean squared error [dB]", title="Error along the stream")
    figure.legend(
        *over_time.get_legend_handles_labels(), loc="outside lower center", ncols=6, fontsize=8, frameon=False
    )
    cost.set(xscale="log", xlabel="processor time per row [us]", ylabel="nMSE [dB]", title="Error against cost")
    cost.margins(x=0.25, y=0.15)
    for ax in (over_time, cost):
        ax.spines[["top", "right"]].set_visible(False)
    plain(cost)
    label(cost, points)
    return figure
