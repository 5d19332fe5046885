"""JSON lines: one object a line; its other fields pass through as they were."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from onlinegp.streams.errors import BadData, BadRow
from onlinegp.streams.reading.csv_source import TextSource
from onlinegp.streams.reading.lines import Lines
from onlinegp.streams.reading.rows import RowCollector
from onlinegp.streams.reading.source import PROBE, Block


class JsonSource(TextSource):
    """The columns are the fields of the first object."""

    def __init__(self, lines: Lines) -> None:
        super().__init__(lines)
        lines.quotes = False  # a line is a row, whatever it holds
        head = lines.peek(1 if lines.pipe else PROBE).split(b"\n")[:PROBE]
        rows = [row for row in map(_object, head) if row is not None]
        if not rows:
            raise BadData(f"{self.path}, line 1: is not a JSON object. JSON lines hold one object a line.")
        self.names = list(rows[0])
        self.numeric = {name: sum(_is_number(row.get(name)) for row in rows) * 2 > len(rows) for name in self.names}

    def parse(self, raw: bytes, line: int) -> Block:
        rows = RowCollector(self.columns, _number, skip_bad=self.skip_bad)
        for i, text in enumerate(raw.removesuffix(b"\n").split(b"\n")):
            if not text.strip():
                continue
            shown = text.decode("utf-8", "backslashreplace")
            row = _object(text)
            bad = BadRow(line + i + 1, "", "", "the line is not a JSON object", shown) if row is None else None
            if not (rows.refuse(bad) if bad else rows.add(row or {}, line + i + 1, shown)):
                break
        return rows.block()


def _object(text: bytes) -> dict[str, Any] | None:
    try:
        row = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return row if isinstance(row, dict) else None


def _number(value: Any) -> float:
    if value is None:
        return np.nan
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ValueError(value)
    return float(value)


def _is_number(value: Any) -> bool:
    return value is None or (isinstance(value, (int, float)) and not isinstance(value, bool))
