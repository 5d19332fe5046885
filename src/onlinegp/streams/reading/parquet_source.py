"""Parquet, by pyarrow: a place in the input is a row."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from onlinegp.checks import Array
from onlinegp.streams.errors import BadData, BadRow, other_input, short
from onlinegp.streams.numbers import complaint, need_arrow, outsized
from onlinegp.streams.reading.lines import file_checksum
from onlinegp.streams.reading.source import Block, Columns, Source, infinite_or_missing


class ParquetSource(Source):
    """Columns of numbers are read as float64; every other one passes through with its own type."""

    def __init__(self, path: str, *, rows: int, resumable: bool = False) -> None:
        pa = need_arrow("reading Parquet")
        from pyarrow import parquet

        if not Path(path).is_file():
            if path == "-" or Path(path).exists():
                raise ValueError(f"{path} is not a file, and Parquet needs one: its index is at the end.")
            raise FileNotFoundError(f"there is no file {path}. Check the name.")
        self.path, self._rows, self._row, self.notes = path, rows, 0, []
        self._checksum = file_checksum(path) if resumable else 0
        with self._errors():
            self._file = parquet.ParquetFile(path)
            schema = self._file.schema_arrow
        self.names = schema.names
        if len(set(self.names)) < len(self.names):
            raise BadData(f"{path} names a column more than once. Rename one of them.")
        kinds = pa.types
        self.numeric = {
            field.name: kinds.is_integer(field.type) or kinds.is_floating(field.type) or kinds.is_decimal(field.type)
            for field in schema
        }

    def select(self, columns: Columns) -> None:
        text = [name for name in columns.numbers if not self.numeric[name]]
        if text:
            raise BadData(f"{self.path}: the column {short(text[0])!r} does not hold numbers. Choose another one.")
        super().select(columns)

    @property
    def position(self) -> dict[str, int]:
        return {"row": self._row, "checksum": self._checksum}

    def seek(self, position: dict[str, int]) -> None:
        row = position.get("row", -1)
        if position.get("checksum") != self._checksum or not 0 <= row <= self._file.metadata.num_rows:
            raise other_input(self.path, "it has changed since")
        self._row = row

    def rows_at_most(self, limit: int) -> int:
        return min(limit, self._file.metadata.num_rows)

    def close(self) -> None:
        self._file.close()

    def __iter__(self) -> Iterator[Block]:
        names = list(dict.fromkeys([*self.columns.numbers, *self.columns.keys]))
        skip = self._row
        batches = self._file.iter_batches(self._rows, columns=names)
        while True:
            with self._errors():
                batch = next(batches, None)
            if batch is None:
                return
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
        block = Block(X, y, [_text(batch.column(name)) for name in columns.keys])
        return self._without_bad_rows(block, batch, before) if infinite_or_missing(X, y) else block

    def _without_bad_rows(self, block: Block, batch: Any, before: int) -> Block:
        """Return the block up to its first bad row, or without any."""
        wrong = [self._wrong(x, y) for x, y in zip(block.X.tolist(), block.y.tolist(), strict=True)]
        bad = [
            BadRow(before + i + 1, name, str(batch.column(name)[i].as_py()), why, str(batch.slice(i, 1).to_pylist()[0]))
            for i, (name, why) in enumerate(wrong)
            if why
        ]
        stop = len(wrong) if self.skip_bad else bad[0].line - before - 1
        good = np.array([not why for _, why in wrong[:stop]], dtype=bool)
        keys = [_picked(key, good) for key in block.keys]
        picked = Block(block.X[:stop][good], block.y[:stop][good], keys)
        if self.skip_bad:
            picked.rejected = bad
        else:
            picked.error = bad[0]
        return picked

    def _wrong(self, x: list[float], y: float) -> tuple[str, str]:
        """Return the column of a row that cannot be used, and why; nothing if it can."""
        for name, value in zip(self.columns.features, x, strict=True):
            if why := complaint(value):
                return name, why
        return str(self.columns.target), outsized(y) or ""

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Whatever a damaged file makes pyarrow raise is about the data."""
        import pyarrow

        try:
            yield
        except (pyarrow.ArrowException, OSError, ValueError) as error:
            if isinstance(error, BadData):
                raise
            raise BadData(f"{self.path} cannot be read as Parquet: {error}") from None


def _floats(column: Any) -> Array:
    """Return numbers as float64, rounded where it has fewer digits, as those of a text are."""
    import pyarrow

    cast = column.cast(pyarrow.float64(), safe=False)
    return np.array(cast.to_numpy(zero_copy_only=False), dtype=np.float64)


def _text(column: Any) -> Any:
    """Return a key column, as Python objects where pyarrow cannot write it as text."""
    import pyarrow

    kinds = pyarrow.types
    plain = (kinds.is_primitive, kinds.is_string, kinds.is_large_string, kinds.is_decimal, kinds.is_null)
    return column if any(kind(column.type) for kind in plain) else column.to_pylist()


def _picked(key: Any, good: Any) -> Any:
    if isinstance(key, list):
        return [value for value, yes in zip(key, good, strict=False) if yes]
    return key.slice(0, len(good)).filter(good)
