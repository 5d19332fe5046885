"""`onlinegp forecast`: the next values of a series, with intervals that grow."""

from __future__ import annotations

import argparse

import numpy as np

from onlinegp.cli.automatic_forecast import SHOWN, check_shared, forecast_automatically, open_future, save_picture
from onlinegp.cli.options import CSV, EXIT_CODES, add_source, open_input, say, typed
from onlinegp.cli.paths import Paths
from onlinegp.cli.tuning_options import (
    Progress,
    Talk,
    add_learned,
    checked_robust,
    first_rows,
    from_options,
    refuse_what_is_settled,
    set_model,
    tuning_rows,
)
from onlinegp.files.atomic import write_atomically
from onlinegp.models.base import OnlineRegressor
from onlinegp.models.combined import IteratedForecaster
from onlinegp.predictions import Predictions
from onlinegp.streams.errors import BadData, Stopped, listed
from onlinegp.streams.reading.source import Columns, stored_columns
from onlinegp.streams.running.checkpoint import read_model
from onlinegp.streams.running.column_encoding import Encoder
from onlinegp.streams.running.forecast import COLUMNS, LastValues, by_direct_models, by_paths, future_features
from onlinegp.streams.running.plausible import CodeWatch
from onlinegp.streams.running.run import Job
from onlinegp.streams.running.series import GAPS
from onlinegp.streams.writing.sinks import open_sink

