"""Parquet, by pyarrow: a place in the input is a row."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from onlinegp.checks import Array
from onlinegp.streams.errors import BadData
from onlinegp.streams.numbers import need_arrow
from onlinegp.streams.reading.rows import RowCollector
from onlinegp.streams.reading.source import Block, Columns, Source, infinite_or_missing


class ParquetSource(Source):
    """Columns of numbers are read as float64; every other one passes through with its own type."""

    def __init__(self, path: str, *, rows: int) -> None:
        pa = need_arrow("reading Parquet")
        from pyarrow import parquet

        if path == "-":
            raise ValueError("Parquet cannot be read from standard input: its index is at the end. Pass a file.")
        if not Path(path).exists():
            raise FileNotFoundError(f"there is no file {path}. Check the name.")
        try:
            self._file = parquet.ParquetFile(path)
        except pa.ArrowInvalid as error:
            raise BadData(f"{path} is not a Parquet file: {error}") from None
        self.path, self._rows, self._row = path, rows, 0
        schema = self._file.schema_arrow
        self.names = schema.names
        kinds = pa.types
        self.numeric = {
            field.name: kinds.is_integer(field.type) or kinds.is_floating(field.type) or kinds.is_decimal(field.type)
            for field in schema
        }

    def select(self, columns: Columns) -> None:
        text = [name for name in columns.numbers if not self.numeric[name]]
        if text:
            raise BadData(f"{self.path}: the column {text[0]!r} does not hold numbers. Choose another one.")
        super().select(columns)

    @property
    def position(self) -> dict[str, int]:
        return {"row": self._row}

    def seek(self, position: dict[str, int]) -> None:
        self._row = position["row"]

    def rows_at_most(self, limit: int) -> int:
        return min(limit, self._file.metadata.num_rows)

    def fingerprint(self, size: int) -> int:
        return os.path.getsize(self.path)

    def close(self) -> None:
        self._file.close()

    def __iter__(self) -> Iterator[Block]:
        names = list(dict.fromkeys([*self.columns.numbers, *self.columns.keys]))
        skip = self._row
        for batch in self._file.iter_batches(self._rows, columns=names):
            if skip >= len(batch):
                skip -= len(batch)
                continue
            batch, skip = batch.slice(skip), 0
            before, self._row = self._row, self._row + len(batch)
            yield self._block(batch, before)

    def _block(self, batch: Any, before: int) -> Block:
        columns = self.columns
        X = np.empty((len(batch), len(columns.features)))
        for j, name in enumerate(columns.features):
            X[:, j] = _floats(batch.column(name))
        y = np.full(len(batch), np.nan) if columns.target is None else _floats(batch.column(columns.target))
        keys = [batch.column(name) for name in columns.keys]
        return self._careful(batch, before) if infinite_or_missing(X, y) else Block(X, y, keys)

    def _careful(self, batch: Any, before: int) -> Block:
        rows = RowCollector(
            self.columns, lambda value: np.nan if value is None else float(value), skip_bad=self.skip_bad
        )
        for i, row in enumerate(batch.to_pylist()):
            if not rows.add(row, before + i + 1, str(row)):
                break
        return rows.block()


def _floats(column: Any) -> Array:
    import pyarrow

    return np.array(column.cast(pyarrow.float64()).to_numpy(zero_copy_only=False), dtype=np.float64)
