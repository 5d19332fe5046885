"""What becomes of one column: a number, a category or a date, as numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from onlinegp.checks import Array
from onlinegp.columns.dates import WAVES, phases, seconds


@dataclass(frozen=True)
class Number:
    """A column of numbers, as it is."""

    kind: ClassVar[str] = "number"

    @property
    def suffixes(self) -> tuple[str, ...]:
        return ("",)

    def encode(self, cells: Sequence[Any]) -> Array:
        """Return the numbers, (n, 1), NaN where they are missing."""
        return np.array(cells, dtype=np.float64)[:, None]


@dataclass(frozen=True)
class OneHot:
    """One column per category, 1 in the one that a row has and 0 elsewhere; every other category is 0 in all."""

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
    """The place of a category among the sorted ones, from 0; every other category comes after the last."""

    values: tuple[str, ...]
    kind: ClassVar[str] = "ordinal"

    @property
    def suffixes(self) -> tuple[str, ...]:
        return ("",)

    def encode(self, cells: Sequence[Any]) -> Array:
        return _codes(self.values, cells)[:, None]


@dataclass(frozen=True)
class Calendar:
    """Hour, weekday and month as points of a circle, and the days since the start.

    For a phase p of period P: sin(2 pi p / P) and cos(2 pi p / P), so that a period ends next to its beginning.
    Without `hours` all times are midnight, and the hour says nothing.
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
    """A column, what becomes of it, and what stands in for it where it is missing.

    `means` are those of its numbers over the first rows, None where a missing value is refused; with `flag` one more
    number tells whether it was missing.
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
    """Return the most frequent categories, sorted, at most `limit`, and how many there are in all."""
    counts = Counter(cell for cell in cells if cell is not None)
    return tuple(sorted(value for value, _ in counts.most_common(limit))), len(counts)


def _codes(values: tuple[str, ...], cells: Sequence[Any]) -> Array:
    """Return the place of each cell in `values`, their number for every other one, NaN if it is missing: (n,)."""
    place: dict[Any, float] = {value: float(i) for i, value in enumerate(values)}
    place[None] = np.nan
    other = float(len(values))
    return np.array([place.get(cell, other) for cell in cells], dtype=np.float64)
