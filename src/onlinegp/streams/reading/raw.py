"""Read the bytes of a file or pipe as soon as they arrive, and decompress gzip."""

from __future__ import annotations

import os
import stat
import sys
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

from onlinegp.streams.errors import BadData

CHUNK = 1 << 18  # bytes per read
GZIP = b"\x1f\x8b"  # gzip data begin with these bytes, text never does


class Raw:
    """The bytes of `path` ("-" is standard input), in chunks.

    Any input that cannot be read twice is treated as a pipe: a FIFO, a process substitution, a device. `read` returns
    as soon as some bytes have arrived.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self._descriptor = _descriptor(path)
        self.pipe = path == "-" or not stat.S_ISREG(os.fstat(self._descriptor).st_mode)
        self.packed = False
        self._chunks = self._unpacked()

    def read(self) -> bytes:
        """Return the next bytes; empty at the end."""
        return next(self._chunks, b"")

    @property
    def size(self) -> int:
        """The current size of the file in bytes."""
        return os.fstat(self._descriptor).st_size

    def close(self) -> None:
        if self.path != "-" and self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def _unpacked(self) -> Iterator[bytes]:
        head = self._ask()
        while len(head) < len(GZIP) and (more := self._ask()):
            head += more
        self.packed = head.startswith(GZIP)
        if self.packed:
            yield from _inflated(head, self._ask, self.path)
            return
        while head:
            yield head
            head = self._ask()

    def _ask(self) -> bytes:
        return os.read(self._descriptor, CHUNK)


def file_of(path: str, copy: Path) -> str:
    """Return a path that can be read several times: `path`, or the path of a copy if `path` is a pipe."""
    raw = Raw(path)
    try:
        if not raw.pipe:
            return path
        with open(copy, "wb") as file:
            while chunk := raw.read():
                file.write(chunk)
        return str(copy)
    finally:
        raw.close()


def _inflated(data: bytes, ask: Callable[[], bytes], path: str) -> Iterator[bytes]:
    """Yield the decompressed bytes in pieces of at most CHUNK bytes."""
    try:
        while data := (data or ask()).lstrip(b"\0"):  # some writers pad with zeros
            member = zlib.decompressobj(wbits=31)
            while not member.eof:
                piece = member.decompress(data, CHUNK)
                data = member.unused_data if member.eof else member.unconsumed_tail
                if piece:
                    yield piece
                if not (member.eof or data or len(piece) == CHUNK) and not (data := ask()):
                    raise BadData(f"{path} is incomplete: its compressed data end too early. Restore it.")
    except zlib.error as error:
        raise BadData(f"{path} is damaged: its compressed data cannot be read ({error}). Restore it.") from None


def _descriptor(path: str) -> int:
    if path == "-":
        if sys.stdin is None:
            raise OSError("standard input is closed. Pass a file, or send data to it.")
        return sys.stdin.fileno()
    try:
        if Path(path).is_dir():
            raise IsADirectoryError(f"{path} is a folder. Pass a file, or - for standard input.")
        return os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0))
    except FileNotFoundError:
        raise FileNotFoundError(f"there is no file {path}. Check the name, or use - for standard input.") from None
