"""Turn the rows of a file into series on a grid of times, and forecast them."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, tzinfo
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onlinegp.checks import Array
from onlinegp.columns.time_steps import NotDates, Step, infer_step, parse_dates, round_times
from onlinegp.models.temporal.forecast import Forecast
from onlinegp.models.temporal.forecaster import Forecaster
from onlinegp.streams.errors import BadData, listed
from onlinegp.streams.reading.source import Columns, Source

TIME_NAMES = (
    *("time", "timestamp", "date", "datetime", "ds", "ts", "epoch", "unix", "unixtime"),
    *("year", "quarter", "month", "week", "day", "hour", "period"),
)
SHOWN_LINES = 5
GAPS = ("missing", "ignore", "refuse")
MAX_GRID = 1_000_000  # rows of a series, including missing ones
Talk = Callable[[str], None]


@dataclass
class Table:
    """Rows as they were read: values, inputs, times as text, and keys."""

    y: Array
    X: Array
    times: list[Any] | None
    keys: list[Any] | None
    lines: NDArray[np.int64]  # of the file


@dataclass
class Series:
    """A series on its grid: NaN where a value is missing; inputs of such a row are zeros, which nothing reads."""

    key: Any
    y: Array
    X: Array
    dates: list[datetime] | None = None  # of the rows that were read
    step: Step | None = None

    @property
    def usual_steps(self) -> int:
        return self.step.usual_steps if self.step is not None else max(1, min(48, max(6, len(self.y) // 10)))


def read_table(
    source: Source, *, target: str | None, time: str | None, by: str | None, features: tuple[str, ...] = ()
) -> tuple[Table, Columns]:
    """Return all rows of a source. The time is a column of dates, by name or by what it holds."""
    for name in (target, time, by, *features):
        if name is not None and name not in source.names:
            raise ValueError(f"there is no column {name!r} in {source.path}. Its columns: {listed(source.names)}.")
    time = time or _time_column(source, {target, by, *features})
    numbers = [name for name in source.names if source.numeric[name] and name not in (time, by, *features)]
    for name in features:
        if not source.numeric[name]:
            raise ValueError(f"--features {name}: inputs of a forecast must be numbers, but this column holds text.")
    if target is None and not numbers:
        raise BadData(f"{source.path} has no column of numbers to forecast. Its columns: {listed(source.names)}.")
    keys = tuple(name for name in (time, by) if name)
    columns = Columns(target or numbers[-1], features, keys, na_values=source.na_values)
    source.select(columns)
    y, X, texts = [], [], [[] for _ in columns.keys]  # type: ignore[var-annotated]
    for block in source:
        y.append(block.y)
        X.append(block.X)
        for own, values in zip(texts, block.keys, strict=True):
            own.extend(values.tolist() if hasattr(values, "tolist") else values)
        if block.error is not None:
            raise BadData(block.error.message(source.path))
    values = np.concatenate([*y, np.empty(0)])
    inputs = np.concatenate([*X, np.empty((0, len(features)))])
    by_name = dict(zip(columns.keys, texts, strict=True))
    first = 2 if source.has_header else 1
    lines = np.arange(first, first + len(values), dtype=np.int64)
    return Table(values, inputs, by_name.get(time or ""), by_name.get(by or ""), lines), columns


def _time_column(source: Source, taken: set[str | None]) -> str | None:
    """Return the first column whose values are dates; numbers only if its name says so."""
    for name in source.names:
        values = [value for value in source.samples[name] if value not in ("", None)]
        words = re.split(r"[^a-z]+", name.lower())  # of "open_time", too
        if name in taken or not values or (source.numeric[name] and not set(words) & set(TIME_NAMES)):
            continue
        try:
            parse_dates(values)
        except NotDates:
            continue
        return name
    return None


def series_of(table: Table, gaps: str, zone: tzinfo | None, path: str, talk: Talk) -> list[Series]:
    """Return the series of a table, one for each key, on grids of times."""
    dates = None if table.times is None else _dates(table, zone, path)
    keys = table.keys if table.keys is not None else [None] * len(table.y)
    rows: dict[Any, list[int]] = {}
    for i, key in enumerate(keys):
        rows.setdefault(key, []).append(i)
    return [_series(key, np.array(own), table, dates, gaps, path, talk) for key, own in rows.items()]


def _dates(table: Table, zone: tzinfo | None, path: str) -> list[datetime]:
    assert table.times is not None
    try:
        return parse_dates(table.times, zone)
    except NotDates:
        for text, line in zip(table.times, table.lines, strict=True):
            try:
                parse_dates([text], zone)
            except NotDates as error:
                raise BadData(f"{path}, line {line}: {error} Leave the row out, or name another --time.") from None
        raise BadData(f"{path}: the dates have several formats. Use one for all of them, such as 2024-01-31.") from None


def _series(
    key: Any, rows: Array, table: Table, dates: list[datetime] | None, gaps: str, path: str, talk: Talk
) -> Series:
    name = "" if key is None else f"{key}: "
    y, X, lines = table.y[rows], table.X[rows], table.lines[rows]
    if dates is None:
        return Series(key, y, X)
    own = [dates[i] for i in rows]
    step = infer_step(own)
    if step is None and (gaps == "ignore" or len(set(own)) < 2):
        return Series(key, y, X)
    if step is None:
        if gaps == "refuse":
            raise BadData(f"{path}: {name}the times have no common step. Use --gaps missing or ignore.")
        step, own = round_times(own)
        talk(f"{name}the times have no common step: values are averaged to one row {step}.")
        places = np.rint(step.places(own)).astype(np.int64)
        means = [_averages(column, places - places.min()) for column in (y, *X.T)]
        return Series(key, means[0], np.nan_to_num(np.column_stack(means)[:, 1:]), sorted(own), step)
    order, places = _in_order(name, step, own, lines, gaps, path, talk)
    y, X, own = y[order], X[order], [own[i] for i in order]
    if gaps == "ignore":
        last = np.append(np.diff(places) > 0, True)
        return Series(key, y[last], X[last], own, step)
    if places[-1] >= MAX_GRID:
        raise BadData(f"{path}: {name}{places[-1] + 1:,} rows {step} from {own[0]} to {own[-1]}. Use --gaps ignore.")
    grid, inputs = np.full(places[-1] + 1, np.nan), np.zeros((places[-1] + 1, X.shape[1]))
    grid[places], inputs[places] = y, X  # of two rows with the same time, the later one counts
    return Series(key, grid, inputs, own, step)


def _averages(y: Array, places: NDArray[np.int64]) -> Array:
    """Return the mean of the values at each place; NaN where there is none."""
    known = np.isfinite(y)
    count = np.bincount(places[known], minlength=places.max() + 1)
    with np.errstate(invalid="ignore"):
        return np.bincount(places[known], y[known], minlength=places.max() + 1) / count


def _in_order(
    name: str, step: Step, dates: list[datetime], lines: NDArray[np.int64], gaps: str, path: str, talk: Talk
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the order of rows in time, and their places on the grid.

    Report rows that are missing, duplicated or out of order, or refuse them if `gaps` says so.
    """
    places = np.rint(step.places(dates)).astype(np.int64)
    order = np.argsort(places, kind="stable")
    late = places < np.maximum.accumulate(places)
    places, sorted_lines = places[order] - places.min(), lines[order]
    jumps = np.diff(places)
    several = "" if name else " If the file holds several series, name their column with --by."
    problems, handled = [], []
    for what, where, count, remedy in (
        ("out of order", lines[late], int(late.sum()), "Rows are sorted."),
        (
            "at the time of another",
            sorted_lines[1:][jumps == 0],
            int((jumps == 0).sum()),
            f"The later one counts.{several}",
        ),
        (
            "missing before",
            sorted_lines[1:][jumps > 1],
            int((jumps[jumps > 1] - 1).sum()),
            "Rows are taken one after the other." if gaps == "ignore" else "They are missing values.",
        ),
    ):
        if count:
            shown = ", ".join(map(str, where[:SHOWN_LINES])) + (", ..." if len(where) > SHOWN_LINES else "")
            rows = "row" if count == 1 else "rows"
            problems.append(f"{count} {rows} {what}{'' if what.endswith('before') else ':'} line {shown}")
            handled.append(remedy)
    if _at_a_clock_change([dates[i] for i in order[1:][jumps != 1]], step):
        handled.append("If this is daylight saving, name the time zone, such as --timezone Europe/Berlin.")
    if problems and gaps == "refuse":
        raise BadData(f"{path}: {name}{'; '.join(problems)}. Use --gaps missing or ignore.")
    if problems:
        talk(f"{name}{'; '.join(problems)}. {' '.join(handled)}")
    return order, places


