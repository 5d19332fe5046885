"""The rejects: the bad rows that a run leaves out."""

from __future__ import annotations

import csv
import io
from typing import Any

from onlinegp.streams.errors import BadRow
from onlinegp.streams.writing.sinks import Appended


class Rejects:
    """Write each rejected row with its place and the reason to a file. Without a file, only count them."""

    HEADER = ("line", "column", "value", "reason", "text")

    def __init__(self, path: str | None, *, count: int = 0, keep: int = 0) -> None:
        self.count = count
        self._file = None if path is None else Appended(path, keep=keep)
        if self._file is not None and keep == 0:
            self._file.write(_csv_line(self.HEADER))

    @property
    def length(self) -> int:
        return 0 if self._file is None else self._file.length

    def write(self, rows: list[BadRow]) -> None:
        self.count += len(rows)
        if self._file is not None and rows:
            self._file.write(b"".join(_csv_line((r.line, r.column, r.value, r.reason, r.text)) for r in rows))

    def sync(self) -> None:
        if self._file is not None:
            self._file.sync()

    def close(self) -> None:
        if self._file is not None:
            self._file.close()


def _csv_line(fields: tuple[Any, ...]) -> bytes:
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerow(fields)
    return out.getvalue().encode("utf-8", "backslashreplace")
