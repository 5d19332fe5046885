"""Where rows come from: what all sources share, and which one reads what."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from onlinegp.checks import LARGEST, Array
from onlinegp.streams.errors import BadData, BadRow, listed, short

ROWS = 4096  # in a block
PROBE = 100  # rows that tell text from numbers
KEY_NAMES = {"time", "timestamp", "date", "datetime", "id", "index", "row", "key"}  # not features, unless asked for


@dataclass
class Block:
    """Some rows: features X (n, d), target y (n,) with NaN where it is missing, and the key columns as they were."""

    X: Array
    y: Array
    keys: list[Any]
    rejected: list[BadRow] = field(default_factory=list)
    error: BadRow | None = None  # the row that ends the stream, after these

    def __len__(self) -> int:
        return len(self.y)

    def row(self, i: int) -> Block:
        """Return one row as a block of its own."""
        one = slice(i, i + 1)
        return Block(self.X[one], self.y[one], [key[one] for key in self.keys])


@dataclass(frozen=True)
class Columns:
    """Which columns are what. A target of None is missing in every row."""

    target: str | None
    features: tuple[str, ...]
    keys: tuple[str, ...]

    @property
    def numbers(self) -> list[str]:
        return [*self.features, *([self.target] if self.target is not None else [])]


class Source(ABC):
    """Rows in blocks, from a place that can be remembered.

    `names` are the columns, `numeric` says which of them hold numbers, `notes` what the user should know of them;
    `select` must be called before the blocks are read.
    """

    path: str
    names: list[str]
    numeric: dict[str, bool]
    columns: Columns
    notes: list[str]
    skip_bad = False
    live = False  # whether rows come as they happen

    def select(self, columns: Columns) -> None:
        self.columns = columns

    @abstractmethod
    def __iter__(self) -> Iterator[Block]:
        """Yield the blocks from the current position on."""

    @property
    @abstractmethod
    def position(self) -> dict[str, int]:
        """Where the next block begins, and a checksum of what comes before it: numbers to pass to `seek`."""

    @abstractmethod
    def seek(self, position: dict[str, int]) -> None:
        """Go on from a position that was noted before, or raise a CheckpointError if this is another input."""

    def rows_at_most(self, limit: int) -> int:
        """Return the number of rows, or `limit` if there are more or nobody knows."""
        return limit

    @property
    def unfinished(self) -> bool:
        """Whether a last line was left unread because it has no end yet."""
        return False

    def close(self) -> None:  # noqa: B027 (nothing to close, as a rule)
        pass


def open_source(
    path: str,
    *,
    format: str = "auto",
    delimiter: str = "auto",
    encoding: str = "utf-8",
    decimal: str = ".",
    rows: int = ROWS,
    resumable: bool = False,
) -> Source:
    """Return the source for a path, by its extension, or by its first character: a brace means JSON lines.

    With `resumable` its positions are meant for later runs: what may still change is left unread.
    """
    from onlinegp.streams.reading.lines import BOM, Lines

    plain = path.lower().removesuffix(".gz")
    if format == "parquet" or (format == "auto" and plain.endswith((".parquet", ".pq"))):
        from onlinegp.streams.reading.parquet_source import ParquetSource

        return ParquetSource(path, rows=rows, resumable=resumable)
    lines = Lines(path, rows=rows, resumable=resumable)
    if lines.peek(1).startswith(BOM):
        lines.skip(len(BOM))
    if format == "jsonl" or (format == "auto" and lines.peek(1).lstrip()[:1] == b"{"):
        from onlinegp.streams.reading.json_source import JsonSource

        return JsonSource(lines)
    from onlinegp.streams.reading.csv_source import CsvSource

    return CsvSource(lines, delimiter=delimiter, encoding=encoding, decimal=decimal)


def choose_columns(
    source: Source,
    *,
    target: str | None = None,
    features: tuple[str, ...] | None = None,
    keys: tuple[str, ...] | None = None,
    lags: int = 0,
) -> Columns:
    """Return which columns are what: as asked for, and otherwise by what they hold.

    The target is the last column of numbers; the features are the other ones, or none if there are lags; text columns
    and those called time, date, id and the like are keys.
    """
    _refuse_unknown(source, target, features or (), keys or ())
    numbers = [name for name in source.names if source.numeric[name]]
    if target is None:
        asked = {*(features or ()), *(keys or ())}
        candidates = [name for name in numbers if name not in asked]
        if not candidates:
            raise BadData(f"{source.path} has no column of numbers to predict. Its columns: {listed(source.names)}.")
        target = candidates[-1]
    if keys is None:
        taken = {target, *(features or ())}
        text = [name for name in source.names if not source.numeric[name] or name.lower() in KEY_NAMES]
        keys = tuple(name for name in text if name not in taken)
    if features is None:
        taken = {target, *keys}
        features = () if lags else tuple(name for name in numbers if name not in taken)
    if target in features:
        raise ValueError(
            f"the target {target!r} must not be among the features. Use --lags to predict it from its past."
        )
    return Columns(target, features, keys)


def _refuse_unknown(source: Source, target: str | None, features: tuple[str, ...], keys: tuple[str, ...]) -> None:
    """Refuse names that the source does not have, and those that are asked for twice."""
    for option, names in (("--features", features), ("--keys", keys)):
        if len(set(names)) < len(names):
            raise ValueError(f"{option} must name each column once, got {listed(names)}.")
    known = set(source.names)
    for name in (*([target] if target is not None else []), *features, *keys):
        if name not in known:
            raise ValueError(
                f"there is no column {short(name)!r} in {source.path}. Its columns: {listed(source.names)}."
            )


def columns_of(stream: dict[str, Any], source: Source, *, target_needed: bool = True) -> Columns:
    """Return the columns that a saved stream was about, as this source has them."""
    target, features = stream["columns"]["target"], tuple(stream["columns"]["features"])
    known = set(source.names)
    for name in (*features, *([target] if target_needed else [])):
        if name not in known:
            raise ValueError(f"the model needs the column {name!r}. {source.path} has: {listed(source.names)}.")
    taken = {target, *features}
    keys = tuple(name for name in source.names if name not in taken)
    return Columns(target if target in known else None, features, keys)


def infinite_or_missing(X: Array, y: Array) -> bool:
    """Whether some row needs a closer look: a feature is missing, or a number infinite or far too large."""
    return bool((X.size and not np.abs(X).max() < LARGEST) or (np.abs(y) >= LARGEST).any())
