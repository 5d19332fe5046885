"""CSV: a block at a time by pyarrow where it can, and row by row where a block holds anything odd."""

from __future__ import annotations

import contextlib
import csv
import re
import zlib
from abc import abstractmethod
from collections.abc import Iterator

import numpy as np

from onlinegp.streams.errors import BadData, BadRow
from onlinegp.streams.numbers import MISSING, arrow, number
from onlinegp.streams.reading.lines import Lines
from onlinegp.streams.reading.rows import RowCollector
from onlinegp.streams.reading.source import PROBE, Block, Columns, Source, infinite_or_missing

SMALL = 32  # rows below which Python is quicker than a call of pyarrow's reader
COUNTED = 1 << 22  # bytes of a file that are read ahead to count its rows
BOM = b"\xef\xbb\xbf"


class TextSource(Source):
    """What CSV and JSON lines share: a place in the input is a byte and a line."""

    def __init__(self, lines: Lines) -> None:
        self._lines = lines
        self.path = "standard input" if lines.pipe else lines.path
        self.live = lines.pipe
        self._start = self.position

    @property
    def position(self) -> dict[str, int]:
        return {"offset": self._lines.offset, "line": self._lines.line}

    def seek(self, position: dict[str, int]) -> None:
        self._lines.seek(position["offset"], position["line"])

    def rows_at_most(self, limit: int) -> int:
        if self._lines.pipe:
            return limit
        ahead = Lines(self._lines.path)
        rows, read = 0, 0
        for raw, _ in ahead:
            rows += raw.count(b"\n")
            read += len(raw)
            if rows > limit or read > COUNTED:
                return limit
        return min(limit, rows - self._lines.line)

    def fingerprint(self, size: int) -> int:
        if self._lines.pipe:
            return 0
        again = Lines(self._lines.path)
        head = again.peek(1)[: min(size, 1 << 16)]
        again.close()
        return zlib.crc32(head)

    def close(self) -> None:
        self._lines.close()

    def __iter__(self) -> Iterator[Block]:
        for raw, line in self._lines:
            block = self.parse(raw, line)
            if len(block) or block.rejected or block.error:
                yield block

    @abstractmethod
    def parse(self, raw: bytes, line: int) -> Block:
        """Return the rows of some whole lines, the first of which has this number."""


