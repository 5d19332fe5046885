"""Options for the model of a command that learns a stream, and the progress bar."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

from onlinegp.checks import positive
from onlinegp.cli.options import CATEGORY_LIMIT, add_model, chosen_columns, given_parameters, longest_lag, typed
from onlinegp.cli.parsing import parse_model
from onlinegp.models.base import OnlineRegressor
from onlinegp.models.combined.base import innermost
from onlinegp.progress import Hidden, bar
from onlinegp.streams.errors import listed
from onlinegp.streams.reading.source import Columns, Source, columns_of
from onlinegp.streams.running.checkpoint import read_model
from onlinegp.streams.running.column_encoding import Encoder
from onlinegp.streams.running.first_rows import FirstRows
from onlinegp.streams.running.predict_then_learn import size_of
from onlinegp.streams.running.requested_model import Requested, TuningMessages, described, past_of
from onlinegp.streams.running.run import Job

SETTLED: dict[str, Any] = {  # options that a model file determines, and their default values
    **dict.fromkeys(("target", "features", "copy", "lags", "date_format", "model", "kernel", "noise", "budget")),
    **dict.fromkeys(("forgetting", "tune", "robust", "na_values")),
    "horizon": 1,
    "delay": 0,
    "categories": "ignore",
    "category_limit": CATEGORY_LIMIT,
    "dates": "ignore",
    "missing": "stop",
    "set": [],
}
PIPE_ROWS = 200  # rows to tune on if the length of the input is unknown
Talk = Callable[[str], None]


def add_learned(parser: argparse.ArgumentParser) -> Any:
    """Add the options for a new model or for a saved model, and return their group."""
    model = add_model(parser)
    model.add_argument("--model", metavar="NAME", help="see `onlinegp models` (auto: a mixture that tunes itself)")
    model.add_argument("--start", metavar="FILE", help="continue with a model from --save or `onlinegp tune`")
    model.add_argument("--new-series", action="store_true", help="with --start: SOURCE begins a new series")
    model.add_argument(
        "--robust",
        nargs="?",
        type=float,
        const=3.0,
        metavar="C",
        help="limit outliers: clip errors at C standard deviations (3)",
    )
    return model


def checked_robust(bound: float | None) -> None:
    if bound is not None:
        positive("3 is a usual choice.", robust=bound)


def refuse_what_is_settled(args: argparse.Namespace) -> None:
    """Raise an error for options that have no effect on a saved model."""
    if odd := typed(args, SETTLED):
        raise ValueError(
            f"{listed(odd)} cannot be used with --start, because the model in {args.start} keeps its columns and "
            f"parameters. Leave {'it' if len(odd) == 1 else 'them'} out, or --start."
        )


def from_options(
    args: argparse.Namespace, source: Source, talk: Talk
) -> tuple[Encoder, dict[str, Any], OnlineRegressor | None]:
    """Select the columns. Return their encoder, lags and horizon, and the model of --start."""
    if args.start is None:
        if args.new_series:
            raise ValueError("--new-series is for a saved model with past values. Add --start FILE.")
        encoder, lags = chosen_columns(args, source, any_lags=True)
        past: dict[str, Any] = {"lags": lags, "horizon": args.horizon}
        if isinstance(args.lags, str | list):
            past["which"] = args.lags
        talk(told(encoder.columns, **past))
        return encoder, past, None
    refuse_what_is_settled(args)
    model, stream = read_model(args.start)
    if not stream:
        raise ValueError(f"{args.start} contains no names of columns. Use a file from --save.")
    encoder = Encoder.restored(columns_of(stream, source), stream)
    source.select(encoder.columns)
    if args.new_series:
        model.begin_series()
    talk(f"model: {type(innermost(model)).__name__} from {args.start}, {size_of(model)} centers")
    return encoder, past_of(model), model


def told(columns: Columns, lags: int, horizon: int, which: str | list[int] | None = None) -> str:
    """Describe what is predicted from which inputs."""
    past = f"its last {lags} values"
    if which is not None:
        rows = f"its values {listed([str(lag) for lag in which])} rows before"
        past = "past values, by the seasons that are found" if which == "auto" else rows
    past += f", {horizon} rows ahead" if horizon > 1 else ""
    from_what = [*([listed(columns.features)] if columns.features else []), *([past] if lags else [])]
    late = f", learned {horizon} rows late" if horizon > 1 and not lags else ""
    return f"target: {columns.target}, predicted from {' and '.join(from_what)}{late}"


def requested(args: argparse.Namespace, past: dict[str, Any], *, tune: int | None, **around: Any) -> Requested:
    """Return the model for the options. It tunes itself unless `tune` is 0."""
    choice = parse_model(args.model or ("krlst" if tune == 0 else "auto"), given_parameters(args))
    return Requested(choice.algorithm.name, choice.given, tune, args.robust, **past, **around)


def set_model(args: argparse.Namespace, job: Job, past: dict[str, Any], talk: Talk, **around: Any) -> None:
    """Set the model of the job. If columns are encoded, this happens after the first rows."""
    rows = tuning_rows(args)
    if past["lags"] and rows and rows <= past["lags"] + past["horizon"]:
        raise ValueError(f"--tune {rows} leaves no row to tune on with --lags {past['lags']}. Use more rows.")
    model = requested(args, past, tune=rows, **around).build()
    if rows == 0:
        talk("model: " + "; ".join(described(innermost(model))) + " (no tuning: inputs and target as they are)")
    if job.encoder.columns.plain:
        job.model = model
        return
    first = first_rows(args, job.source)
    talk(f"learning the columns from the first {first} rows")
    job.first, job.begin = FirstRows(first, job.encoder), lambda X, y: model


def tuning_rows(args: argparse.Namespace) -> int | None:
    """Return the number of rows to tune on: 0 for no tuning, None for the default of the model."""
    if args.tune is None and args.kernel is not None and args.noise is not None:
        return 0
    rows: int | None = args.tune
    return rows


def first_rows(args: argparse.Namespace, source: Source) -> int:
    """Return the default number of rows to encode columns from, or to tune a model for all keys on."""
    if args.tune:
        rows: int = args.tune
        return rows
    if source.live:
        return PIPE_ROWS
    return max(min(1000, source.rows_at_most(5000) // 5), min(50, 5 + 2 * longest_lag(args)))


class Progress:
    """A progress bar with rate, error and dictionary size, on a terminal only, and messages about tuning."""

    def __init__(self, talk: Talk, *, quiet: bool) -> None:
        self._bar: Any = None
        self._show = False if quiet else None
        self.tuned = TuningMessages(talk)

    def __call__(self, job: Job) -> None:
        self.tuned(job.model, seconds=job.idle)
        if self._bar is None:
            self._bar = bar(None, show=self._show, initial=job.start_rows, unit=" rows")
        self._bar.update(job.rows - self._bar.n)
        if not isinstance(self._bar, Hidden):
            error = job.score.summary()["nmse_db"]
            self._bar.set_postfix_str(f"{'' if error is None else f'{error:.1f} dB, '}{size_of(job.model)} centers")

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()
            self._bar = Hidden()
