"""The rate of false events: a number per row, or per day, converted with the times of the first rows."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any

import numpy as np

from onlinegp.checks import Array, probability
from onlinegp.columns.dates import likely_format, moment, seconds
from onlinegp.columns.time_steps import NotDates, parse_dates
from onlinegp.models.alarms.constants import NEAR, RECENT
from onlinegp.streams.reading.cell_types import is_missing
from onlinegp.streams.reading.source import Source

SECONDS = {"minute": 60.0, "hour": 3600.0, "day": 86400.0, "week": 604800.0, "month": 2629746.0}
FEWEST = 10  # minimum number of times to estimate the time between rows
USUAL = "0.001 is a usual choice: one false event in 1,000 rows. Or use a rate in time, such as 1/day."


def detector_parameters(flag: str, source: Source, *, by: str | None, time: str | None) -> dict[str, Any]:
    """Return the parameters of a detector: `rate` per row and, if a day is a whole number of rows, the season.

    Parameters
    ----------
    flag : the option --flag, such as 0.001 per row, or 1/day over all keys together
    by, time : the columns of the key and of the time, if there are any
    """
    pace = _pace(source, by, time)
    season = round(SECONDS["day"] / pace[1]) if pace and pace[1] > 0.0 else 0
    daily = {"season": season, "daily": True} if NEAR < season <= RECENT else {}
    return {"rate": rate_of(flag, None if pace is None else pace[0]), **daily}


def rate_of(flag: str, spacing: float | None) -> float:
    """Return the rate per row for a --flag such as 0.001 or 1/day. spacing: the time between rows, in seconds."""
    number, slash, unit = flag.partition("/")
    try:
        count = float(number)
    except ValueError:
        raise ValueError(f"--flag must be a number of events per row, or per day, got {flag!r}. {USUAL}") from None
    if not slash:
        return probability(USUAL, **{"--flag": count})
    if unit not in SECONDS:
        raise ValueError(f"--flag must be per {', '.join(SECONDS)}, got {flag!r}. {USUAL}")
    if spacing == 0.0:
        raise ValueError(
            f"--flag {flag} requires times that increase, but those of the first rows do not, as if many keys reported "
            f"at the same time. Give a rate per row: --flag 0.001."
        )
    if spacing is None:
        raise ValueError(
            f"--flag {flag} requires times, but the first rows have no column of increasing times. "
            f"Give a rate per row: --flag 0.001, or the format of the times: --date-format."
        )
    rate = count * spacing / SECONDS[unit]
    if not 0.0 < rate < 0.5:
        raise ValueError(
            f"--flag {flag} is {rate:.3g} events per row, because rows are {spacing:g} seconds apart. It must be "
            f"less than one event in two rows. {USUAL}"
        )
    return rate


def time_column(source: Source, order: str | None, date_format: str | None) -> str | None:
    """Return the column of the time: that of the order, or the first one that holds dates.

    Dates by ISO 8601 or by the format count first, then those of a common form, and seconds since 1970.
    """
    names = [order] if order is not None else source.names
    dates = next((name for name in names if source.kind(name, date_format) == "date"), None)
    if dates is not None or date_format is not None:
        return dates
    return next((name for name in names if np.isfinite(_other_times(source, name)).sum() >= FEWEST), None)


def _pace(source: Source, by: str | None, time: str | None) -> tuple[float, float] | None:
    """Return the time between rows, and between rows of a key, in seconds; 0 if unknown."""
    if time is None:
        return None
    format = source.columns.date_format
    plain = source.kind(time, format) == "date"
    when = _seconds(source.samples[time], format) if plain else _other_times(source, time)
    if np.isfinite(when).sum() < FEWEST:
        return None
    keys = [0] * len(when) if by is None else list(source.samples[by])
    of_keys: dict[Any, list[float]] = {}
    for key, t in zip(keys, when.tolist(), strict=True):
        of_keys.setdefault(key, []).append(t)
    steps = np.concatenate([np.diff(times) for times in of_keys.values()])
    steps = steps[steps > 0.0]
    own = float(np.median(steps)) if len(steps) else 0.0
    known = when[np.isfinite(when)]
    return (own if by is None else float(known.max() - known.min()) / (len(known) - 1)), own


def _other_times(source: Source, name: str) -> Array:
    """Return the seconds of times since 1970, if the name says that it is a time, or of dates in a common format."""
    values = source.samples[name]
    present = [value for value in values if not is_missing(value)]
    if not source.numeric[name]:
        format = likely_format(present)
        return _seconds(values if format else [], format)
    if not source.is_key(name):
        return np.empty(0)
    found = np.full(len(values), np.nan)
    with suppress(NotDates):
        found[[not is_missing(value) for value in values]] = seconds(parse_dates(present))
    return found


def _seconds(values: Sequence[Any], format: str | None) -> Array:
    found: list[datetime | None] = []
    for value in values:
        try:
            found.append(moment(value, format))
        except (ValueError, TypeError):
            found.append(None)
    return seconds(found)
