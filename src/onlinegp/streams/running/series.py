"""Arrange the rows of a file into series with a constant time step, and forecast them."""

from __future__ import annotations

import re
from collections import Counter
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
from onlinegp.streams.errors import BadData, BadRow, listed
from onlinegp.streams.reading.source import Columns, Source

TIME_NAMES = (
    *("time", "timestamp", "date", "datetime", "ds", "ts", "epoch", "unix", "unixtime"),
    *("year", "quarter", "month", "week", "day", "hour", "period"),
)
SHOWN_LINES = 5
GAPS = ("missing", "ignore", "refuse")
MAX_GRID = 1_000_000  # largest number of rows of a series, including missing rows
Talk = Callable[[str], None]


@dataclass
class Table:
    """The rows of a file: values, inputs, times as text, and keys."""

    y: Array
    X: Array
    times: list[Any] | None
    keys: list[Any] | None
    lines: NDArray[np.int64]  # line numbers in the file


@dataclass
class Series:
    """A series with a constant time step. Missing values are NaN; inputs of such rows are zero and not used."""

    key: Any
    y: Array
    X: Array
    dates: list[datetime] | None = None  # dates of the rows that were read
    step: Step | None = None
    consecutive: bool = False  # whether gaps between the dates are ignored

    @property
    def usual_steps(self) -> int:
        return self.step.usual_steps if self.step is not None else max(1, min(48, max(6, len(self.y) // 10)))

    def following(
        self, rows: NDArray[np.int64], moments: list[datetime] | None
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return which of these rows of a table come after the series, and how many steps after its last row."""
        if moments is None or self.dates is None or self.step is None:
            return rows, np.arange(1, len(rows) + 1)
        places = np.rint(self.step.places([self.dates[-1], *(moments[i] for i in rows)])[1:]).astype(np.int64)
        if self.consecutive:
            order = np.argsort(places, kind="stable")
            rows, places = rows[order], places[order]
            rows = rows[places > 0]
            return rows, np.arange(1, len(rows) + 1)
        return rows[places > 0], places[places > 0]

    def lack(self, rows: int, missing: NDArray[np.int64], steps: int | None, dated: bool) -> str:
        """Return what is wrong with a table of next rows, given its number of rows and the missing places."""
        if dated and self.dates is not None and self.step is not None and not self.consecutive:
            last = written(self.dates[-1], self.step)
            if not rows:
                return f"no row is after {last}, the last of the series. Add the rows of the next dates."
            date = written(self.step.after(self.dates[-1], int(missing[0]))[-1], self.step)
            return f"there is no row for {date}. Add it, or use fewer --steps."
        return f"there are {rows} next rows, but --steps is {steps}. Use fewer --steps." if steps else "no next rows."


def read_table(
    source: Source, *, target: str | None, time: str | None, by: str | None, features: tuple[str, ...] = ()
) -> tuple[Table, Columns]:
    """Read all rows of a source. If `time` is None, the first column of dates is the time."""
    for name in (target, time, by, *features):
        if name is not None and name not in source.names:
            raise ValueError(f"there is no column {name!r} in {source.path}. Its columns: {listed(source.names)}.")
    time = time or _time_column(source, {target, by, *features})
    numbers = [name for name in source.names if source.numeric[name] and name not in (time, by, *features)]
    for name in features:
        if not source.numeric[name]:
            raise ValueError(
                f"--features {name}: inputs of a forecast must be numbers, but this column contains text. "
                "Write a column of 0 and 1 for each of its values, such as each holiday."
            )
    if target is None and not numbers:
        raise BadData(f"{source.path} has no column of numbers to forecast. Its columns: {listed(source.names)}.")
    keys = tuple(name for name in (time, by) if name)
    columns = Columns(target or numbers[-1], features, keys, na_values=source.na_values)
    source.select(columns)
    y, X, by_name, _ = _rows_of(source, columns)
    first = 2 if source.has_header else 1
    lines = np.arange(first, first + len(y), dtype=np.int64)
    return Table(y, X, by_name.get(time or ""), by_name.get(by or ""), lines), columns


def _rows_of(
    source: Source, columns: Columns, *, until_error: bool = False
) -> tuple[Array, Array, dict[str, list[Any]], BadRow | None]:
    """Return targets, features and the values of each key column; and the bad row after them, if that is allowed."""
    source.select(columns)
    y, X, texts = [np.empty(0)], [np.empty((0, len(columns.features)))], [[] for _ in columns.keys]  # type: ignore[var-annotated]
    error = None
    for block in source:
        y.append(block.y)
        X.append(block.X)
        for own, values in zip(texts, block.keys, strict=True):
            own.extend(values.tolist() if hasattr(values, "tolist") else values)
        error = block.error
        if error is not None and not until_error:
            raise BadData(error.message(source.path))
    return np.concatenate(y), np.concatenate(X), dict(zip(columns.keys, texts, strict=True)), error


def next_inputs(
    source: Source, columns: Columns, series: list[Series], *, by: str | None, steps: int | None, zone: tzinfo | None
) -> list[Array]:
    """Return the inputs of the next rows of each series, (steps, d), from a table with all of them.

    Rows of a table with the column of dates are found by date; otherwise they are the next rows, in their order.
    """
    time = next((name for name in columns.keys if name != by and name in source.names), None)
    needed = (*columns.features, *((by,) if by else ()))
    for name in needed:
        if name not in source.names:
            raise ValueError(f"the model needs the column {name!r}. {source.path} has: {listed(source.names)}.")
    keys = tuple(name for name in (time, by) if name)
    _, X, by_name, error = _rows_of(source, replace(columns, target=None, keys=keys), until_error=True)
    owners = [str(key) for key in by_name[by]] if by else [""] * len(X)
    moments = _dates_of_next(by_name[time], zone, owners, source.path) if time else None
    rows: dict[str, list[int]] = {}
    for i, owner in enumerate(owners):
        rows.setdefault(owner, []).append(i)
    found = []
    for one in series:
        own = np.array(rows.get(str(one.key) if by else "", []), dtype=np.int64)
        own, places = one.following(own, moments)
        last = steps or int(places.max(initial=0))
        missing = np.setdiff1d(np.arange(1, last + 1), places)
        if len(missing) or not last:
            name = f"{by} {one.key}: " if by else ""
            if error is not None:
                raise BadData(f"{name}{error.message(source.path)}")
            raise BadData(f"{source.path}: {name}{one.lack(len(own), missing, steps, moments is not None)}")
        at = np.empty(last, dtype=np.int64)
        near = places <= last
        at[places[near] - 1] = own[near]  # of two rows with the same date, the later one counts
        found.append(X[at])
    return found


def _dates_of_next(texts: list[Any], zone: tzinfo | None, owners: list[str], path: str) -> list[datetime]:
    try:
        return parse_dates(texts, zone, owners) if texts else []
    except NotDates as error:
        raise BadData(f"{path}: {error}") from None


def _time_column(source: Source, taken: set[str | None]) -> str | None:
    """Return the first column of dates. Numbers are dates only if the name of the column says so."""
    for name in source.names:
        values = [value for value in source.samples[name] if value not in ("", None)]
        words = re.split(r"[^a-z]+", name.lower())  # "open_time" contains "time", too
        if name in taken or not values or (source.numeric[name] and not set(words) & set(TIME_NAMES)):
            continue
        try:
            parse_dates(values)
        except NotDates:
            continue
        return name
    return None


def series_of(table: Table, gaps: str, zone: tzinfo | None, path: str, talk: Talk) -> list[Series]:
    """Return the series of a table, one for each key."""
    dates = None if table.times is None else _dates(table, zone, path)
    keys = table.keys if table.keys is not None else [None] * len(table.y)
    rows: dict[Any, list[int]] = {}
    for i, key in enumerate(keys):
        rows.setdefault(key, []).append(i)
    series = [_series(key, np.array(own), table, dates, gaps, path, talk) for key, own in rows.items()]
    steps = Counter(one.step for one in series if one.step is not None)
    if steps:  # a series of one row has the step of most others
        usual = steps.most_common(1)[0][0]
        series = [replace(one, step=usual) if one.step is None and len(one.y) == 1 else one for one in series]
    return series


def _dates(table: Table, zone: tzinfo | None, path: str) -> list[datetime]:
    assert table.times is not None
    try:
        return parse_dates(table.times, zone, table.keys)
    except NotDates:
        for text, line in zip(table.times, table.lines, strict=True):
            try:
                parse_dates([text], zone)
            except NotDates as error:
                raise BadData(f"{path}, line {line}: {error} Leave the row out, or use another --time.") from None
        raise BadData(f"{path}: the dates have several formats. Use only one, such as 2024-01-31.") from None


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
        return Series(key, y, X, own)
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
        return Series(key, y[last], X[last], own, step, consecutive=True)
    if places[-1] >= MAX_GRID:
        cut = int(np.argmax(np.diff(places))) + 1
        odd = lines[order[:cut] if 2 * cut <= len(order) else order[cut:]]
        raise BadData(
            f"{path}: {name}{places[-1] + 1:,} rows {step} from {own[0]} to {own[-1]}. If a clock was wrong, "
            f"correct or remove its rows, such as line {odd[0]}. Otherwise use --gaps ignore."
        )
    grid, inputs = np.full(places[-1] + 1, np.nan), np.zeros((places[-1] + 1, X.shape[1]))
    grid[places], inputs[places] = y, X  # if two rows have the same time, the later row counts
    return Series(key, grid, inputs, own, step)


def _averages(y: Array, places: NDArray[np.int64]) -> Array:
    """Return the mean of the values at each place. NaN without values."""
    known = np.isfinite(y)
    count = np.bincount(places[known], minlength=places.max() + 1)
    with np.errstate(invalid="ignore"):
        return np.bincount(places[known], y[known], minlength=places.max() + 1) / count


def _in_order(
    name: str, step: Step, dates: list[datetime], lines: NDArray[np.int64], gaps: str, path: str, talk: Talk
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the order of rows in time, and their row numbers in the series.

    Report rows that are missing, duplicated or out of order. With gaps="refuse", raise an error instead.
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
            "at the time of another row",
            sorted_lines[1:][jumps == 0],
            int((jumps == 0).sum()),
            f"The later row counts.{several}",
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
    an_hour = (jumps == 0) | ((jumps - 1) * step.count == 3600)  # is there twice, or missing
    if _at_a_clock_change([dates[i] for i in order[1:][an_hour]], step):
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
    """Return the forecast of the rows with these inputs (steps, d), with dates, and the table of a backtest.

    If one of several series is too short for the backtest, return the reason in place of its table.
    """
    model, steps = Forecaster(seasons=seasons), len(future)
    model.fit(series.X if series.X.shape[1] else None, series.y)
    ahead = model.forecast(steps, future)
    assert isinstance(ahead, Forecast)
    try:
        tested = str(model.backtest(steps, backtest)) if backtest else ""
    except ValueError as error:
        if series.key is None:
            raise
        tested = f"not tested: {error}"
    if series.dates is None or series.step is None:
        return ahead, tested
    following = series.step.after(series.dates[-1], steps)
    return replace(ahead, dates=np.array([written(date, series.step) for date in following], dtype=object)), tested


def written(moment: datetime, step: Step) -> str:
    """Format a date, as short as the time step allows."""
    if step.unit == "month" and step.day == 1 and not step.weekdays and moment.time() == moment.time().min:
        return f"{moment:%Y-%m}" if step.count % 12 else f"{moment:%Y}"
    if step.on_the_wall and moment.time() == moment.time().min:
        return f"{moment:%Y-%m-%d}"
    return moment.isoformat()
