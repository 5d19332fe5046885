"""Encodings of a column of numbers, categories or dates."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from onlinegp.checks import Array
from onlinegp.columns.dates import WAVES, phases, seconds

MISSING = ("", "NA", "N/A", "NaN", "nan", "NAN", "-nan", "null", "NULL", "None")  # texts that mean a missing value


@dataclass(frozen=True)
class Number:
    """A column of numbers, unchanged."""

    kind: ClassVar[str] = "number"

    @property
    def suffixes(self) -> tuple[str, ...]:
        return ("",)

    def encode(self, cells: Sequence[Any]) -> Array:
        """Return the numbers, (n, 1), with NaN for missing values."""
        return np.array(cells, dtype=np.float64)[:, None]


@dataclass(frozen=True)
class OneHot:
    """One column per category: 1 in the column of the category of a row, 0 elsewhere. Other categories are all 0."""

    values: tuple[str, ...]
    kind: ClassVar[str] = "onehot"

    @property
    def suffixes(self) -> tuple[str, ...]:
        return tuple(f"={value}" for value in self.values)

    def encode(self, cells: Sequence[Any]) -> Array:
        codes = _codes(self.values, cells)
        hot = (codes[:, None] == np.arange(len(self.values))).astype(np.float64)
        hot[np.isnan(codes)] = np.nan
        return hot


@dataclass(frozen=True)
class Ordinal:
    """The rank of a category in sorted order, from 0. Other categories have the next rank after the last."""

    values: tuple[str, ...]
    kind: ClassVar[str] = "ordinal"

    @property
    def suffixes(self) -> tuple[str, ...]:
        return ("",)

    def encode(self, cells: Sequence[Any]) -> Array:
        return _codes(self.values, cells)[:, None]


@dataclass(frozen=True)
class Calendar:
    """Hour, weekday and month as points on a circle, and the days since the start.

    A phase p of period P becomes sin(2 pi p / P) and cos(2 pi p / P), so that the end of a period is next to its start.
    `hours` is False if all times are midnight: then the hour is left out.
    """

    start: float  # seconds since 1970
    hours: bool
    kind: ClassVar[str] = "calendar"

    @property
    def waves(self) -> tuple[tuple[str, float], ...]:
        return WAVES if self.hours else WAVES[1:]

    @property
    def suffixes(self) -> tuple[str, ...]:
        return (*(f".{name}_{wave}" for name, _ in self.waves for wave in ("sin", "cos")), ".days")

    def encode(self, cells: Sequence[Any]) -> Array:
        phase = phases(cells)
        angles = [2.0 * np.pi * phase[name] / period for name, period in self.waves]
        circles = [wave(angle) for angle in angles for wave in (np.sin, np.cos)]
        return np.stack([*circles, (seconds(cells) - self.start) / 86400.0], axis=1)


Part = Number | OneHot | Ordinal | Calendar


@dataclass(frozen=True)
class Learned:
    """A column, its encoding, and the numbers that replace missing values.

    `means` are the means of the encoded numbers over the first rows, or None if a missing value is an error. With
    `flag`, an additional number marks missing values.
    """

    column: str
    part: Part
    means: tuple[float, ...] | None = None
    flag: bool = False

    @property
    def names(self) -> list[str]:
        flag = [f"{self.column}=missing"] if self.flag else []
        return [f"{self.column}{suffix}" for suffix in self.part.suffixes] + flag

    def encode(self, cells: Sequence[Any]) -> Array:
        """Return the numbers of a column, (n, width)."""
        X = self.part.encode(cells)
        missing = np.isnan(X[:, 0])
        if missing.any():
            if self.means is None:
                row = int(np.flatnonzero(missing)[0])
                raise ValueError(
                    f"column {self.column!r} has no value at row {row} (counted from 0). "
                    f"Use missing='impute', or drop the row."
                )
            X[missing] = self.means
        return np.column_stack([X, missing]) if self.flag else X


def categories(cells: Sequence[Any], limit: int) -> tuple[tuple[str, ...], int]:
    """Return the `limit` most frequent categories, sorted, and the number of all categories."""
    counts = Counter(cell for cell in cells if cell is not None)
    return tuple(sorted(value for value, _ in counts.most_common(limit))), len(counts)


def _codes(values: tuple[str, ...], cells: Sequence[Any]) -> Array:
    """Return the index of each cell in `values`, (n,): len(values) for other cells, and NaN for missing cells."""
    place: dict[Any, float] = {value: float(i) for i, value in enumerate(values)}
    for value in values:
        if value.lower() in ("true", "false"):  # JSON, pandas and R write booleans in three forms
            for form in (value.lower(), value.title(), value.upper()):
                place.setdefault(form, place[value])
    place[None] = np.nan
    other = float(len(values))
    return np.array([place.get(cell, other) for cell in cells], dtype=np.float64)