class CsvSource(TextSource):
    """Comma, semicolon, tab or space separated lines, with a header or, if the first line is all numbers, without."""

    def __init__(self, lines: Lines, *, delimiter: str = "auto", encoding: str = "utf-8") -> None:
        super().__init__(lines)
        self._encoding = encoding
        first = lines.peek(1).split(b"\n", 1)[0]
        if not lines.peek(1):
            raise BadData(f"{self.path} is empty. There is nothing to predict.")
        if first[:2] in (b"\xff\xfe", b"\xfe\xff"):
            raise BadData(f"{self.path} is encoded in UTF-16. Convert it to UTF-8, such as with iconv.")
        if first.startswith(BOM):
            lines.skip(len(BOM))
            first = first[len(BOM) :]
        head = self._decoded_header(first)
        self.delimiter = (
            _delimiter(head) if delimiter == "auto" else {"tab": "\t", "space": " "}.get(delimiter, delimiter)
        )
        fields = self._fields(head)
        if _all_numbers(fields):
            self.names = ["value"] if len(fields) == 1 else [f"column{i + 1}" for i in range(len(fields))]
        else:
            self.names = _checked_header(self.path, fields)
            lines.skip(len(first) + 1)
            lines.peek(1)
        self._start = self.position
        self.numeric = self._probe()

    def select(self, columns: Columns) -> None:
        super().select(columns)
        pa = arrow()
        if pa is None:
            return
        from pyarrow import csv as arrow_csv

        types = {name: pa.float64() for name in columns.numbers} | {name: pa.string() for name in columns.keys}
        self._parse_options = arrow_csv.ParseOptions(
            delimiter=self.delimiter, ignore_empty_lines=False, newlines_in_values=True
        )
        self._convert_options = arrow_csv.ConvertOptions(
            column_types=types,
            include_columns=[*columns.numbers, *columns.keys],
            null_values=list(MISSING),
            strings_can_be_null=False,
        )

    def parse(self, raw: bytes, line: int) -> Block:
        rows = self._lines.line - line
        if arrow() is not None and rows >= SMALL and self._encoding == "utf-8" and self.delimiter != " ":
            block = self._parse_fast(raw, rows)
            if block is not None:
                return block
        return self._parse_rows(raw, line)

    def _parse_fast(self, raw: bytes, rows: int) -> Block | None:
        """Return the block, or None if anything in it needs a closer look."""
        import pyarrow
        from pyarrow import csv as arrow_csv

        read_options = arrow_csv.ReadOptions(column_names=self.names, use_threads=False, block_size=len(raw) + 1)
        try:
            table = arrow_csv.read_csv(
                pyarrow.BufferReader(raw), read_options, self._parse_options, self._convert_options
            )
        except pyarrow.ArrowInvalid:
            return None
        if table.num_rows != rows:
            return None
        columns = self.columns
        X = np.empty((rows, len(columns.features)))
        for j, name in enumerate(columns.features):
            X[:, j] = table[name].to_numpy()
        y = np.full(rows, np.nan) if columns.target is None else np.array(table[columns.target].to_numpy())
        if infinite_or_missing(X, y):
            return None
        return Block(X, y, [table[name].combine_chunks() for name in columns.keys])

    def _parse_rows(self, raw: bytes, line: int) -> Block:
        rows = RowCollector(self.columns, number, skip_bad=self.skip_bad)
        texts = raw.decode(self._encoding, errors="surrogateescape").removesuffix("\n").split("\n")
        reader = csv.reader((self._tidy(text) + "\n" for text in texts), delimiter=self.delimiter)
        width, before = len(self.names), 0
        while True:
            wrong = None
            try:
                fields = next(reader)
            except StopIteration:
                return rows.block()
            except csv.Error as error:
                fields, wrong = [], f"is not valid CSV ({error})"
            text = "\n".join(texts[before : reader.line_num])
            place, before = line + before + 1, reader.line_num
            if not wrong and not any(fields) and len(fields) <= 1 < width:
                continue  # a blank line
            fields = fields or [""]
            bad = self._misshapen(fields, place, text, wrong)
            if not (rows.refuse(bad) if bad else rows.add(dict(zip(self.names, fields, strict=True)), place, text)):
                return rows.block()

    def _misshapen(self, fields: list[str], line: int, text: str, wrong: str | None) -> BadRow | None:
        """Return what is wrong with the row as a whole, if anything."""
        text = text.rstrip("\r")
        readable = text.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
        if wrong:
            return BadRow(line, "", "", wrong, readable)
        for i, field in enumerate(fields):
            if any("\udc80" <= letter <= "\udcff" for letter in field):
                shown = field.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
                name = self.names[i] if i < len(self.names) else f"column{i + 1}"
                return BadRow(line, name, shown, f"is not {self._encoding}; try --encoding latin-1", readable)
        if len(fields) != len(self.names):
            found = f"has {len(fields)} fields, and the first line {len(self.names)}"
            return BadRow(line, "", "", f"the row {found}", readable)
        return None

    def _tidy(self, text: str) -> str:
        return re.sub(" +", " ", text.strip()) if self.delimiter == " " else text

    def _fields(self, text: str) -> list[str]:
        return next(csv.reader([self._tidy(text)], delimiter=self.delimiter), [""])

    def _decoded_header(self, first: bytes) -> str:
        try:
            return first.decode(self._encoding).rstrip("\r")
        except (UnicodeDecodeError, LookupError) as error:
            raise BadData(
                f"{self.path}, line 1: {error}. Try --encoding latin-1, or convert the file to UTF-8."
            ) from None

    def _probe(self) -> dict[str, bool]:
        """Return which columns hold numbers, by the rows in hand."""
        text = self._lines.peek(1 if self._lines.pipe else PROBE).decode(self._encoding, "replace")
        whole = text[: text.rfind("\n") + 1] or text
        reader = csv.reader((self._tidy(line) + "\n" for line in whole.split("\n")[:PROBE]), delimiter=self.delimiter)
        rows = _readable(reader)
        rows = [row for row in rows if len(row) == len(self.names)]
        seen = {name: [row[i] for row in rows] for i, name in enumerate(self.names)}
        return {name: sum(map(_is_number, values)) * 2 > len(values) or not rows for name, values in seen.items()}


def _delimiter(head: str) -> str:
    counts = {mark: head.count(mark) for mark in ",\t;"}
    best = max(counts, key=lambda mark: counts[mark])
    if counts[best]:
        return best
    return " " if " " in head.strip() and _all_numbers(head.split()) else ","


def _readable(reader: Iterator[list[str]]) -> list[list[str]]:
    """Return the rows up to the first that is not valid CSV."""
    rows: list[list[str]] = []
    with contextlib.suppress(csv.Error):
        rows.extend(reader)
    return rows


def _is_number(field: str) -> bool:
    try:
        number(field)
    except ValueError:
        return False
    return True


def _all_numbers(fields: list[str]) -> bool:
    return all(map(_is_number, fields)) and any(field.strip() not in MISSING for field in fields)


def _checked_header(path: str, fields: list[str]) -> list[str]:
    names = [field.strip() or f"column{i + 1}" for i, field in enumerate(fields)]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise BadData(f"{path}, line 1: the header names the column {twice[0]!r} more than once. Rename one of them.")
    return names
