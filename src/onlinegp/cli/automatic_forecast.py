"""`onlinegp forecast` without a chosen model: read the series of a file, forecast them, and print what was found."""

from __future__ import annotations

import argparse
import io
from pathlib import Path
from typing import Any

import numpy as np

from onlinegp.checks import Array
from onlinegp.cli.options import checked_level, command_line, open_input
from onlinegp.cli.parsing import parse_columns
from onlinegp.cli.tuning_options import Talk
from onlinegp.files.atomic import write_atomically
from onlinegp.models.temporal.forecast import Forecast
from onlinegp.models.temporal.forecaster import Forecaster
from onlinegp.models.temporal.members import FEWEST_KNOWN
from onlinegp.processes import in_parallel
from onlinegp.streams.errors import BadData
from onlinegp.streams.reading.formats import open_source
from onlinegp.streams.reading.source import Columns, Source
from onlinegp.streams.running.forecast import future_features
from onlinegp.streams.running.requested_model import FARTHEST
from onlinegp.streams.running.series import Series, forecast_series, read_table, series_of, written
from onlinegp.streams.writing.forecast_page import Chapter, write_forecasts
from onlinegp.streams.writing.sinks import open_sink, output_format

PICTURES = (".png", ".svg", ".pdf")
SHOWN = 3  # past values in a picture: this many times the steps, or cycles of the longest season
MOST_SHOWN = 1000
FORECAST_COLUMNS = ("step", "mean", "median", "std", "lower", "upper")


def check_steps(steps: int) -> None:
    if not 1 <= steps <= FARTHEST:
        raise ValueError(f"--steps must be from 1 to {FARTHEST}, got {steps}.")


def forecast_automatically(args: argparse.Namespace, talk: Talk) -> int:
    """Forecast the series of a file with the automatic forecaster."""
    zone, seasons = _check_automatic(args)
    source = open_input(args)
    try:
        features = parse_columns(args.features) or ()
        table, columns = read_table(source, target=args.target, time=args.time, by=args.by, features=features)
    finally:
        source.close()
    if not np.isfinite(table.y).any():
        raise BadData(f"{source.path}: the column {columns.target!r} has no values.")
    series = series_of(table, args.gaps, zone, source.path, talk)
    if args.plot and len(series) > 1:
        raise ValueError(f"--plot draws one series, but --by {args.by} has {len(series)}. Leave one of them out.")
    series = [one for one in series if np.isfinite(one.y).any()]
    tasks = []
    for one in series:
        following = open_future(args) if features else None
        future = future_features(following, columns, args.steps or (None if features else one.usual_steps))
        tasks.append((one, future, seasons, args.backtest))
    jobs = 1 if len(tasks) == 1 else args.jobs
    done = in_parallel(forecast_series, tasks, jobs, title="forecasts", total=len(tasks) if len(tasks) > 1 else 0)
    _write(args, columns, series, [ahead for ahead, _ in done])
    for one, (ahead, tested) in zip(series, done, strict=True):
        _tell_found(one, ahead, columns, tested, talk)
    if args.report:
        told = [_found(one, ahead, columns) for one, (ahead, _) in zip(series, done, strict=True)]
        chapters = [
            Chapter(name, story, _shown(one, ahead), _labels(one, ahead), ahead, tested)
            for one, (ahead, tested), (name, story) in zip(series, done, told, strict=True)
        ]
        write_forecasts(args.report, chapters, level=args.level, command=command_line())
        talk(f"report: {args.report}")
    if args.plot:
        image = dated_picture(series[0], done[0][0], columns.target, args.level, Path(args.plot).suffix[1:])
        write_atomically(args.plot, [image])
        talk(f"plot: {args.plot}")
    return 0


def open_future(args: argparse.Namespace) -> Source | None:
    """Return the table of the next rows, if there is one."""
    if args.future is None:
        return None
    return open_source(
        args.future,
        format=args.format,
        delimiter=args.delimiter,
        encoding=args.encoding,
        decimal=args.decimal,
        na_values=parse_columns(args.na_values) or (),
    )


