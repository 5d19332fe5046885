"""Decide which events are newer than the last event of their key, by an order of numbers or texts."""

from __future__ import annotations

import re
from collections.abc import Hashable, Sequence
from datetime import UTC, date, datetime, time
from typing import Any

import numpy as np
from numpy.typing import NDArray

FRACTION = re.compile(r"[.,](\d+)")  # fraction of a second, of which Python keeps only six digits
# Python accepts fractions of other units
OF_SECONDS = re.compile(r"(.*[^\d:+-])?(\d\d:\d\d:\d\d|\d{6})[.,]\d+([+-][\d:]*|Z)?")
DIGITS = 9  # digits of the fraction of a second
MONTH = re.compile(r"\d{4}-\d{2}")
TIME_OF_DAY = re.compile(r"\d\d:\d\d.*")
LIKE_A_TIME = re.compile(
    r"(?=.*\d)([0-9TtZzW:./,+\-\s]+|.*\b(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\b.*"
    r"|.*\d:\d\d.*|.*\d\s*[ap]\.?m\b.*)",
    re.IGNORECASE,
)
UTC_NAME = re.compile(r"\s*(UTC|GMT)$")  # an offset of zero


def checked_places(order: Sequence[Any]) -> list[Any]:
    """Return the order of events as plain Python values. Raise an error if they cannot be compared or stored."""
    places = order.tolist() if isinstance(order, np.ndarray) and order.dtype.kind in "iufUb" else list(order)
    for i, place in enumerate(places):
        if isinstance(place, np.generic) and not isinstance(place, np.datetime64 | np.timedelta64):
            place = places[i] = place.item()
        number = isinstance(place, int | float) and place == place
        if not (isinstance(place, str) or (number and (isinstance(place, float) or -(1 << 63) <= place < 1 << 63))):
            raise ValueError(
                f"order must hold texts, or numbers of 64 bits that are not NaN, got {place!r} "
                f"({type(place).__name__}). Convert a time to a number, or to a text by its isoformat()."
            )
    return places


def newer(last: dict[Any, Any], keys: Sequence[Hashable], places: Sequence[Any]) -> NDArray[np.bool_]:
    """Return which events come after the last event of their key, and update `last`. An error changes nothing."""
    found, latest = np.empty(len(keys), dtype=bool), dict[Any, Any]()
    for i, (key, place) in enumerate(zip(keys, places, strict=True)):
        before = latest.get(key, last.get(key))
        if before is not None and isinstance(place, str) != isinstance(before, str):
            raise ValueError(
                f"order must be all numbers or all texts, got {place!r} for the key {key!r}, whose last is {before!r}. "
                f"Convert them, or start a new fleet."
            )
        found[i] = before is None or place > before
        if found[i]:
            latest[key] = place
    last.update(latest)
    return found


def instant(text: str, format: str | None = None) -> str | None:
    """Convert a time in ISO 8601 or in `format` to a text in UTC, so that texts sort by time.

    A time without an offset is UTC. A text that does not look like a time is returned unchanged. The result is None if
    the text looks like a time but cannot be parsed, or cannot be sorted because of fractions of a nanosecond or a
    minute.
    """
    text = text.strip(" \t")
    if format is None and re.search(r"\d:\d\d", text):
        text = UTC_NAME.sub("+00:00", text)
    try:
        if format is not None:
            moment = datetime.strptime(text, format)
        elif TIME_OF_DAY.fullmatch(text):
            moment = datetime.combine(date.min, time.fromisoformat(text))
        else:
            moment = datetime.fromisoformat(f"{text}-01" if MONTH.fullmatch(text) else text)
        moment = moment if moment.tzinfo is None else moment.astimezone(UTC)
    except (ValueError, OverflowError):
        return None if not text or format is not None or LIKE_A_TIME.fullmatch(text) else text
    written = FRACTION.search(text) if format is None else None
    if written and not OF_SECONDS.fullmatch(text):  # a fraction of an hour, a minute or an offset
        return None
    fraction = (written[1] if written else f"{moment.microsecond:06d}").rstrip("0")
    seconds = moment.replace(microsecond=0, tzinfo=None).isoformat()
    return f"{seconds}.{fraction:0<{DIGITS}}Z" if len(fraction) <= DIGITS else None
