"""Parse dates and times, and compute calendar features."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime
from typing import Any

import numpy as np

from onlinegp.checks import Array

COMMON = (
    *("%d.%m.%Y", "%d.%m.%Y %H:%M", "%d.%m.%Y %H:%M:%S", "%m/%d/%Y", "%d/%m/%Y"),
    *("%m/%d/%Y %H:%M", "%d/%m/%Y %H:%M", "%m/%d/%Y %H:%M:%S", "%d/%m/%Y %H:%M:%S", "%Y/%m/%d", "%Y/%m/%d %H:%M:%S"),
)  # formats that messages suggest; they are used only on request
EXAMPLES = "such as 2024-01-31 or 2024-01-31T23:59:00+01:00"
MONDAY = np.datetime64("1969-12-29", "D")
DAY = np.timedelta64(1, "D")
WAVES = (("hour", 24.0), ("weekday", 7.0), ("month", 12.0))  # the periodic parts of a date, and their periods


def moment(value: Any, format: str | None = None) -> datetime:
    """Return the date and time in a text in ISO 8601 or in `format`. Raise a ValueError if there is none."""
    if isinstance(value, datetime):
        return value
    if isinstance(value, date):
        return datetime(value.year, value.month, value.day)
    if not isinstance(value, str):
        raise ValueError(value)
    text = value.strip(" \t")
    if not text.isascii():
        raise ValueError(value)
    return datetime.fromisoformat(text) if format is None else datetime.strptime(text, format)


def no_date(value: Any, format: str | None) -> str:
    """Return why a value is not a date, with a remedy."""
    if format is not None:
        return f"is not a date in the format {format}"
    likely = likely_format([value])
    other = f"If it is a date, add --date-format '{likely}'" if likely else "For other formats add --date-format"
    return f"is not a date by ISO 8601, {EXAMPLES}. {other}"


def likely_format(values: Sequence[Any]) -> str | None:
    """Return the first common format that fits all values, or None."""
    texts = [value for value in values if isinstance(value, str)]
    if len(texts) < max(1, len(values)):
        return None
    return next((format for format in COMMON if all(_fits(text, format) for text in texts)), None)


def _fits(text: str, format: str | None) -> bool:
    try:
        moment(text, format)
    except ValueError:
        return False
    return True


def are_dates(values: Sequence[Any], format: str | None = None) -> bool:
    """Whether more than half of the values are dates. No value may be missing."""
    good = [isinstance(value, (str, date)) and (not isinstance(value, str) or _fits(value, format)) for value in values]
    return sum(good) * 2 > len(values)


def checked_format(format: str | None) -> str | None:
    """Return the format. Raise an error if a date in this format cannot be read again."""
    if format is None:
        return None
    sample = datetime(2021, 11, 23, 14, 35, 56)
    try:
        if datetime.strptime(sample.strftime(format), format).date() == sample.date():
            return format
    except ValueError:
        pass
    raise ValueError(
        f"date_format must name day, month and year, as in %d.%m.%Y or %m/%d/%y %H:%M, got {format!r}. "
        f"Leave it out for dates by ISO 8601, {EXAMPLES}."
    )


def seconds(moments: Sequence[datetime | None]) -> Array:
    """Return seconds since the beginning of 1970, (n,). NaN for missing values. Times without a zone are UTC."""
    offsets = [m.utcoffset() if m is not None else None for m in moments]
    shift = np.array([0.0 if o is None else o.total_seconds() for o in offsets])
    return (_walls(moments) - np.datetime64(0, "us")) / np.timedelta64(1, "s") - shift


def phases(moments: Sequence[datetime | None]) -> dict[str, Array]:
    """Return hour of the day, weekday (Monday is 0) and month of the year (January is 0), each (n,), in local time.

    Hours and months have fractions; weekdays are integers.
    """
    wall = _walls(moments)
    days, months = wall.astype("M8[D]"), wall.astype("M8[M]")
    return {
        "hour": (wall - days) / np.timedelta64(1, "h"),
        "weekday": ((days - MONDAY) / DAY) % 7.0,
        "month": (months - wall.astype("M8[Y]")) / np.timedelta64(1, "M") + ((days - months) / DAY) / 31.0,
    }


def _walls(moments: Sequence[datetime | None]) -> Any:
    """Return the local time, (n,) of datetime64."""
    plain = [None if m is None else np.datetime64(m.replace(tzinfo=None), "us") for m in moments]
    return np.array([np.datetime64("NaT", "us") if m is None else m for m in plain], dtype="M8[us]")
