"""Convert a field to a number, a category or a date, with the same rules for all file formats."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from onlinegp.columns import plan
from onlinegp.columns.dates import are_dates, moment, no_date
from onlinegp.columns.encoders import MISSING
from onlinegp.streams.number_text import complaint, not_a_number, outsized, text

Reader = Callable[[Any], tuple[Any, str | None]]  # takes a field; returns its cell, and what is wrong with it


def number_reader(read: Callable[[Any], float], judge: Callable[[float], str | None]) -> Reader:
    """Return a reader of numbers. Missing numbers become NaN."""

    def cell(field: Any) -> tuple[float, str | None]:
        try:
            value = read(field)
        except (ValueError, TypeError, OverflowError):
            return np.nan, not_a_number(field)
        return value, judge(value)

    return cell


def feature_reader(
    kind: str, read: Callable[[Any], float], *, optional: bool, format: str | None, codes: Sequence[str] = ()
) -> Reader:
    """Return the reader for a kind of feature. With `optional`, values may be missing; for `codes` see `is_missing`."""
    if kind == "number":
        return number_reader(read, outsized if optional else complaint)

    def cell(field: Any) -> tuple[Any, str | None]:
        if is_missing(field, codes):
            return None, None if optional else complaint(np.nan)
        try:
            return (moment(field, format) if kind == "date" else label(field)), None
        except (ValueError, OverflowError):
            return None, no_date(field, format) if kind == "date" else "is not a text, a number or a truth value"

    return cell


def is_missing(field: Any, codes: Sequence[str] = ()) -> bool:
    """Whether a field means missing. `codes` are additional texts that mean missing."""
    return field is None or (isinstance(field, str) and field.strip(" \t") in (*MISSING, *codes))


def label(field: Any) -> str:
    """Return the category in a field: its stripped text, "true" or "false", or a number as text."""
    if isinstance(field, str):
        return field.strip(" \t")
    if isinstance(field, bool):
        return "true" if field else "false"
    if isinstance(field, (int, float)) and (found := text(float(field))) is not None:
        return found
    raise ValueError(field)


def cells(column: Iterable[Any], read: Reader) -> list[Any] | None:
    """Return the cells of a column, or None if a field is wrong."""
    known: dict[Any, Any] = {}
    for field in set(column):
        known[field], wrong = read(field)
        if wrong:
            return None
    return [known[field] for field in column]


def kind_of(values: Sequence[Any], date_format: str | None, *, numeric: bool = False) -> str:
    """Return the kind of a column from some of its values: number, date, category, or "" for anything else.

    Numbers are dates only if the format matches: 20240131 is a date in %Y%m%d.
    """
    present = [value for value in values if not is_missing(value)]
    if numeric and (date_format is None or not are_dates(present, date_format)):
        return "number"
    return plan.kind_of(present, date_format)