def _check_automatic(args: argparse.Namespace) -> tuple[Any, Any]:
    """Refuse invalid options. Return the time zone and the seasons."""
    checked_level(args.level)
    output_format(args.out)
    if args.plot is not None and Path(args.plot).suffix.lower() not in PICTURES:
        raise ValueError(f"--plot {args.plot} must end in .png, .svg or .pdf.")
    if args.steps is not None:
        check_steps(args.steps)
    if args.backtest < 0:
        raise ValueError(f"--backtest must be 0 or more, got {args.backtest}.")
    if args.features is not None and args.by is not None:
        raise ValueError("--features is for one series, but --by makes several. Leave one of them out.")
    if args.features is None and args.future is not None:
        raise ValueError(f"--future {args.future} is for a model with features. Name them: --features A,B.")
    if args.features is not None and args.future is None:
        raise ValueError(
            f"--features {args.features} needs --future FILE, a table with these columns for the next rows."
        )
    zone = None
    if args.timezone is not None:
        from zoneinfo import ZoneInfo

        try:
            zone = ZoneInfo(args.timezone)
        except (ValueError, OSError, LookupError):
            raise ValueError(
                f"--timezone must be a name such as Europe/Berlin or UTC, got {args.timezone!r}."
            ) from None
    if args.seasons is None:
        return zone, "auto"
    try:
        periods = tuple(float(period) for period in args.seasons.split(","))
    except ValueError:
        raise ValueError(f"--seasons must be periods in rows, such as 24,168, got {args.seasons!r}.") from None
    seasons = () if periods == (0.0,) else periods
    Forecaster(seasons=seasons).check()
    return zone, seasons


def _write(args: argparse.Namespace, columns: Columns, series: list[Series], forecasts: list[Forecast]) -> None:
    dated = any(ahead.dates is not None for ahead in forecasts)
    names = (*((args.by,) if args.by else ()), *(("date",) if dated else ()))
    sink = open_sink(args.out, names, added=FORECAST_COLUMNS)
    for one, ahead in zip(series, forecasts, strict=True):
        keys: list[Any] = [[one.key] * len(ahead)] if args.by else []
        if dated:
            keys.append([""] * len(ahead) if ahead.dates is None else ahead.dates.tolist())
        step = np.arange(1.0, len(ahead) + 1.0)
        sink.write(keys, [step, ahead.mean, ahead.median, ahead.std, *ahead.interval(args.level)])
    sink.close()


def _found(series: Series, ahead: Forecast, columns: Columns) -> tuple[str, str]:
    """Return the name of a series, and what was found."""
    times = ""
    if series.dates is not None and series.step is not None:
        first, last = (written(series.dates[i], series.step) for i in (0, -1))
        times = f", a row {series.step} from {first} to {last}"
    missing = int(np.isnan(series.y).sum())
    gaps = f", {missing} of them missing" if missing else ""
    seasons = " and ".join(f"{s:g}" for s in ahead.seasons)
    season = f"season of {seasons} rows" if ahead.seasons else "no season"
    weights = ", ".join(f"{family} {weight:.2f}" for family, weight in ahead.weights.items())
    rows = "1 row" if len(series.y) == 1 else f"{len(series.y)} rows"
    name = f"{columns.target if series.key is None else series.key}"
    return name, f"{rows}{gaps}{times}; {season}; weights: {weights}"


def _tell_found(series: Series, ahead: Forecast, columns: Columns, tested: str, talk: Talk) -> None:
    """Print what was found."""
    name, story = _found(series, ahead, columns)
    talk(f"{name}: {story}")
    if np.isfinite(series.y).sum() < FEWEST_KNOWN:
        talk(f"{name}: with fewer than {FEWEST_KNOWN} values, the forecast is the last one, in a rough interval.")
    if tested:
        talk(tested)


def _shown(series: Series, ahead: Forecast) -> Array:
    """Return the last values, as many as a picture shows."""
    cycles = min(round(SHOWN * max(ahead.seasons, default=0.0)), MOST_SHOWN)
    return series.y[-max(SHOWN * len(ahead), cycles, 40) :]


def _labels(series: Series, ahead: Forecast) -> dict[int, str]:
    """Return dates by row, of which 0 is the last one of the series."""
    if series.dates is None or series.step is None or ahead.dates is None:
        return {}
    places = np.rint(series.step.places(series.dates)).astype(int)
    rows = (places - places[-1]).tolist()
    labels = {row: written(date, series.step) for row, date in zip(rows, series.dates, strict=True)}
    return labels | {i + 1: date for i, date in enumerate(ahead.dates)}


def dated_picture(series: Series, ahead: Forecast, name: str | None, level: float, format: str) -> bytes:
    """Return a picture of the last values and the forecast, over dates if there are any."""
    from matplotlib.figure import Figure

    shown = _shown(series, ahead)
    figure = Figure(figsize=(8.0, 4.0), layout="constrained")
    axes = figure.add_subplot()
    ahead.plot(shown, level=level, ax=axes)
    axes.set_ylabel(name or "")
    if labels := _labels(series, ahead):
        every = max(1, (len(shown) + len(ahead)) // 6)
        ticks = [i for i in range(len(ahead), -len(shown), -every) if i in labels]
        axes.set_xticks(ticks, [labels[i][:16].replace("T", "\n") for i in ticks])
        axes.set_xlabel("")
    stream = io.BytesIO()
    figure.savefig(stream, format=format, dpi=150)
    return stream.getvalue()
