"""`onlinegp forecast` with the automatic forecaster: read the series of a file, forecast them, print what was found."""

from __future__ import annotations

import argparse
import io
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from onlinegp.checks import Array
from onlinegp.cli.options import checked_level, command_line, open_input, opened
from onlinegp.cli.parsing import parse_columns
from onlinegp.cli.tuning_options import Talk
from onlinegp.files.atomic import write_atomically
from onlinegp.models.temporal.forecast import Forecast
from onlinegp.models.temporal.forecaster import Forecaster
from onlinegp.models.temporal.members import FEWEST_KNOWN
from onlinegp.predictions import Predictions
from onlinegp.processes import in_parallel
from onlinegp.streams.errors import BadData
from onlinegp.streams.reading.source import Columns, Source
from onlinegp.streams.running.plausible import CodeWatch
from onlinegp.streams.running.requested_model import FARTHEST
from onlinegp.streams.running.series import Series, forecast_series, next_inputs, read_table, series_of, written
from onlinegp.streams.writing.forecast_page import Chapter, write_forecasts
from onlinegp.streams.writing.sinks import open_sink, output_format

PICTURES = (".png", ".svg", ".pdf")
SHOWN = 3  # past values in a picture: this many times the steps, or cycles of the longest season
MOST_SHOWN = 12  # past values per step, so that the forecast stays visible beside a long season
FEWEST_SHOWN = 40
FORECAST_COLUMNS = ("step", "mean", "median", "std", "lower", "upper")


def check_shared(args: argparse.Namespace) -> None:
    """Raise an error for invalid options that all forecasts have."""
    checked_level(args.level)
    output_format(args.out)
    if args.plot is not None and Path(args.plot).suffix.lower() not in PICTURES:
        raise ValueError(f"--plot {args.plot} must end in .png, .svg or .pdf.")
    if args.steps is not None and not 1 <= args.steps <= FARTHEST:
        raise ValueError(f"--steps must be from 1 to {FARTHEST}, got {args.steps}.")


def forecast_automatically(args: argparse.Namespace, talk: Talk) -> int:
    """Forecast the series of a file with the automatic forecaster."""
    zone, seasons = _check_automatic(args)
    source = open_input(args)
    try:
        features = parse_columns(args.features) or ()
        table, columns = read_table(source, target=args.target, time=args.time, by=args.by, features=features)
    finally:
        source.close()
    CodeWatch(talk).look([*columns.features, str(columns.target)], [*table.X.T, table.y])
    if not np.isfinite(table.y).any():
        raise BadData(f"{source.path}: the column {columns.target!r} has no values.")
    series = series_of(table, args.gaps, zone, source.path, talk)
    if args.plot and len(series) > 1:
        raise ValueError(f"--plot draws one series, but --by {args.by} has {len(series)}. Leave one of them out.")
    series = [one for one in series if np.isfinite(one.y).any()]
    futures = _next_inputs(args, columns, series, zone)
    tasks = [(one, future, seasons, args.backtest) for one, future in zip(series, futures, strict=True)]
    jobs = 1 if len(tasks) == 1 else args.jobs
    done = in_parallel(forecast_series, tasks, jobs, title="forecasts", total=len(tasks) if len(tasks) > 1 else 0)
    _write(args, columns, series, [ahead for ahead, _ in done])
    chapters = [_chapter(one, ahead, columns, tested) for one, (ahead, tested) in zip(series, done, strict=True)]
    for one, chapter in zip(series, chapters, strict=True):
        _tell_found(one, chapter, talk)
    if args.report:
        write_forecasts(args.report, chapters, level=args.level, command=command_line())
        talk(f"report: {args.report}")
    if args.plot:
        save_picture(args, chapters[0].past, chapters[0].ahead, talk, chapters[0].labels, columns.target)
    return 0


def _next_inputs(args: argparse.Namespace, columns: Columns, series: list[Series], zone: Any) -> list[Array]:
    """Return the inputs of the next rows of each series, (steps, d)."""
    source = open_future(args) if columns.features else None
    if source is None:
        return [np.empty((args.steps or one.usual_steps, 0)) for one in series]
    try:
        return next_inputs(source, columns, series, by=args.by, steps=args.steps, zone=zone)
    finally:
        source.close()