def _at_a_clock_change(dates: list[datetime], step: Step) -> bool:
    """Whether one of the dates after a gap, or at the time of another, is where local clocks are changed."""
    if step.unit != "second" or step.count > 3600:
        return False
    return any(
        date.tzinfo is None and date.weekday() == 6 and date.month in (3, 4, 10, 11) and 1 <= date.hour <= 3
        for date in dates
    )


def forecast_series(series: Series, future: Array, seasons: Any, backtest: int) -> tuple[Forecast, str]:
    """Return the forecast of the rows with these inputs (steps, d), with dates, and the table of a backtest."""
    model, steps = Forecaster(seasons=seasons), len(future)
    model.fit(series.X if series.X.shape[1] else None, series.y)
    ahead = model.forecast(steps, future)
    assert isinstance(ahead, Forecast)
    tested = str(model.backtest(steps, backtest)) if backtest else ""
    if series.dates is None or series.step is None:
        return ahead, tested
    following = series.step.after(series.dates[-1], steps, series.dates[0])
    return replace(ahead, dates=np.array([written(date, series.step) for date in following], dtype=object)), tested


def written(moment: datetime, step: Step) -> str:
    """Return a date as short as its step allows."""
    if step.unit == "month" and moment.day == 1 and moment.time() == moment.time().min:
        return f"{moment:%Y-%m}" if step.count % 12 else f"{moment:%Y}"
    if step.on_the_wall and moment.time() == moment.time().min:
        return f"{moment:%Y-%m-%d}"
    return moment.isoformat()
