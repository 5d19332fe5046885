"""Read Parquet with pyarrow. A position in the input is a row number."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from onlinegp.checks import Array
from onlinegp.streams.errors import BadData, BadRow, other_input, short
from onlinegp.streams.number_text import need_arrow
from onlinegp.streams.reading.lines import file_checksum
from onlinegp.streams.reading.rows import RowCollector
from onlinegp.streams.reading.source import PROBE, Block, Columns, Source, infinite_or_missing, named_like_a_time


class ParquetSource(Source):
    """Rows from a Parquet file. Columns of numbers are read as float64; other columns keep their type."""

    def __init__(self, path: str, *, rows: int, resumable: bool = False, na_values: tuple[str, ...] = ()) -> None:
        pa = need_arrow("reading Parquet")
        from pyarrow import parquet

        if not Path(path).is_file():
            if path == "-" or Path(path).exists():
                raise ValueError(f"{path} is not a regular file. Parquet cannot be read from a pipe.")
            raise FileNotFoundError(f"there is no file {path}. Check the name.")
        self.path, self._rows, self._row, self.notes = path, rows, 0, []
        self.na_values = na_values
        self._checksum = file_checksum(path) if resumable else 0
        with self._errors():
            self._file = parquet.ParquetFile(path)
            schema = self._file.schema_arrow
        self.names = schema.names
        if len(set(self.names)) < len(self.names):
            raise BadData(f"{path} has two columns of the same name. Rename one column.")
        kinds = pa.types
        self.numeric = {
            field.name: kinds.is_integer(field.type) or kinds.is_floating(field.type) or kinds.is_decimal(field.type)
            for field in schema
        }

    @cached_property
    def samples(self) -> Mapping[str, Sequence[Any]]:  # type: ignore[override]
        """The first values of the columns that are not numeric, or may be times."""
        names = [name for name in self.names if not self.numeric[name] or named_like_a_time(name)]
        with self._errors():
            batch = next(self._file.iter_batches(PROBE, columns=names), None) if names else None
        found: dict[str, Sequence[Any]] = {} if batch is None else {name: _values(batch.column(name)) for name in names}
        return {name: found.get(name, ()) for name in self.names}

    def type_of(self, name: str) -> type | None:
        if not self.numeric[name]:
            return super().type_of(name)
        import pyarrow

        return int if pyarrow.types.is_integer(self._file.schema_arrow.field(name).type) else float

    def select(self, columns: Columns) -> None:
        text = [name for name in columns.numbers if not self.numeric[name]]
        if text:
            raise BadData(f"{self.path}: the column {short(text[0])!r} contains no numbers. Choose another column.")
        super().select(columns)

    def _place(self) -> dict[str, int]:
        return {"row": self._row, "checksum": self._checksum}

    def _seek(self, place: dict[str, int]) -> None:
        row = place.get("row", -1)
        if place.get("checksum") != self._checksum or not 0 <= row <= self._file.metadata.num_rows:
            raise other_input(self.path, "it has changed since")
        self._row = row

    def rows_at_most(self, limit: int) -> int:
        return min(limit, self._file.metadata.num_rows)

    def close(self) -> None:
        self._file.close()

    def _blocks(self) -> Iterator[Block]:
        names = list(dict.fromkeys([*self.columns.numbers, *self.columns.texts, *self.columns.keys]))
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
        if not columns.plain:
            return self._careful_block(batch, before)
        X = np.empty((len(batch), len(columns.features)))
        for j, name in enumerate(columns.features):
            X[:, j] = columns.without_codes(_floats(batch.column(name)))
        y = np.full(len(batch), np.nan)
        if columns.target is not None:
            y = columns.without_codes(_floats(batch.column(columns.target)))
        block = Block(X, y, [_text(batch.column(name)) for name in columns.keys])
        return self._careful_block(batch, before) if infinite_or_missing(X, y) else block

    def _careful_block(self, batch: Any, before: int) -> Block:
        """Read the block row by row, because features are not all plain numbers or a row may be bad."""
        names = list(dict.fromkeys([*self.columns.numbers, *self.columns.texts]))
        fields = {n: _floats(batch.column(n)) if self.numeric[n] else _values(batch.column(n)) for n in names}
        rows = RowCollector(replace(self.columns, keys=()), float, skip_bad=self.skip_bad)
        good = []
        for i in range(len(batch)):
            line = before + i + 1
            before_it = len(rows.y)
            going = rows.add({name: fields[name][i] for name in names}, line, "")
            good.append(len(rows.y) > before_it)
            if not going:
                break
        block = rows.block()
        block.keys = [_picked(_text(batch.column(name)), good) for name in self.columns.keys]
        block.rejected = [self._with_text(bad, batch, before) for bad in block.rejected]
        block.error = block.error and self._with_text(block.error, batch, before)
        return block

    def _with_text(self, bad: BadRow, batch: Any, before: int) -> BadRow:
        row = batch.slice(bad.line - before - 1, 1).to_pylist()[0]
        return replace(bad, value=str(row[bad.column]), text=str(row))

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Convert the errors that pyarrow raises on a damaged file to BadData."""
        import pyarrow

        try:
            yield
        except (pyarrow.ArrowException, OSError, ValueError) as error:
            if isinstance(error, BadData):
                raise
            raise BadData(f"{self.path} cannot be read as Parquet: {error}") from None


def _floats(column: Any) -> Array:
    """Return numbers as float64. Numbers with more digits than a float64 are rounded."""
    import pyarrow

    cast = column.cast(pyarrow.float64(), safe=False)
    return np.array(cast.to_numpy(zero_copy_only=False), dtype=np.float64)


def _values(column: Any) -> list[Any]:
    """Return a column as Python objects; times are rounded to microseconds."""
    import pyarrow

    if pyarrow.types.is_timestamp(column.type):
        column = column.cast(pyarrow.timestamp("us", column.type.tz), safe=False)
    return column.to_pylist()


def _text(column: Any) -> Any:
    """Return a key column as text, or as Python objects if pyarrow cannot convert it."""
    import pyarrow

    kinds = pyarrow.types
    plain = (kinds.is_primitive, kinds.is_string, kinds.is_large_string, kinds.is_decimal, kinds.is_null)
    return column if any(kind(column.type) for kind in plain) else column.to_pylist()


def _picked(key: Any, good: Any) -> Any:
    if isinstance(key, list):
        return [value for value, yes in zip(key, good, strict=False) if yes]
    return key.slice(0, len(good)).filter(good)
