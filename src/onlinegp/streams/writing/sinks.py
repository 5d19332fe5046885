"""Write predictions as CSV, JSON lines or Parquet. A resumed run can append to CSV and JSON lines."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from math import isfinite
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np

from onlinegp.checks import Array
from onlinegp.files.atomic import Replacement
from onlinegp.streams.errors import CheckpointError
from onlinegp.streams.number_text import arrow, floats, joined, need_arrow, texts

ADDED = ("mean", "std", "lower", "upper", "log_density")
FLAGGED = ("score", "tail", "event")
AHEAD = ("next_mean", "next_std", "next_lower", "next_upper")
STANDARD = ("-", "jsonl", "/dev/stdout")  # names of standard output: as CSV, as JSON lines, as CSV
SPECIAL = ',"\n\r'  # CSV fields with these characters need quotes


class Appended:
    """A file for appending: unbuffered, with a known length, truncated to a given length when a run resumes."""

    def __init__(self, path: str, *, keep: int = 0) -> None:
        self.path, self.length = "-" if path in STANDARD else path, keep
        if self.path == "-":
            self._file = cast(BinaryIO, sys.stdout.buffer)
            return
        mode = "r+b" if keep else "wb"
        try:
            self._file = cast(BinaryIO, open(path, mode, buffering=0))  # noqa: SIM115
        except FileNotFoundError:
            if keep:
                raise CheckpointError(_shorter(path, keep, 0)) from None
            raise FileNotFoundError(f"cannot write {path}: its folder does not exist. Create it first.") from None
        if keep:
            size = os.fstat(self._file.fileno()).st_size
            if size < keep:
                raise CheckpointError(_shorter(path, keep, size))
            self._file.truncate(keep)
            self._file.seek(keep)

    def write(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            try:
                view = view[self._file.write(view) :]
            except BrokenPipeError:
                raise
            except OSError as error:
                raise OSError(error.errno, f"cannot write {self.path}: {error.strerror}") from None
        if self.path == "-":
            self._file.flush()
        self.length += len(data)

    def sync(self) -> None:
        os.fsync(self._file.fileno())

    def close(self) -> None:
        if self.path != "-":
            self._file.close()


def _shorter(path: str, wanted: int, found: int) -> str:
    return (
        f"the checkpoint needs {wanted} bytes of {path}, which has {found}. "
        f"Restore the output, or start from scratch with an empty checkpoint folder."
    )


class CsvSink:
    """Write keys, target and predictions as CSV. Quote fields only if necessary."""

    def __init__(self, file: Appended, names: list[str]) -> None:
        self.file = file
        if file.length == 0:
            file.write((",".join(_quoted(name) for name in names) + "\n").encode())

    def write(self, keys: list[Any], added: list[Any]) -> None:
        columns = [*map(_csv_texts, keys), *(texts(c) if _is_numbers(c) else _csv_texts(c) for c in added)]
        prefixes = ["", *[","] * (len(columns) - 1)]
        self.file.write(joined(columns, prefixes, "\n", ""))

    def sync(self) -> None:
        self.file.sync()

    def close(self) -> None:
        self.file.close()


class JsonSink(CsvSink):
    """Write one JSON object per line. Missing values are null."""

    def __init__(self, file: Appended, names: list[str]) -> None:
        self.file = file
        self._prefixes = [f"{', ' if i else '{'}{json.dumps(name)}: " for i, name in enumerate(names)]

    def write(self, keys: list[Any], added: list[Any]) -> None:
        columns = [*map(_json_texts, keys), *(texts(_finite(c)) if _is_numbers(c) else _json_texts(c) for c in added)]
        self.file.write(joined(columns, self._prefixes, "}\n", "null"))


class ParquetSink:
    """Write Parquet to a temporary file, which is renamed when closed. It cannot be continued after a crash or error.

    `texts` are the names of the columns of text, for the schema of a file without rows.
    """

    ROWS = 1 << 16  # rows of a row group

    def __init__(self, path: str, names: list[str], texts: set[str]) -> None:
        need_arrow("writing Parquet")
        self._path, self._names, self._texts = path, names, texts
        self._writer: Any = None
        self._new: Replacement | None = None
        self._waiting: list[Any] = []
        self._failed = False

    def write(self, keys: list[Any], added: list[Any]) -> None:
        import pyarrow as pa

        def column(values: Any) -> Any:
            if _is_numbers(values):
                return floats(values)
            return pa.array(list(map(_plain, values)), pa.string()) if isinstance(values, list) else values

        columns = [column(values) for values in (*keys, *added)]
        self._waiting.append(pa.table(columns, names=self._names))
        if sum(map(len, self._waiting)) >= self.ROWS:
            with self._safe():
                self._flush()

    def _flush(self) -> None:
        import pyarrow as pa
        from pyarrow import parquet

        table = pa.concat_tables(self._waiting, promote_options="permissive")
        if self._new is None:
            self._new = Replacement(self._path)
            self._writer = parquet.ParquetWriter(self._new.file, table.schema)
        self._writer.write_table(table)
        self._waiting = []

    def sync(self) -> None:
        raise CheckpointError("Parquet output cannot be checkpointed. Write .csv or .jsonl, and convert it afterwards.")

    def close(self) -> None:
        if self._failed:
            return
        with self._safe():
            if self._writer is None and not self._waiting:
                self._waiting = [self._empty()]
            if self._waiting:
                self._flush()
            self._writer.close()
            assert self._new is not None
            self._new.complete()

    def _empty(self) -> Any:
        import pyarrow as pa

        return pa.table(
            {name: pa.array([], pa.string() if name in self._texts else pa.float64()) for name in self._names}
        )

    @contextmanager
    def _safe(self) -> Iterator[None]:
        """After an error, remove the temporary file, and name the output file in the error."""
        try:
            yield
        except BaseException as error:
            self._failed = True
            if self._new is not None:
                self._new.discard()
            if isinstance(error, OSError) and error.errno is not None:
                raise OSError(error.errno, f"cannot write {self._path}: {os.strerror(error.errno)}") from None
            raise


class NoSink:
    """Write nothing."""

    def write(self, keys: list[Any], added: list[Any]) -> None:
        pass

    def sync(self) -> None:
        pass

    def close(self) -> None:
        pass


Sink = CsvSink | JsonSink | ParquetSink | NoSink


def output_format(path: str | None) -> str:
    """Return csv, jsonl or parquet for a path; standard output is csv, or jsonl if named so.

    Raise an error for other extensions.
    """
    if path in (None, "-", "/dev/stdout", "/dev/full", "/dev/null"):
        return "csv"
    kinds = {
        ".csv": "csv",
        ".txt": "csv",
        ".jsonl": "jsonl",
        ".ndjson": "jsonl",
        ".json": "jsonl",
        ".parquet": "parquet",
    }
    suffix = ".jsonl" if path == "jsonl" else Path(str(path)).suffix.lower()
    if suffix not in kinds:
        raise ValueError(f"the output {path} must end in .csv, .jsonl or .parquet, or be - or jsonl: standard output.")
    return kinds[suffix]


def open_sink(
    path: str | None,
    inputs: tuple[str, ...],
    *,
    added: tuple[str, ...] = ADDED,
    keep: int = 0,
) -> Sink:
    """Return the sink for a path. With `keep`, truncate the file to this number of bytes and append.

    The columns are the copied inputs (keys and target), then `added`: arrays of numbers or lists of texts.
    """
    names = distinct(inputs, added)
    if path is None:
        return NoSink()
    format = output_format(path)
    if format == "parquet":
        return ParquetSink(path, names, {*names[: max(0, len(inputs) - 1)], "event"})
    return {"csv": CsvSink, "jsonl": JsonSink}[format](Appended(path, keep=keep), names)


def distinct(inputs: tuple[str, ...], added: tuple[str, ...]) -> list[str]:
    """Return distinct names for the columns of the output. Inputs named like an added column get longer names."""
    taken, given, names = {*inputs, *added}, set(added), []
    for name in inputs:
        if name in given:
            while name in taken:
                name = f"{name}_input"
            taken.add(name)
        given.add(name)
        names.append(name)
    return [*names, *added]


def _is_numbers(column: Any) -> bool:
    return isinstance(column, np.ndarray)


def _finite(column: Array) -> Array:
    return np.where(np.isfinite(column), column, np.nan)


def _plain(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return json.dumps(value) if isinstance(value, float) else _json(value)


def _quoted(text: str) -> str:
    if not any(mark in text for mark in SPECIAL):
        return text
    return '"' + text.replace('"', '""') + '"'


def _csv_texts(column: Any) -> Any:
    if isinstance(column, list):
        return [None if value is None else _quoted(_plain(value) or "") for value in column]
    pa = arrow()
    if column.type != pa.string():
        column = column.cast(pa.string())
    special = pa.compute.match_substring_regex(column, f"[{SPECIAL}]")
    return _csv_texts(column.to_pylist()) if pa.compute.any(special).as_py() else column


def _json_texts(column: Any) -> list[str]:
    values = column if isinstance(column, list) else column.to_pylist()
    return list(map(_json, values))


def _json(value: Any) -> str:
    """Return a value as JSON. NaN and infinity become null, because JSON has no such numbers."""
    try:
        return json.dumps(value, default=str, allow_nan=False)
    except ValueError:
        return json.dumps(_with_null(value), default=str)


def _with_null(value: Any) -> Any:
    if isinstance(value, list):
        return [_with_null(inner) for inner in value]
    if isinstance(value, dict):
        return {name: _with_null(inner) for name, inner in value.items()}
    return None if isinstance(value, float) and not isfinite(value) else value
