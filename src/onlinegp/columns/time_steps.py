"""The times of a series: parse dates in common formats, find the time step, and return the next dates."""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, tzinfo
from typing import Any

import numpy as np
from numpy.typing import NDArray

FORMATS = (
    *("%Y-%m", "%Y/%m", "%b-%y", "%b-%Y", "%b %Y", "%B %Y", "%m/%Y", "%YM%m", "%d.%m.%Y", "%d.%m.%Y %H:%M"),
    *("%m/%d/%Y", "%d/%m/%Y", "%m/%d/%y", "%d/%m/%y", "%Y/%m/%d", "%Y%m%d", "%m/%d/%Y %H:%M", "%d/%m/%Y %H:%M"),
    *("%Y/%m/%d %H:%M", "%Y/%m/%d %H:%M:%S", "%d-%b-%y", "%d-%b-%Y", "%d %b %Y", "%b %d, %Y", "%B %d, %Y"),
)
QUARTER = re.compile(r"(\d{4})[- ]?[Qq]([1-4])")
# Units of epoch times: smallest number, largest number, units per second
EPOCHS = ((1e8, 1e11, 1.0), (1e11, 1e14, 1e3), (1e14, 1e17, 1e6), (1e17, 1e20, 1e9))
DAY = 86_400.0
OFF_GRID = 0.1  # rows are off the grid if they are farther away, in steps
MOST_OFF_GRID = 0.05  # largest share of rows off the grid
FEWEST_ON_GRID = 0.25  # smallest share of the grid that has rows, if its step is the shortest distance
TRADING_DAYS = 0.7  # smallest share of months whose first or last weekday is no holiday
UNEVEN = 2.0  # dates are uneven if a distance is larger than this many medians
UNITS = {60.0: "minute", 3600.0: "hour", DAY: "day", 7 * DAY: "week"}
ROUND_STEPS = (
    *(1.0, 2.0, 5.0, 10.0, 15.0, 30.0, 60.0, 120.0, 300.0, 600.0, 900.0, 1800.0),
    *(3600.0, 7200.0, 3 * 3600.0, 6 * 3600.0, 12 * 3600.0, DAY, 2 * DAY, 7 * DAY, 14 * DAY, 28 * DAY),
)  # seconds


class NotDates(ValueError):
    """Raised for values that are not dates in a known format."""


def parse_dates(values: Sequence[Any], zone: tzinfo | None = None, keys: Sequence[Any] | None = None) -> list[datetime]:
    """Return the dates in texts or numbers of one format: ISO 8601, "1949-01", "Jan-49", "2020Q1", epoch seconds, ...

    Dates without an offset are local times in `zone`, if it is given. If an hour occurs twice because the clock is put
    back, the second occurrence is the later hour. `keys` tells which series a date belongs to, if there are several.
    python-dateutil reads other formats, if it is installed.
    """
    texts = [str(value).strip() for value in values]
    keys = [None] * len(texts) if keys is None else keys
    if not texts:
        raise NotDates("there are no dates.")
    for read in (_numbers, _iso, _quarters, lambda texts: _by_format(texts, keys), _by_dateutil):
        moments = read(texts)
        if moments is not None:
            return _localized(moments, zone, keys)
    raise NotDates(f"{texts[0]!r} is not a date in a known format.")


def _numbers(texts: list[str]) -> list[datetime] | None:
    """Read years, and seconds, milliseconds, ... since 1970."""
    if all(re.fullmatch(r"[12]\d{3}(\.0*)?", text) for text in texts):
        return [datetime(int(text[:4]), 1, 1) for text in texts]
    try:
        numbers = np.array([float(text) for text in texts])
    except ValueError:
        return None
    for least, most, unit in EPOCHS:
        if np.all((numbers >= least) & (numbers < most)) and not re.fullmatch(r"[12]\d{7}", texts[0]):
            return [datetime.fromtimestamp(number / unit, UTC) for number in numbers.tolist()]
    return None


def _each(texts: list[str], read: Callable[[str], datetime]) -> list[datetime] | None:
    try:
        return [read(text) for text in texts]
    except (ValueError, OverflowError):
        return None


def _iso(texts: list[str]) -> list[datetime] | None:
    return None if re.fullmatch(r"\d{8}", texts[0]) else _each(texts, datetime.fromisoformat)


def _quarters(texts: list[str]) -> list[datetime] | None:
    found = [QUARTER.fullmatch(text) for text in texts]
    return [datetime(int(one[1]), 3 * int(one[2]) - 2, 1) for one in found if one] if all(found) else None


