"""Read whole lines of a file or a pipe in blocks, and keep track of the position."""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from onlinegp.streams.errors import BadData, other_input
from onlinegp.streams.reading.quoting import SPAN, Quoting
from onlinegp.streams.reading.raw import Raw

LONGEST = 1 << 24  # largest number of bytes of a line
BOM = b"\xef\xbb\xbf"


class Part(NamedTuple):
    """Whole lines: their bytes, the number of lines before, their number, and whether quotes are regular."""

    data: bytes
    before: int
    lines: int
    neat: bool


class Lines:
    """The lines of `path` ("-" is standard input) in blocks. `offset` is the position after the last block.

    A block of a pipe contains all lines that have arrived, so that predictions never wait for more input. A block of a
    file contains up to `rows` lines. A quoted field may contain line ends: with `quoting`, a block never ends inside a
    field.

    A file may grow: with `resumable`, a last line without a line end is left unread, and `unfinished` is True.
    Otherwise, and in a pipe, it is read like any other line.
    """

    def __init__(self, path: str, *, rows: int = 4096, resumable: bool = False) -> None:
        self.path, self.rows = path, rows
        self.name = "standard input" if path == "-" else path
        self.quoting: Quoting | None = None
        self.offset = self.line = self.checksum = 0
        self.unfinished = False
        self._raw = Raw(path)
        self.pipe = self._raw.pipe
        self._grows = resumable and not self.pipe
        self._buffer = bytearray()
        self._ends = 0  # line ends in the buffer
        self._tail = 0  # bytes after the last line end
        self._ended = False
        self._failed: BadData | None = None  # the error that ended the input, if any

    def peek(self, lines: int) -> bytes:
        """Return the buffered bytes without consuming them, with at least `lines` lines if the input has them."""
        while not self._ended and self._ends < lines:
            self._read()
        if self._failed and not self._ends:
            raise self._failed
        return bytes(self._buffer)

    @property
    def incomplete(self) -> bool:
        """Whether the buffered line is incomplete and may still grow."""
        return self._grows and self._ends == 0

    def skip(self, size: int, lines: int | None = None) -> bytes:
        """Consume and return `size` bytes from `peek`. Pass `lines`, their number of lines, if it is known."""
        head = bytes(self._buffer[:size])
        del self._buffer[:size]
        lines = head.count(b"\n") if lines is None else lines
        self.offset += len(head)
        self.line += lines
        self._ends -= lines
        self.checksum = zlib.crc32(head, self.checksum)
        return head

    def seek(self, offset: int, line: int, checksum: int) -> None:
        """Continue where an earlier run stopped: read the input up to `offset`, and check that it has not changed.

        If the earlier run read a last line without a line end, this line must not have grown.
        """
        last = b""
        while self.offset < offset and (self._buffer or not self._ended):
            last = self.skip(min(len(self._buffer), offset - self.offset))[-1:] or last
            if not self._buffer:
                self._read()
        if (self.offset, self.line, self.checksum) != (offset, line, checksum):
            found = f"it has only {self.offset} bytes" if self.offset < offset else f"its first {offset} bytes differ"
            raise other_input(self.name, found)
        if last not in (b"", b"\n"):
            self._end_line()

    def __iter__(self) -> Iterator[Part]:
        """Yield blocks of whole lines."""
        while True:
            size, lines, neat = self._complete()
            before = self.line
            if size:
                yield Part(self.skip(size, lines), before, lines, neat)
            elif not self._ended:
                self._read()
            elif self._failed:
                raise self._failed
            else:
                self.unfinished = bool(self._buffer) and self._grows
                if self._buffer and not self._grows:
                    yield Part(self.skip(len(self._buffer)), before, 0, False)  # the last line has no line end
                return

    def close(self) -> None:
        self._raw.close()

    def _read(self) -> None:
        try:
            chunk = self._raw.read()
        except BadData as error:
            chunk, self._failed = b"", error
        self._ended = not chunk
        first = chunk.find(b"\n")
        if self._tail + (first if first >= 0 else len(chunk)) > LONGEST:
            self._ended, chunk = True, b""
            self._failed = BadData(
                f"{self.name}, line {self.line + self._ends + 1}: is longer than the limit of {LONGEST >> 20} MiB. "
                f"Check that this is a table with line ends, and its --format."
            )
        self._buffer += chunk
        self._ends += chunk.count(b"\n")
        self._tail = self._tail + len(chunk) if first < 0 else len(chunk) - 1 - chunk.rfind(b"\n")
        if self._ended and not (self.pipe or self._raw.packed or self._failed) and self._raw.size < self.offset:
            raise OSError(
                f"{self.path} was truncated while it was being read, at byte {self.offset}. Restore it and resume."
            )

    def _end_line(self) -> None:
        """Consume the line end of a line that had no end when an earlier run read it."""
        while not self._ended and len(self._buffer) < 2:
            self._read()
        rest = bytes(self._buffer[:2])
        if rest and not rest.startswith((b"\n", b"\r\n")):
            raise other_input(self.name, f"line {self.line + 1} had no end when it was learned, and has become longer")
        self.skip(rest.find(b"\n") + 1)

    def _complete(self) -> tuple[int, int, bool]:
        """Return the number of bytes and lines of the next block, and whether its quotes are regular.

        The number of bytes is 0 if the block is not complete yet. A block has up to `rows` lines, or more if its last
        row has several lines.
        """
        if self._ends == 0 or (self._ends < self.rows and not self._ended and not self.pipe):
            return 0, 0, True
        lines = min(self.rows, self._ends)
        found = np.flatnonzero(np.frombuffer(self._buffer, dtype=np.uint8) == ord("\n"))
        size = int(found[lines - 1]) + 1
        if self.quoting is None or self.quoting.neat(self._buffer, size):
            return size, lines, True
        return *self._whole_rows(lines), False

    def _whole_rows(self, wanted: int) -> tuple[int, int]:
        """Return bytes and lines of whole rows with at least `wanted` lines, found row by row."""
        assert self.quoting is not None
        size = lines = 0
        final = self._ended and not self._failed and not self._grows
        while lines < wanted:
            end, closed, opened = self.quoting.row_end(self._buffer, size)
            if end < 0 or not (closed or final or len(self._buffer) - opened >= SPAN):
                break  # the row may continue
            lines += self._buffer.count(b"\n", size, end)
            size = end
        return (size, lines) if lines >= wanted or self.pipe or self._ended else (0, 0)


def file_checksum(path: str) -> int:
    """Return a checksum of a whole file."""
    checksum = os.path.getsize(path)
    with open(path, "rb") as file:
        while chunk := file.read(1 << 20):
            checksum = zlib.crc32(chunk, checksum)
    return checksum
