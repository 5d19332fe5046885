"""Read CSV, in blocks with pyarrow if possible, and row by row if a block contains anything unusual."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from onlinegp.checks import LARGEST
from onlinegp.columns.dates import are_dates, likely_format
from onlinegp.columns.encoders import MISSING
from onlinegp.streams.errors import BadData, BadRow, short
from onlinegp.streams.number_text import arrow, has_thousands, is_number, number
from onlinegp.streams.reading.cell_types import cells, is_missing
from onlinegp.streams.reading.lines import BOM, Lines, Part
from onlinegp.streams.reading.quoting import QUOTED, SPAN, Quoting
from onlinegp.streams.reading.rows import RowCollector
from onlinegp.streams.reading.source import PROBE, Block, Columns, infinite_or_missing
from onlinegp.streams.reading.text_source import TextSource

SMALL = 32  # for fewer rows, Python is faster than pyarrow
OTHER = {".": ",", ",": "."}  # the other decimal mark
QUOTED_FIELD = re.compile(rf"(?<![^\t;,]){QUOTED}")
COMMA = {".": "point", ",": "comma"}
NAMED = {"tab": "\t", "space": " "}
ASCII = '\r\n",;\t |0123456789+-.eE'  # all encodings must agree with ASCII on these, so that lines can be found


class CsvSource(TextSource):
    """Lines separated by commas, semicolons, tabs or spaces.

    There is no header if the first line is all numbers, or if it has a number and a date or time: it is a row of a log.
    """

    empty_is_missing = True

    def __init__(
        self,
        lines: Lines,
        *,
        delimiter: str = "auto",
        encoding: str = "utf-8",
        decimal: str = ".",
        na_values: tuple[str, ...] = (),
    ) -> None:
        super().__init__(lines)
        self._encoding, self.decimal, self.na_values = _checked_encoding(encoding), decimal, na_values
        first = self._first_line()
        head = self._decoded(first)
        mark = detected(head, decimal) if delimiter == "auto" else NAMED.get(delimiter, delimiter)
        self.delimiter = _checked_delimiter(mark, decimal)
        self._quoting = lines.quoting = Quoting(self.delimiter)
        fields = self._quoting.fields(head) or [""]
        if _is_data(fields, decimal):
            self.has_header = False
            self.names = ["value"] if len(fields) == 1 else [f"column{i + 1}" for i in range(len(fields))]
            if not _all_numbers(fields, decimal):
                self.notes.append(f"the first line is a row, so the columns are column1 to column{len(fields)}")
        else:
            self._refuse_other_decimal(fields)
            self.names = _checked_header(self.path, fields, lines, self._quoting)
            self.unnamed = frozenset(name for name, field in zip(self.names, fields, strict=True) if not field.strip())
            lines.skip(lines.peek(1).find(b"\n") + 1 or len(lines.peek(1)))
        self.numeric = self._probe()

    def select(self, columns: Columns) -> None:
        super().select(columns)
        # Whether a column is read both as numbers and as text
        self._both = not set(columns.numbers).isdisjoint(columns.keys)
        pa = arrow()
        if pa is None:
            return
        from pyarrow import csv as arrow_csv

        texts = list(dict.fromkeys([*columns.keys, *columns.texts]))
        types = {name: pa.float64() for name in columns.numbers} | {name: pa.string() for name in texts}
        self._parse_options = arrow_csv.ParseOptions(
            delimiter=self.delimiter, ignore_empty_lines=False, newlines_in_values=True
        )
        self._convert_options = arrow_csv.ConvertOptions(
            column_types=types,
            include_columns=[*columns.numbers, *texts],
            null_values=[*MISSING, *columns.na_values],
            strings_can_be_null=False,
            decimal_point=self.decimal,
        )

    def parse(self, part: Part) -> Block:
        if arrow() is not None and part.lines >= SMALL and self._plain(part):
            block = self._parse_fast(part)
            if block is not None:
                return block
        return self._parse_rows(part)

    def _plain(self, part: Part) -> bool:
        """Whether pyarrow reads these lines exactly like `_parse_rows`, or raises an error.

        In other lines, pyarrow treats a carriage return as a line end and a blank line as a row, and drops a byte order
        mark. It checks neither quotes within fields nor columns that were not requested.
        """
        data = part.data
        if not part.neat or self._both or self._encoding != "utf-8" or self.delimiter == " ":
            return False
        if data.count(b"\r") != data.count(b"\r\n") or data.startswith((BOM, b"\n", b"\r\n")):
            return False
        if b"\n\n" in data or b"\n\r\n" in data:
            return False
        try:
            data.decode()
        except UnicodeDecodeError:
            return False
        return True

    def _parse_fast(self, part: Part) -> Block | None:
        """Return the block, or None if it must be read row by row."""
        import pyarrow
        from pyarrow import csv as arrow_csv

        rows, data = part.lines, part.data
        read_options = arrow_csv.ReadOptions(column_names=self.names, use_threads=False, block_size=len(data) + 1)
        try:
            table = arrow_csv.read_csv(
                pyarrow.BufferReader(data), read_options, self._parse_options, self._convert_options
            )
        except pyarrow.ArrowInvalid:
            return None
        if table.num_rows != rows:
            return None
        columns = self.columns
        X: Any = np.empty((rows, len(columns.features)), dtype=columns.dtype)
        y = np.full(rows, np.nan)
        if columns.target is not None:
            y[:] = table[columns.target].to_numpy()
            if np.count_nonzero(np.isnan(y)) != table[columns.target].null_count:  # another spelling of NaN
                return None
            y = columns.without_codes(y)
        if columns.plain:
            for j, name in enumerate(columns.features):
                X[:, j] = columns.without_codes(table[name].to_numpy())
            if infinite_or_missing(X, y):
                return None
        elif not self._cells(table, X) or infinite_or_missing(X[:, :0], y):
            return None
        return Block(X, y, [table[name].combine_chunks() for name in columns.keys])

    def _cells(self, table: Any, X: Any) -> bool:
        """Fill X with features that are not all plain numbers. Return False if the block must be read row by row."""
        for j, (name, read) in enumerate(self.columns.readers(partial(number, decimal=self.decimal))):
            if name in self.columns.texts:
                found = cells(table[name].to_pylist(), read)
                if found is None:
                    return False
                X[:, j] = found
            else:
                values, missing = table[name].to_numpy(), table[name].null_count
                optional = self.columns.missing == "impute"
                if (
                    np.count_nonzero(np.isnan(values)) != (missing if optional else 0)
                    or (np.abs(values) >= LARGEST).any()
                ):
                    return False
                values = self.columns.without_codes(values)
                if not optional and np.isnan(values).any():
                    return False
                X[:, j] = values.tolist()
        return True

    def _parse_rows(self, part: Part) -> Block:
        rows = RowCollector(self.columns, partial(number, decimal=self.decimal), skip_bad=self.skip_bad)
        width = len(self.names)
        for row, line, closed in self._rows(part):
            bad: BadRow | None
            try:
                text = row.decode(self._encoding)
            except UnicodeDecodeError:
                bad = self._misspelled(row, line)
            else:
                fields = self._quoting.fields(text)
                if not fields and width > 1:
                    continue  # a blank line
                fields = fields or [""]
                bad = self._misshapen(fields, line, text, closed)
            if not (rows.refuse(bad) if bad else rows.add(dict(zip(self.names, fields, strict=True)), line, text)):
                break
        return rows.block()

    def _rows(self, part: Part) -> Iterator[tuple[bytes, int, bool]]:
        """Yield the rows of a block: the text without line end, the line number, and whether all quotes are closed."""
        start, line, data = 0, part.before + 1, part.data
        while start < len(data):
            end, closed, _ = self._quoting.row_end(data, start)
            end = end if end > 0 else len(data)
            row = data[start:end]
            yield row.removesuffix(b"\n").removesuffix(b"\r"), line, closed
            start, line = end, line + row.count(b"\n")

    def _misshapen(self, fields: list[str], line: int, text: str, closed: bool) -> BadRow | None:
        """Return what is wrong with the form of a row, or None."""
        if not closed:
            return BadRow(line, "", "", f"a quote is not closed within {SPAN >> 20} MiB or before the end", text)
        if "\r" in text and "\r" in self._quoting.unquoted(text):
            return BadRow(line, "", "", "the row holds a carriage return that is not part of a line end", text)
        if len(fields) != len(self.names):
            found = f"has {len(fields)} fields, but the first line has {len(self.names)}"
            return BadRow(line, "", "", f"the row {found}", text)
        return None

    def _misspelled(self, row: bytes, line: int) -> BadRow:
        """Return the error for a row that is not in the encoding. It names the first field that cannot be decoded."""
        text = row.decode(self._encoding, "backslashreplace")
        marked = self._quoting.fields(row.decode(self._encoding, "replace"))
        i = next((i for i, field in enumerate(marked) if "\ufffd" in field), 0)
        name = self.names[i] if i < len(self.names) else f"column{i + 1}"
        shown = dict(enumerate(self._quoting.fields(text))).get(i, "")
        return BadRow(line, name, shown, f"is not {self._encoding}; try --encoding latin-1", text)

    def _decoded(self, first: bytes) -> str:
        try:
            return first.decode(self._encoding)
        except UnicodeDecodeError as error:
            raise BadData(
                f"{self.path}, line 1: {error}. Try --encoding latin-1, or convert the file to UTF-8."
            ) from None

    def _refuse_other_decimal(self, fields: list[str]) -> None:
        """Raise an error if the first line contains numbers with the other decimal mark, which are not column names."""
        other = OTHER[self.decimal]
        if _all_numbers(fields, other):
            raise BadData(
                f"{self.path}, line 1: {short(fields[0])!r} is a number with a decimal {COMMA[other]}. "
                f"Read such numbers with --decimal {other}"
            )

    def _probe(self) -> dict[str, bool]:
        """Return which columns contain numbers in the first rows. Note columns with the other decimal mark."""
        data = self._lines.peek(1 if self._lines.pipe else PROBE)
        data = data[: data.rfind(b"\n") + 1] or data
        texts = [row.decode(self._encoding, "replace") for row, _, _ in _first(self._rows(Part(data, 0, 0, False)))]
        rows = [fields for fields in map(self._quoting.fields, texts) if len(fields) == len(self.names)]
        columns: dict[str, tuple[str, ...]] = dict(
            zip(self.names, zip(*rows, strict=True) if rows else [()] * len(self.names), strict=True)
        )
        self.samples = columns
        present = {n: [v for v in values if not is_missing(v, self.na_values)] for n, values in columns.items()}
        numeric = {name: _mostly(values, self.decimal) for name, values in present.items()}
        other = OTHER[self.decimal]
        texts_only = [name for name, yes in numeric.items() if not yes]
        apart = [name for name in texts_only if _have_thousands(present[name], self.decimal)]
        odd = [name for name in texts_only if name not in apart and _mostly(present[name], other)]
        if apart:
            shown = next(value for value in present[apart[0]] if has_thousands(value, self.decimal))
            self.notes.append(
                f"the column {short(apart[0])!r} holds numbers such as {shown!r}, which are read as text. If "
                f"{other!r} sets thousands apart, remove it from the file"
                + (f"; if it is the decimal mark, add --decimal {other}" if is_number(shown, other) else "")
            )
        if odd:
            self.notes.append(
                f"the column {short(odd[0])!r} holds numbers with a decimal {COMMA[other]}, "
                f"which are read as text. Read them as numbers with --decimal {other}"
            )
        return numeric


def detected(head: str, decimal: str) -> str:
    """Return the delimiter of a first line: one that makes it a row of data, or else the most frequent one."""
    marks = [mark for mark in ("\t", ";", ",", " ") if mark != decimal and mark in head.strip()]
    for point in (decimal, OTHER[decimal]):
        for mark in marks:
            if mark != point and _is_data(Quoting(mark).fields(head), point):
                return mark
    marks = [mark for mark in marks if mark != " "] or [";" if decimal == "," else ","]
    bare = QUOTED_FIELD.sub('""', head)  # ignore delimiters within quotes
    return max(marks, key=bare.count)


def _first(rows: Iterator[tuple[bytes, int, bool]]) -> list[tuple[bytes, int, bool]]:
    return [row for row, _ in zip(rows, range(PROBE), strict=False)]


def _mostly(present: list[str], decimal: str) -> bool:
    """Whether at least half of the values that are not missing are numbers. If so, rows with a text are bad."""
    return sum(is_number(value, decimal) for value in present) * 2 >= len(present)


def _have_thousands(present: list[str], decimal: str) -> bool:
    """Return whether values are numbers, most of them with their thousands set apart."""
    apart = sum(has_thousands(value, decimal) for value in present)
    return apart > 0 and 2 * apart >= len(present) == apart + sum(is_number(value, decimal) for value in present)


def _all_numbers(fields: list[str], decimal: str) -> bool:
    return all(is_number(field, decimal) for field in fields) and any(field.strip() not in MISSING for field in fields)


def _is_data(fields: list[str], decimal: str) -> bool:
    """Whether fields are a row, not names: all numbers, or at least one number beside a date or time."""
    texts = [field for field in fields if not is_number(field, decimal)]
    if len(texts) == sum(field.strip() not in MISSING for field in fields):
        return False
    return not texts or any(are_dates([text]) or likely_format([text]) for text in texts)


def _checked_encoding(encoding: str) -> str:
    import codecs

    try:
        if ASCII.encode(encoding) != ASCII.encode():
            raise LookupError
        return codecs.lookup(encoding).name
    except (LookupError, UnicodeError):
        raise ValueError(
            f"--encoding must name an encoding that contains ASCII, such as utf-8 or latin-1, got {encoding!r}. "
            f"Convert the file to UTF-8, such as with iconv."
        ) from None


def _checked_delimiter(mark: str, decimal: str) -> str:
    if len(mark) != 1 or not mark.isascii() or mark.isalnum() or mark in '\r\n"+-.' or mark == decimal:
        raise ValueError(
            f"--delimiter must be one character, tab or space, and not a letter, digit, quote, sign, point or the "
            f"--decimal mark, got {mark!r}. Use auto to detect it."
        )
    return mark


def _checked_header(path: str, fields: list[str], lines: Lines, quoting: Quoting) -> list[str]:
    if not quoting.row_end(lines.peek(1).split(b"\n", 1)[0] + b"\n", 0)[1]:
        raise BadData(f"{path}, line 1: a quote in the header is not closed on its line. Close it.")
    names = [field.strip() or f"column{i + 1}" for i, field in enumerate(fields)]
    twice = [name for name, times in Counter(names).items() if times > 1]
    if twice:
        raise BadData(
            f"{path}, line 1: the header names the column {short(twice[0])!r} more than once. Rename one column."
        )
    return names
