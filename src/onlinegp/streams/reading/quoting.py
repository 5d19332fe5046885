"""Find the end of a row of CSV, and split the row into fields, with the same rules for all readers.

A field that begins with a quote extends to the next quote that is not doubled, line ends included. Text between the
closing quote and the delimiter is kept as it is. Other quotes are ordinary characters. If a quote is not closed within
SPAN bytes or before the end of the input, only its line is bad.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

SPAN = 1 << 20  # bytes
QUOTED = '"[^"]*+(?:""[^"]*+)*+"'  # possessive: without backtracking, a quote that is not closed costs only one pass


class Quoting:
    """Split CSV into rows and fields, for one delimiter."""

    def __init__(self, delimiter: str) -> None:
        self.delimiter = delimiter
        mark = re.escape(delimiter)
        begun = QUOTED.replace('"', rf'"(?<=[{mark}\n]")', 1)  # a pattern that begins with a literal is found quickly
        self._neat = re.compile(rf"{begun}(?=[{mark}\r\n]|\Z)".encode())
        self._opened = re.compile(QUOTED.encode())
        self._rest = re.compile(rf"[^{mark}\n]*+".encode())
        self._field = re.compile(rf"({QUOTED})?+([^{mark}]*+)({mark}|\Z)")

    def neat(self, data: bytes | bytearray, size: int) -> bool:
        """Whether all quotes in the first `size` bytes enclose whole fields, so that no field continues after them."""
        return data.find(b'"', 0, size) < 0 or b'"' not in self._neat.sub(b"", b"\n" + data[:size])

    def row_end(self, data: bytes | bytearray, start: int) -> tuple[int, bool, int]:
        """Return the end of the row at `start`, whether its quotes are closed, and the position of an open quote.

        If a quote is not closed, the row ends with its line. The end is -1 if the line has no end.
        """
        line = data.find(b"\n", start)
        if data.find(b'"', start, line if line >= 0 else len(data)) < 0:
            return line + 1 or -1, True, start
        at = start
        while True:
            if data[at : at + 1] == b'"':
                quoted = self._opened.match(data, at, at + SPAN)
                if quoted is None:
                    return line + 1 or -1, False, at
                at = quoted.end()
            at = self._rest.match(data, at).end()  # type: ignore[union-attr]
            if data[at : at + 1] != self.delimiter.encode():
                return (at + 1 if at < len(data) else -1), True, start
            at += 1

    def fields(self, text: str) -> list[str]:
        """Return the fields of a row without its line end."""
        if '"' not in text:
            fields = text.split(self.delimiter) if text else []
        else:
            fields = [(quoted[1:-1].replace('""', '"') if quoted else "") + rest for quoted, rest in self._pieces(text)]
        # Several spaces are one delimiter
        return [field for field in fields if field] if self.delimiter == " " else fields

    def unquoted(self, text: str) -> str:
        """Return the text of a row outside quotes, without delimiters."""
        return text if '"' not in text else "".join(rest for _, rest in self._pieces(text))

    def _pieces(self, text: str) -> Iterator[tuple[str | None, str]]:
        """Yield the quoted part of each field ("" if none), and the text after it."""
        at, more = 0, True
        while more:
            found = self._field.match(text, at)
            assert found is not None
            yield found[1], found[2]
            at, more = found.end(), bool(found[3])
