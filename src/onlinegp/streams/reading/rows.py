"""Collect rows into a block one at a time, and record the place and the reason of bad rows. Slow, but exact."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from onlinegp.streams.errors import BadRow, short
from onlinegp.streams.number_text import outsized
from onlinegp.streams.reading.cell_types import number_reader
from onlinegp.streams.reading.source import Block, Columns


class RowCollector:
    """Collect rows into a block. `add` returns False if a bad row ends the stream."""

    def __init__(self, columns: Columns, read: Callable[[Any], float], *, skip_bad: bool) -> None:
        self.columns, self.skip_bad = columns, skip_bad
        self.features, self.target = columns.readers(read), number_reader(columns.reader(read), outsized)
        self.X: list[list[Any]] = []
        self.y: list[float] = []
        self.keys: list[list[Any]] = [[] for _ in columns.keys]
        self.rejected: list[BadRow] = []
        self.error: BadRow | None = None

    def add(self, row: dict[str, Any], line: int, text: str) -> bool:
        """Add a row, given as {column: field}. If the row is bad, record it instead."""
        x = []
        for name, read in self.features:
            value, wrong = read(row.get(name))
            if wrong:
                return self.refuse(BadRow(line, name, _shown(row.get(name)), wrong, text))
            x.append(value)
        y, target = np.nan, self.columns.target
        if target is not None:
            y, wrong = self.target(row.get(target))
            if wrong:
                return self.refuse(BadRow(line, target, _shown(row.get(target)), wrong, text))
        self.X.append(x)
        self.y.append(y)
        for values, name in zip(self.keys, self.columns.keys, strict=True):
            values.append(row.get(name))
        return True

    def refuse(self, bad: BadRow) -> bool:
        if self.skip_bad:
            self.rejected.append(bad)
        else:
            self.error = bad
        return self.skip_bad

    def block(self) -> Block:
        X: Any = np.empty((len(self.y), len(self.columns.features)), dtype=self.columns.dtype)
        X[:] = np.array(self.X, dtype=X.dtype).reshape(X.shape)
        return Block(X, np.array(self.y, dtype=np.float64), self.keys, self.rejected, self.error)


def _shown(field: Any) -> str:
    return "" if field is None else short(str(field))