EPILOG = f"""examples:
  onlinegp forecast sales.csv                                  dates, step, seasons and steps are found
  onlinegp forecast sales.csv --steps 12 --out next.csv --report next.html --backtest 5
  onlinegp forecast shops.csv --by shop --steps 14             a forecast for each shop, in parallel
  onlinegp forecast load.csv --timezone Europe/Berlin          hours of a clock that changes twice a year
  onlinegp forecast visits.csv --features holiday,price --future next_weeks.csv        inputs known ahead
  onlinegp forecast series.txt --lags 10 --steps 20            your own model, step by step: --lags, --model, ...
  onlinegp forecast --start model.ogp --steps 20               from where a model was saved

Without options for a model, the command finds seasons, and fits Gaussian processes over time and regressions on
smoothed lags. The errors of their past forecasts determine the weights of these models and the intervals. The output is
CSV (or JSON lines, or Parquet) with the columns date, step, mean, median, std, lower and upper. By default, times
without a row are missing values; see --gaps.

With --lags, --model or --start the series is learned as in `onlinegp run`. Then many possible futures are sampled,
where each value is drawn from the prediction of the next row and becomes a lag of later rows. The errors of past
forecasts correct the spread at each step (not with --features). --direct trains a model for each step instead, which is
slower, but better if errors accumulate over the steps. The columns are step, mean, std, lower and upper.

{EXIT_CODES}"""
PATHS = Paths(
    reads=("SOURCE", "--start", "--future"),
    appends=("--out",),
    replaces=("--plot", "--report", "--save"),
    pipes=("SOURCE", "--out"),
    renewed=("--start", "--save"),
)
NOTHING = "the target is the same in every row, or missing: there is nothing to learn, and no model to forecast with."
MOST_FUTURES = 1_000_000
SAMPLING = {"futures": 1000, "seed": 0}  # options of the sampled paths and their defaults
AUTOMATIC = {
    "time": None,
    "timezone": None,
    "by": None,
    "gaps": "missing",
    "seasons": None,
    "backtest": 0,
    "jobs": None,
    "report": None,
}
OWN_MODEL = {
    **{name: None for name in ("lags", "kernel", "noise", "budget", "forgetting", "tune", "model", "start", "robust")},
    **{name: None for name in ("save", "copy")},
    **{"horizon": 1, "set": [], "direct": False, "new_series": False, "categories": "ignore", "dates": "ignore"},
    **{"missing": "stop", **SAMPLING},
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog, parser.formatter_class = EPILOG, argparse.RawDescriptionHelpFormatter
    add_source(parser, optional=True)
    add_learned(parser)
    ahead = parser.add_argument_group("forecast")
    ahead.add_argument(
        "--steps", type=int, metavar="H", help="number of rows to predict (by the time step: 48 hours, 14 days, ...)"
    )
    ahead.add_argument("--time", metavar="NAME", help="the column of dates (the first column of dates)")
    ahead.add_argument("--timezone", metavar="Z", help="time zone of dates without an offset, such as Europe/Berlin")
    ahead.add_argument("--by", metavar="NAME", help="the column with the name of the series: forecast each series")
    ahead.add_argument(
        "--gaps",
        choices=GAPS,
        default="missing",
        help="how to treat times without a row (missing)",
    )
    ahead.add_argument("--seasons", metavar="A,B", help="season lengths in rows, such as 24,168; 0 for none (found)")
    ahead.add_argument("--backtest", type=int, default=0, metavar="N", help="also score N forecasts of past values")
    ahead.add_argument("--jobs", type=int, metavar="N", help="with --by: number of processes (one per core)")
    ahead.add_argument("--future", metavar="FILE", help="a table with the --features of the next rows")
    ahead.add_argument("--direct", action="store_true", help="train a model for each step instead of sampling paths")
    ahead.add_argument("--futures", type=int, default=1000, metavar="N", help="number of sampled paths (1000)")
    ahead.add_argument("--seed", type=int, default=0, metavar="S", help="the same seed gives the same forecast (0)")
    output = parser.add_argument_group("output")
    output.add_argument(
        "--out", default="-", metavar="FILE", help=".csv, .jsonl or .parquet; - or jsonl for standard output (-)"
    )
    output.add_argument("--level", type=float, default=0.95, metavar="P", help="probability of the interval (0.95)")
    output.add_argument("--plot", metavar="FILE", help="a picture of the series and its forecast, .png, .svg or .pdf")
    output.add_argument("--report", metavar="FILE", help="a page with series, forecasts and backtests, .html")
    output.add_argument("--save", metavar="FILE", help="the model after learning the series, .ogp")
    output.add_argument("--quiet", action="store_true", help="print only errors")


def main(args: argparse.Namespace) -> int:
    talk = (lambda text: None) if args.quiet else say
    check_shared(args)
    own = typed(args, OWN_MODEL)
    if args.source is not None and not own:
        return forecast_automatically(args, talk)
    if own and (odd := typed(args, AUTOMATIC)):
        raise ValueError(
            f"{listed(odd)} cannot be used with {own[0]}, only with the automatic forecaster. Leave one out."
        )
    _check(args, own)
    last = LastValues(SHOWN * args.steps)
    try:
        predicted = _forecast(args, last, talk)
    except Stopped as stopped:
        say(f"onlinegp: {stopped}.")
        return stopped.exit_code
    sink = open_sink(args.out, (), added=COLUMNS)
    sink.write([], [np.arange(1.0, args.steps + 1.0), predicted.mean, predicted.std, *predicted.interval(args.level)])
    sink.close()
    if args.plot:
        save_picture(args, last.y, predicted, talk)
    return 0


def _check(args: argparse.Namespace, own: list[str]) -> None:
    """Raise an error for invalid options, before anything is read."""
    checked_robust(args.robust)
    if args.start is None and args.source is None:
        raise ValueError("a forecast requires past values. Pass SOURCE, the series, or --start FILE, a saved model.")
    if args.steps is None:
        needs = f"with {own[0]}, which the automatic forecaster does not have" if own else "with your own model"
        raise ValueError(f"--steps H, the number of rows to predict, is required {needs}.")
    if not 2 <= args.futures <= MOST_FUTURES:
        raise ValueError(f"--futures must be from 2 to {MOST_FUTURES}, got {args.futures}. 1000 is a usual choice.")
    if args.seed < 0:
        raise ValueError(f"--seed must be 0 or more, got {args.seed}.")
    if args.lags == "auto":
        raise ValueError(
            "--lags auto works only with `onlinegp run`. Without --lags and --model, the forecast finds seasons."
        )
    if args.lags == 0:
        raise ValueError("--lags must be at least 1, got 0: a forecast needs past values. 10 is a usual choice.")
    if args.direct and (args.start is not None or args.save is not None):
        raise ValueError("--direct trains a model for each step. Leave --start and --save out.")
    if args.direct and args.source == "-":
        raise ValueError("--direct reads SOURCE once for each step, so SOURCE cannot be a pipe. Write it to a file.")
    if args.start is not None:
        refuse_what_is_settled(args)
    elif args.lags is None:
        args.lags = 10
    _refuse_what_has_no_effect(args)


def _refuse_what_has_no_effect(args: argparse.Namespace) -> None:
    if args.direct and (odd := typed(args, SAMPLING)):
        raise ValueError(f"--direct samples no paths, so {listed(odd)} would have no effect. Leave one out.")
    if args.direct and args.horizon != 1:
        raise ValueError(f"--direct uses the horizons 1, 2, ... {args.steps}. Leave --horizon out.")
    if args.source is None and args.new_series:
        raise ValueError("--new-series requires SOURCE, because a forecast needs past values. Leave it out.")
    if args.source is None and args.save is not None:
        raise ValueError(f"--save needs SOURCE: without new rows the model does not change. Copy {args.start} instead.")
    if args.source is None and args.future is None and (odd := typed(args, {"format": "auto", **CSV})):
        raise ValueError(f"there is no SOURCE or --future to read: {listed(odd)} would have no effect. Leave it out.")


def _forecast(args: argparse.Namespace, last: LastValues, talk: Talk) -> Predictions:
    if args.source is None:
        model, stream = read_model(args.start)
        if not stream and args.future is not None:
            raise ValueError(f"{args.start} contains no names of columns. Use a file from --save.")
        encoder = Encoder.restored(stored_columns(stream), stream) if stream else Encoder(Columns(None, (), ()))
        _refuse_needless_future(args, encoder.columns)
        X = encoder(_future(args, encoder.columns))
        _tell_if_unchecked(model, args, talk)
        return by_paths(model, args.steps, X, paths=args.futures, seed=args.seed)
    job, model = _learned(args, last, talk)
    cells = _future(args, job.encoder.columns)
    if args.save:
        write_atomically(args.save, [job.model_file()])
    if not args.direct:
        return by_paths(model, args.steps, job.encoder(cells), paths=args.futures, seed=args.seed)

    def learned(horizon: int) -> tuple[OnlineRegressor, Encoder]:
        if horizon == 1:
            return model, job.encoder
        args.horizon = horizon
        other, its_model = _learned(args, last, talk)
        return its_model, other.encoder

    return by_direct_models(learned, args.steps, cells)


def _tell_if_unchecked(model: OnlineRegressor, args: argparse.Namespace, talk: Talk) -> None:
    if not isinstance(model, IteratedForecaster) and not model.n_features_in_:
        talk(
            f"the forecasts of {args.start} were never compared with observed values, so the intervals of "
            "far steps may be too wide. Pass the whole series, or use a model from `onlinegp forecast --save`."
        )


def _learned(args: argparse.Namespace, last: LastValues, talk: Talk) -> tuple[Job, OnlineRegressor]:
    """Run over the source. Return the job and its model."""
    last.begin()
    source = open_input(args)
    encoder, past, model = from_options(args, source, talk)
    _refuse_needless_future(args, encoder.columns)
    if model is not None:
        _tell_if_unchecked(model, args, talk)
    job = Job(
        source,
        last,
        encoder,
        level=args.level,
        model=model,
        codes=CodeWatch(talk),
        watch=Progress(talk, quiet=args.quiet),
    )
    try:
        if model is None:
            steps, after = 0 if args.direct else args.steps, 0 if tuning_rows(args) == 0 else first_rows(args, source)
            set_model(args, job, past, talk, steps=steps, after=after)
        job.run()
    finally:
        getattr(job.watch, "close", lambda: None)()
        job.close()
    if job.model is None or job.score.summary()["nmse_db"] is None:
        raise BadData(NOTHING)
    return job, job.model


def _refuse_needless_future(args: argparse.Namespace, columns: Columns) -> None:
    if args.future is not None and not columns.features:
        raise ValueError(
            f"--future {args.future} is for a model with features, but this model predicts only from past values. "
            f"Leave it out, or name --features A,B."
        )


def _future(args: argparse.Namespace, columns: Columns) -> np.ndarray:
    return future_features(open_future(args), columns, args.steps)
