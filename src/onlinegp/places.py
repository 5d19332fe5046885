"""The place of an event in the order of its key: a number or a text, which is newer or not than the last one."""

from __future__ import annotations

import re
from collections.abc import Hashable, Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

FRACTION = re.compile(r":\d\d[.,](\d+)")  # of a second, of which Python keeps six digits


def checked_places(order: Sequence[Any]) -> list[Any]:
    """Return places that can be compared and stored, as Python has them, or raise an error."""
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
    """Return which events come after the last one of their key, and put these into `last`; nothing if one cannot be."""
    found, latest = np.empty(len(keys), dtype=bool), dict[Any, Any]()
    for i, (key, place) in enumerate(zip(keys, places, strict=True)):
        before = latest.get(key, last.get(key))
        if before is not None and isinstance(place, str) != isinstance(before, str):
            raise ValueError(
                f"order must be all numbers or all texts, got {place!r} for the key {key!r}, whose last is {before!r}. "
                f"Convert them, or begin a new fleet."
            )
        found[i] = before is None or place > before
        if found[i]:
            latest[key] = place
    last.update(latest)
    return found


def instant(text: str) -> str:
    """Return a time with an offset as one of UTC, whose texts are in the order of time; any other text as it is."""
    try:
        moment = datetime.fromisoformat(text.strip(" \t"))
        if moment.tzinfo is None:
            return text
        seconds = moment.astimezone(UTC).replace(microsecond=0, tzinfo=None).isoformat()
    except (ValueError, OverflowError):
        return text
    fraction = FRACTION.search(text)
    return f"{seconds}.{fraction[1] if fraction else '':0<9}Z"