def open_future(args: argparse.Namespace) -> Source | None:
    """Open the table of --future, if there is one."""
    return None if args.future is None else opened(args, args.future)


def _check_automatic(args: argparse.Namespace) -> tuple[Any, Any]:
    """Raise an error for invalid options. Return the time zone and the seasons."""
    if args.backtest < 0:
        raise ValueError(f"--backtest must be 0 or more, got {args.backtest}.")
    if args.features is None and args.future is not None:
        raise ValueError(f"--future {args.future} needs the names of its features: --features A,B.")
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


def _chapter(series: Series, ahead: Forecast, columns: Columns, tested: str) -> Chapter:
    """Return the part of the page about a series."""
    times = ""
    if series.dates is not None and series.step is not None:
        first, last = (written(series.dates[i], series.step) for i in (0, -1))
        times = f", a row {series.step} from {first} to {last}"
    missing = int(np.isnan(series.y).sum())
    gaps = f", of which {missing} are missing" if missing else ""
    seasons = " and ".join(f"{s:g}" for s in ahead.seasons)
    season = f"season of {seasons} rows" if ahead.seasons else "no season"
    weights = ", ".join(f"{family} {weight:.2f}" for family, weight in ahead.weights.items())
    rows = "1 row" if len(series.y) == 1 else f"{len(series.y)} rows"
    name = f"{columns.target if series.key is None else series.key}"
    cycles = min(round(SHOWN * max(ahead.seasons, default=0.0)), MOST_SHOWN * len(ahead))
    past = series.y[-max(SHOWN * len(ahead), cycles, FEWEST_SHOWN) :]
    story = f"{rows}{gaps}{times}; {season}; weights: {weights}"
    return Chapter(name, story, past, _labels(series, ahead), ahead, tested)


def _tell_found(series: Series, chapter: Chapter, talk: Talk) -> None:
    talk(f"{chapter.title}: {chapter.story}")
    if np.isfinite(series.y).sum() < FEWEST_KNOWN:
        few = f"with fewer than {FEWEST_KNOWN} values, the forecast is the last value with a rough interval."
        talk(f"{chapter.title}: {few}")
    if chapter.tested:
        talk(chapter.tested)


def _labels(series: Series, ahead: Forecast) -> dict[int, str]:
    """Return {row: date}, where row 0 is the last row of the series."""
    if series.dates is None or series.step is None or ahead.dates is None:
        return {}
    places = np.rint(series.step.places(series.dates)).astype(int)
    rows = (places - places[-1]).tolist()
    labels = {row: written(date, series.step) for row, date in zip(rows, series.dates, strict=True)}
    return labels | {i + 1: date for i, date in enumerate(ahead.dates)}


def save_picture(
    args: argparse.Namespace,
    past: Array,
    ahead: Predictions,
    talk: Talk,
    labels: Mapping[int, str] = MappingProxyType({}),
    name: str | None = None,
) -> None:
    """Write the picture of --plot with the last values and the forecast. `labels` are dates by row."""
    from matplotlib.figure import Figure

    from onlinegp import plots

    figure = Figure(figsize=(8.0, 4.0), layout="constrained")
    axes = figure.add_subplot()
    plots.forecast(past, ahead, level=args.level, ax=axes)
    if name:
        axes.set_ylabel(name)
    if labels:
        every = max(1, (len(past) + len(ahead)) // 6)
        ticks = [i for i in range(len(ahead), -len(past), -every) if i in labels]
        axes.set_xticks(ticks, [labels[i][:16].replace("T", "\n") for i in ticks])
        axes.set_xlabel("")
    picture = io.BytesIO()
    figure.savefig(picture, format=Path(args.plot).suffix[1:], dpi=150)
    write_atomically(args.plot, [picture.getvalue()])
    talk(f"plot: {args.plot}")
