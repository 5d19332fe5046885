"""Whole lines of a file or a pipe, in blocks of bytes whose place in the input is known."""

from __future__ import annotations

import gzip
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import numpy as np

CHUNK = 1 << 18  # bytes asked for at once
LONGEST = 1 << 22  # bytes that one quoted field may span before its quote counts as a stray one


class Lines:
    """The lines of `path` ("-" is standard input) from where it stands; `offset` is the byte after the last block.

    From a pipe a block is what has come so far, so nobody waits for a prediction until more input arrives. From a file
    it is up to `rows` lines. A quoted field may hold line ends: a block never ends within one.
    """

    def __init__(self, path: str, *, rows: int = 4096, quotes: bool = True) -> None:
        self.path, self.rows, self.quotes = path, rows, quotes
        self.pipe = path == "-"
        self.offset = self.line = 0
        self._buffer = b""
        self._ended = False
        self._file: IO[bytes] = _open(path)

    def peek(self, lines: int) -> bytes:
        """Return what is in hand, at least so many lines of it if there are any, and consume nothing."""
        while not self._ended and self._buffer.count(b"\n") < lines:
            self._read()
        return self._buffer

    def skip(self, size: int, lines: int | None = None) -> bytes:
        """Consume so many bytes that peek showed; `lines` saves counting theirs."""
        head, self._buffer = self._buffer[:size], self._buffer[size:]
        self.offset += size
        self.line += head.count(b"\n") if lines is None else lines
        return head

    def seek(self, offset: int, line: int) -> None:
        """Go on from a byte that an earlier run reached; a pipe is read again up to there."""
        if self.pipe:
            while not self._ended and len(self._buffer) + self.offset < offset:
                self.skip(len(self._buffer))
                self._read()
            self.skip(offset - self.offset)
        else:
            self._file.seek(offset)
            self._buffer, self._ended = b"", False
        self.offset, self.line = offset, line

    def __iter__(self) -> Iterator[tuple[bytes, int]]:
        """Yield blocks of whole lines, each with the number of the line before it."""
        while True:
            size, lines = self._complete()
            if size == 0 and not self._ended:
                self._read()
                continue
            if size == 0 and not self._buffer:
                return
            before = self.line
            yield self.skip(size or len(self._buffer), lines), before  # the last line may lack its end

    def close(self) -> None:
        if not self.pipe:
            self._file.close()

    def _read(self) -> None:
        chunk = os.read(self._file.fileno(), CHUNK) if self.pipe else self._file.read(CHUNK)
        self._ended = not chunk
        self._buffer += chunk
        if self._ended and not self.pipe:
            self._refuse_shrunk()

    def _refuse_shrunk(self) -> None:
        if not isinstance(self._file, gzip.GzipFile) and os.fstat(self._file.fileno()).st_size < self.offset:
            raise OSError(
                f"{self.path} became shorter while it was read, at byte {self.offset}. Restore it and resume."
            )

    def _complete(self) -> tuple[int, int]:
        """Return bytes and lines of the next block: up to `rows` lines, quotes closed; 0 if there is none yet."""
        ends = np.flatnonzero(np.frombuffer(self._buffer, dtype=np.uint8) == ord("\n"))
        if len(ends) == 0 or (not self._ended and not self.pipe and len(ends) < self.rows):
            return 0, 0
        lines = min(self.rows, len(ends))
        size = int(ends[lines - 1]) + 1
        if not self.quotes or self._buffer.count(b'"', 0, size) % 2 == 0:
            return size, lines
        end = size
        for i in range(lines, len(ends)):  # within a quoted field: on to where it is closed
            start, end = end, int(ends[i]) + 1
            if self._buffer.count(b'"', start, end) % 2:
                return end, i + 1
        return (0, 0) if not self._ended and end < LONGEST else (size, lines)


def _open(path: str) -> IO[bytes]:
    if path == "-":
        return sys.stdin.buffer
    if not Path(path).exists():
        raise FileNotFoundError(f"there is no file {path}. Check the name, or use - for standard input.")
    if Path(path).is_dir():
        raise IsADirectoryError(f"{path} is a folder. Pass a file, or - for standard input.")
    return gzip.open(path, "rb") if path.endswith(".gz") else open(path, "rb")  # type: ignore[return-value]