def _by_format(texts: list[str], keys: Sequence[Any]) -> list[datetime] | None:
    """Parse dates in a common format. If several formats fit, prefer ordered, then even dates, then the month first."""
    fitting = []
    for format in FORMATS:
        moments = _each(texts, lambda text, format=format: datetime.strptime(text, format))  # type: ignore[misc]
        if moments is not None:
            fitting.append(_in_the_past(moments) if "%y" in format else moments)
    return min(fitting, key=lambda moments: _disorder(moments, keys), default=None)


def _disorder(moments: list[datetime], keys: Sequence[Any]) -> tuple[int, bool]:
    """Return how many moments are before the previous one of their key, and whether some distances are far larger."""
    last: dict[Any, datetime] = {}
    gaps = []
    for key, moment in zip(keys, moments, strict=True):
        gaps.append((moment - last.get(key, moment)).total_seconds())
        last[key] = moment
    seconds = np.array(gaps)
    ahead = seconds[seconds > 0]
    return int((seconds < 0).sum()), len(ahead) > 0 and bool(ahead.max() > UNEVEN * np.median(ahead))


def _in_the_past(moments: list[datetime]) -> list[datetime]:
    """Choose the century of years with two digits such that the last date is not in the future."""
    if moments[-1].year <= datetime.now().year:
        return moments
    return [moment.replace(year=moment.year - 100) for moment in moments]


def _by_dateutil(texts: list[str]) -> list[datetime] | None:
    try:
        from dateutil import parser
    except ImportError:
        return None
    if not any(character.isdigit() for character in texts[0]) or re.fullmatch(r"[-+.,\d]+", texts[0]):
        return None
    start = datetime(1900, 1, 1)
    return _each(texts, lambda text: parser.parse(text, default=start))


def _localized(moments: list[datetime], zone: tzinfo | None, keys: Sequence[Any]) -> list[datetime]:
    """Return moments that have all a zone or all no zone."""
    if len({moment.tzinfo is None for moment in moments}) > 1:
        raise NotDates("some dates have an offset and some have none.")
    if zone is None:
        return moments
    if moments[0].tzinfo is not None:
        return [moment.astimezone(zone) for moment in moments]
    local, seen = [], set()
    for one in zip(keys, moments, strict=True):
        local.append(one[1].replace(tzinfo=zone, fold=int(one in seen)))
        seen.add(one)
    return local


