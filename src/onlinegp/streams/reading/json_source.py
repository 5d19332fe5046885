"""Read JSON lines: one object per line."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from onlinegp.streams.errors import BadData, BadRow
from onlinegp.streams.reading.lines import Lines, Part
from onlinegp.streams.reading.rows import RowCollector
from onlinegp.streams.reading.source import PROBE, Block
from onlinegp.streams.reading.text_source import TextSource


class JsonSource(TextSource):
    """Rows from JSON lines; the columns are the fields of the first object."""

    def __init__(self, lines: Lines, *, na_values: tuple[str, ...] = ()) -> None:
        super().__init__(lines)
        self.na_values = na_values
        self._first_line()
        head = lines.peek(1 if lines.pipe else PROBE).split(b"\n")[:PROBE]
        rows = [row for row in map(_object, head) if row is not None]
        if not rows:
            raise BadData(f"{self.path}, line 1: is not a JSON object. JSON lines must have one object per line.")
        self.names = list(rows[0])
        self.samples = {name: [row.get(name) for row in rows] for name in self.names}
        self.numeric = {name: _mostly(values, na_values) for name, values in self.samples.items()}

    def parse(self, part: Part) -> Block:
        rows = RowCollector(self.columns, _number, skip_bad=self.skip_bad)
        for line, text in enumerate(part.data.removesuffix(b"\n").split(b"\n"), start=part.before + 1):
            if not text.strip():
                continue
            shown = text.decode("utf-8", "backslashreplace")
            row = _object(text)
            bad = BadRow(line, "", "", "the line is not a JSON object of Unicode text", shown) if row is None else None
            if not (rows.refuse(bad) if bad else rows.add(row or {}, line, shown)):
                break
        return rows.block()


def _object(text: bytes) -> dict[str, Any] | None:
    """Return the object in a line, or None if there is none, a field is repeated, or the text is not valid Unicode."""
    try:
        row = json.loads(text.decode(), object_pairs_hook=_fields)
        if b"\\u" in text:
            json.dumps(row, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        return None
    return row if isinstance(row, dict) else None


def _fields(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    row = dict(pairs)
    if len(row) != len(pairs):
        raise ValueError(pairs)
    return row


def _number(value: Any) -> float:
    if value is None:
        return np.nan
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ValueError(value)
    return float(value)


def _mostly(values: Sequence[Any], codes: Sequence[str]) -> bool:
    """Whether most of the values that are not missing are numbers, or all values are missing."""
    present = [value for value in values if value is not None and value not in codes]
    numbers = [isinstance(value, (int, float)) and not isinstance(value, bool) for value in present]
    return sum(numbers) * 2 > len(present) or not present
