"""Open a file or a pipe as a source of rows, by its format."""

from __future__ import annotations

from onlinegp.streams.reading.csv_source import CsvSource
from onlinegp.streams.reading.json_source import JsonSource
from onlinegp.streams.reading.lines import BOM, Lines
from onlinegp.streams.reading.parquet_source import ParquetSource
from onlinegp.streams.reading.source import BLOCK_ROWS, Source


def open_source(
    path: str,
    *,
    format: str = "auto",
    delimiter: str = "auto",
    encoding: str = "utf-8",
    decimal: str = ".",
    na_values: tuple[str, ...] = (),
    rows: int = BLOCK_ROWS,
    resumable: bool = False,
) -> Source:
    """Open a path. The extension determines the format, or the first character: a brace means JSON lines.

    With `resumable`, later runs may continue from its positions, so an incomplete last line is left unread.
    """
    plain = path.lower().removesuffix(".gz")
    if format == "parquet" or (format == "auto" and plain.endswith((".parquet", ".pq"))):
        return ParquetSource(path, rows=rows, resumable=resumable, na_values=na_values)
    lines = Lines(path, rows=rows, resumable=resumable)
    if lines.peek(1).startswith(BOM):
        lines.skip(len(BOM))
    if format == "jsonl" or (format == "auto" and lines.peek(1).lstrip()[:1] == b"{"):
        return JsonSource(lines, na_values=na_values)
    return CsvSource(lines, delimiter=delimiter, encoding=encoding, decimal=decimal, na_values=na_values)