@dataclass(frozen=True)
class Step:
    """The time between two rows.

    Attributes
    ----------
    unit : "month", "weekday" or "second"
    count : the number of units; days and weeks are given in seconds of the local clock
    day : of months: the day of the dates, as far as their months have it; 0 for that of the last date
    weekdays : of months: whether a Saturday or Sunday is replaced, by the weekday before the end or after the beginning
    """

    unit: str
    count: float
    day: int = 0
    weekdays: bool = False

    def __str__(self) -> str:
        if self.unit == "weekday":
            return "each weekday"
        if self.unit == "month":
            named = {1: "month", 3: "quarter", 12: "year"}
            return f"each {named[int(self.count)]}" if self.count in named else f"every {self.count:g} months"
        if self.count in UNITS:
            return f"each {UNITS[self.count]}"
        for seconds, name in sorted(UNITS.items(), reverse=True):
            if self.count % seconds == 0:
                return f"every {self.count / seconds:g} {name}s"
        return f"every {self.count:g} seconds"

    @property
    def on_the_wall(self) -> bool:
        """Whether the step is a day or longer. A local day counts as one day even if its clocks change."""
        return self.unit != "second" or self.count % DAY == 0

    @property
    def usual_steps(self) -> int:
        """The default number of steps of a forecast: 48 hours, 14 days, 13 weeks, 18 months, ..."""
        if self.unit == "month":
            return {1: 18, 3: 8}.get(int(self.count), 6)
        if self.unit == "weekday" or self.count >= DAY:
            return 13 if self.count == 7 * DAY else 14
        return 48

    def places(self, moments: Sequence[datetime]) -> NDArray[np.float64]:
        """Return the number of steps from the first moment to each moment."""
        if self.unit == "month":
            months = [12 * m.year + m.month for m in moments]
            return (np.array(months, dtype=np.float64) - months[0]) / self.count
        if self.unit == "weekday":
            days = np.array([m.date() for m in moments], dtype="M8[D]")
            return np.busday_count(days[0], days).astype(np.float64)
        seconds = np.array([self._seconds(m) for m in moments])
        return (seconds - seconds[0]) / self.count

    def _seconds(self, moment: datetime) -> float:
        if self.on_the_wall or moment.tzinfo is None:
            return moment.replace(tzinfo=UTC).timestamp()
        return moment.timestamp()

    def after(self, last: datetime, steps: int) -> list[datetime]:
        """Return the next dates. Steps of months keep the day of the month if possible, days keep the local time."""
        if self.unit == "month":
            months = [last.year * 12 + last.month - 1 + int(self.count) * k for k in range(1, steps + 1)]
            days = [_in_month(month // 12, month % 12 + 1, self.day or last.day, self.weekdays) for month in months]
            return [datetime.combine(day, last.timetz()) for day in days]
        if self.unit == "weekday":
            workdays = np.busday_offset(np.datetime64(last.date()), np.arange(1, steps + 1), roll="forward")
            return [datetime.combine(day, last.timetz()) for day in workdays.tolist()]
        if self.on_the_wall or last.tzinfo is None:
            return [last + timedelta(seconds=self.count * k) for k in range(1, steps + 1)]
        start = last.astimezone(UTC)
        return [(start + timedelta(seconds=self.count * k)).astimezone(last.tzinfo) for k in range(1, steps + 1)]


def _in_month(year: int, month: int, day: int, weekdays: bool) -> date:
    """Return a day of a month, or its last one; with `weekdays`, a weekday next to it in the month."""
    longest = monthrange(year, month)[1]
    found = date(year, month, min(day, longest))
    weekend = max(0, found.weekday() - 4) if weekdays else 0  # 1 on a Saturday, 2 on a Sunday
    return found + timedelta(days=-weekend if day >= longest else (3 - weekend) % 3)


def infer_step(moments: Sequence[datetime]) -> Step | None:
    """Return a time step that fits most of the dates, or None."""
    distinct = sorted(set(moments))
    if len(distinct) < 2:
        return None
    wall = np.array([m.replace(tzinfo=UTC).timestamp() for m in distinct])
    candidates = []
    months = np.diff([12 * m.year + m.month for m in distinct])
    of_months = None
    if np.median(np.diff(wall)) >= 27 * DAY and months.min() > 0:
        of_months = _step_of_months(distinct, float(np.gcd.reduce(months)))
        if of_months.day:
            candidates.append(of_months)
    days = np.diff(wall) / DAY
    if np.median(days) == 1.0 and len(days) >= 10 and np.all([m.weekday() < 5 for m in distinct]):
        candidates.append(Step("weekday", 1.0))
    absolute = np.diff([m.timestamp() if m.tzinfo else w for m, w in zip(distinct, wall, strict=True)])
    for gaps in (np.diff(wall), absolute):
        candidates.append(Step("second", float(np.median(gaps))))
    shortest = float(absolute.min())
    if shortest > 0.0 and len(distinct) >= FEWEST_ON_GRID * absolute.sum() / shortest:
        candidates.append(Step("second", shortest))
    for step in candidates:
        places = step.places(distinct)
        if np.mean(np.abs(places - np.rint(places)) > OFF_GRID) <= MOST_OFF_GRID:
            return step
    return of_months


def round_times(moments: Sequence[datetime]) -> tuple[Step, list[datetime]]:
    """Return a step of about the median distance, such as an hour, and the moments rounded to multiples of it."""
    seconds = np.array([moment.replace(tzinfo=UTC).timestamp() for moment in moments])
    usual = max(float(np.median(np.diff(np.unique(seconds)))), ROUND_STEPS[0])
    count = min(ROUND_STEPS, key=lambda step: abs(np.log(step / usual)))
    places = np.rint(seconds / count) * count
    rounded = [datetime.fromtimestamp(place, UTC).replace(tzinfo=moments[0].tzinfo) for place in places.tolist()]
    return Step("second", count), rounded


def _step_of_months(moments: Sequence[datetime], count: float) -> Step:
    """Return the step of dates in different months, with the day that most of them have, if there is one.

    A month is one of trading days if its last or first weekday is a holiday now and then.
    """
    latest = max(m.day for m in moments)
    for day, weekdays in ((31, False), (latest, False), (31, True), (1, True)):
        right = [m.day == _in_month(m.year, m.month, day, weekdays).day for m in moments]
        if np.mean(right) >= (TRADING_DAYS if weekdays else 1.0):
            return Step("month", count, day, weekdays)
    return Step("month", count)
