"""Base class of CSV and JSON lines. A position is a byte, a line number, and a checksum of the bytes before."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator

from onlinegp.streams.errors import BadData, other_input
from onlinegp.streams.reading.lines import Lines, Part
from onlinegp.streams.reading.source import Block, Source

COUNTED = 1 << 22  # number of bytes that are read to estimate the number of rows


class TextSource(Source):
    """Base class of sources of text: blocks from the lines of a file or pipe."""

    def __init__(self, lines: Lines) -> None:
        self._lines = lines
        self.path, self.live = lines.name, lines.pipe
        self.notes = []

    def _place(self) -> dict[str, int]:
        return {"offset": self._lines.offset, "line": self._lines.line, "checksum": self._lines.checksum}

    def _seek(self, place: dict[str, int]) -> None:
        if "offset" not in place:
            raise other_input(self.path, "the first input was not text")
        self._lines.seek(**place)

    @property
    def unfinished(self) -> bool:
        return self._lines.unfinished

    def rows_at_most(self, limit: int) -> int:
        if self._lines.pipe:
            return limit
        ahead = Lines(self._lines.path)
        rows, read = 0, 0
        try:
            for part in ahead:
                rows += part.lines or 1
                read += len(part.data)
                if rows > limit or read > COUNTED:
                    return limit
        except BadData:  # the run reports the error when it reaches the row
            return limit
        finally:
            ahead.close()
        return max(0, min(limit, rows - self._lines.line))

    def close(self) -> None:
        self._lines.close()

    def _blocks(self) -> Iterator[Block]:
        return map(self.parse, self._lines)

    @abstractmethod
    def parse(self, part: Part) -> Block:
        """Return the block of rows in whole lines."""

    def _first_line(self) -> bytes:
        """Return the first line without its line end. Raise an error if the input is not a table of text."""
        head = self._lines.peek(1)
        first = head.split(b"\n", 1)[0].removesuffix(b"\r")
        if not head:
            raise BadData(f"{self.path} is empty, so there is nothing to predict.")
        if self._lines.incomplete:
            raise BadData(f"{self.path}, line 1: is incomplete and may still grow. Wait, or add a line end.")
        if first.startswith((b"\xff\xfe", b"\xfe\xff")):
            raise BadData(f"{self.path} is encoded in UTF-16. Convert it to UTF-8, such as with iconv.")
        if b"\0" in first:
            raise BadData(f"{self.path}, line 1: holds zero bytes, so it is not text. Check that this is a table.")
        if b"\r" in first:
            raise BadData(
                f"{self.path}, line 1: ends in a carriage return alone, as on old Macs. "
                f"Convert the line ends, such as with: tr '\\r' '\\n'"
            )
        return first
