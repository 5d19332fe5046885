"""Check the rows of a stream with keys: each row needs a key, and must be newer than the last row of its key."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, time
from decimal import Decimal
from functools import partial
from math import isfinite
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onlinegp.fleet.order import instant
from onlinegp.fleet.sqlite import TYPES
from onlinegp.fleet.sqlite_file import Key
from onlinegp.streams.errors import BadRow, short
from onlinegp.streams.number_text import number
from onlinegp.streams.reading.source import Block, Source

WHOLE = re.compile(r"[+-]?[0-9]+")


class LateRow(BadRow):
    """A row that is not newer than the last row of its key. `line` is the number of the row."""

    remedy = "Sort the rows of each key, or leave late rows out with --late drop"

    def message(self, path: str) -> str:
        where = f"{path}, row {self.line} of the data: {self.column}"
        return f"{where} {short(self.value)!r} {self.reason}. {self.remedy}."


class PlacelessRow(LateRow):
    """A row with a missing or invalid value in the column of --order."""

    remedy = (
        "Correct the row, give the format of times with --date-format, leave such rows out with --on-bad-row skip, or "
        "leave --order out"
    )


class KeylessRow(LateRow):
    """A row without a key, or with a key of another type than the first key."""

    remedy = "Correct the row, or leave such rows out with --on-bad-row skip"


Newer = Callable[[list[Key], list[Any]], NDArray[np.bool_]]  # which rows are newer than the last rows of their keys


@dataclass
class KeyRules:
    """The columns that hold the key and the order of a row, and the rules for their values.

    Parameters
    ----------
    source : Source
    by, order : str, str or None
        The column of the key, and the column that orders the rows of a key. Both are copied to the output.
    late : {"stop", "drop"}
        How to treat a row that is not newer than the last row of its key. Dropped rows go to the rejects.
    key_type : type, optional
        The type of the keys, str or int: 0 and "0" are different keys. If None, the first row decides.
    """

    source: Source
    by: str
    order: str | None = None
    late: str = "stop"
    key_type: type[Key] | None = None

    def keys(self, block: Block) -> list[Any]:
        """Return the key of each row."""
        return self._column(block, self.by)

    def stops(self, row: BadRow) -> bool:
        """Whether a bad row ends the run."""
        return self.late == "stop" if type(row) is LateRow else not self.source.skip_bad

    def wrong(self, block: Block, keys: list[Key], places: list[Any], before: int, newer: Newer) -> dict[int, BadRow]:
        """Return the bad rows by number: rows without a key or an order, or not newer than the last row of their key.

        `before` is the number of rows of the stream before the block.
        """
        keyless = {i: why for i, key in enumerate(keys) if (why := self._without_key(key))}
        wrong: dict[int, BadRow] = {
            i: KeylessRow(before + i + 1, self.by, _text(keys[i]), why, _text(keys[i])) for i, why in keyless.items()
        }
        if self.order is None:
            return wrong
        known = [i for i, place in enumerate(places) if place is not None and i not in keyless]
        numeric_order = self.source.numeric[str(self.order)]
        some, theirs = [keys[i] for i in known], [places[i] for i in known]
        fresh = newer(some, theirs)
        found: dict[int, tuple[type[LateRow], str]] = {
            i: (LateRow, f"is not newer than the last row of the key {short(str(keys[i]))!r}")
            for i, new in zip(known, fresh, strict=True)
            if not new
        }
        kind = "numbers of 64 bits" if numeric_order else "texts, or of times by ISO 8601 to the nanosecond"
        found |= {
            i: (PlacelessRow, f"cannot be compared in an order of {kind}") for i, p in enumerate(places) if p is None
        }
        values = self._column(block, self.order)
        return wrong | {
            i: row(before + i + 1, str(self.order), _text(values[i]), reason, f"{keys[i]},{_text(values[i])}")
            for i, (row, reason) in found.items()
            if i not in keyless
        }

    def _without_key(self, key: Any) -> str:
        """Return why a value cannot be a key, or "" if it can."""
        if key is None or key != key or (key == "" and self.source.empty_is_missing):
            return "is missing, so the row belongs to no model"
        kind: type[Key] = type(key)
        if kind not in TYPES or (kind is int and not -(1 << 63) <= key < 1 << 63):
            return "cannot be a key: keys are strings, or whole numbers of 64 bits"
        self.key_type = self.key_type or kind
        return "" if kind is self.key_type else f"is not like the keys before, which are {TYPES[self.key_type]}"

    def places(self, block: Block) -> list[Any]:
        """Return the values of the order column as numbers or texts. Missing and invalid values are None."""
        if self.order is None:
            return [None] * len(block)
        numeric = self.source.numeric[str(self.order)]
        read = partial(number, decimal=self.source.decimal)
        format = self.source.columns.date_format
        return [
            _number(value, read) if numeric else _moment(value, format) for value in self._column(block, self.order)
        ]

    def _column(self, block: Block, name: str | None) -> list[Any]:
        """Return a copied column."""
        column = block.keys[self.source.columns.keys.index(str(name))]
        return column if isinstance(column, list) else column.to_pylist()


def _text(value: Any) -> str:
    return "" if value is None else str(value)


def _number(value: Any, read: Callable[[str], float]) -> float | None:
    """Return a number, integers exactly. None for other values, and for integers of more than 64 bits."""
    if isinstance(value, str):
        text = value.strip(" \t")
        try:
            value = int(text) if WHOLE.fullmatch(text) else read(text)
        except ValueError:
            return None
    if isinstance(value, Decimal) and value.is_finite() and value == value.to_integral_value():
        value = int(value)
    if isinstance(value, int):
        return value if -(1 << 63) <= value < 1 << 63 else None
    return float(value) if isinstance(value, float | Decimal) and isfinite(value) else None


def _moment(value: Any, format: str | None) -> str | None:
    """Return a text, with times converted to UTC. None for other values."""
    if isinstance(value, str):
        return instant(value, format)
    return instant(value.isoformat()) if isinstance(value, date | time) else None


def selected(block: Block, which: NDArray[np.bool_]) -> Block:
    """Return the rows of a block selected by a mask."""

    def kept(column: Any) -> Any:
        return [value for value, keep in zip(column, which, strict=True) if keep] if isinstance(column, list) else (
            column.take(np.flatnonzero(which)))  # fmt: skip

    return Block(block.X[which], block.y[which], [kept(column) for column in block.keys], block.rejected, block.error)
