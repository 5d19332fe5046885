"""The common interface of sources of rows, and the choice of target, features and keys."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from onlinegp.checks import LARGEST, Array
from onlinegp.columns.dates import likely_format
from onlinegp.columns.plan import Rules
from onlinegp.streams.errors import BadData, BadRow, listed, short
from onlinegp.streams.number_text import NOT_A_NUMBER, code_values, not_a_number, with_codes
from onlinegp.streams.reading.cell_types import Reader, feature_reader, is_missing, kind_of

BLOCK_ROWS = 4096  # rows of a block
PROBE = 100  # number of first rows from which the kind of each column is found
KEY_NAMES = {
    *("time", "timestamp", "date", "datetime", "id", "index", "row", "key", "unnamed: 0", "__index_level_0__")
}  # columns with these names are keys, and features only if --features names them
CLOCK_NAME = re.compile(r"(^|[-_. ])(t|ts|time|timestamp|date|datetime|epoch|unix|unixtime|utc|at)([-_. ]|$)")
ENDS_WITH_ID = re.compile(r"[-_. ](id|Id|ID)$|[a-z]I[dD]$")  # also customer_id and SensorID, but not grid
NUMBERS_ONLY = Rules()
CLOCK_UNITS = (1.0, 1e3, 1e6, 1e9)  # of the number of seconds since 1970, per second
DELIMITERS = "|;, :/"  # which a column may be told to be separated by, if there is only one column


@dataclass
class Block:
    """Rows of a source: features X (n, d), targets y (n,) with NaN if missing, and the unchanged key columns.

    If not all features are plain numbers, X contains objects: numbers, texts, datetimes, and None if missing.
    """

    X: Array
    y: Array
    keys: list[Any]
    rejected: list[BadRow] = field(default_factory=list)
    error: BadRow | None = None  # the bad row after this block that ends the stream

    def __len__(self) -> int:
        return len(self.y)

    def part(self, start: int, stop: int) -> Block:
        """Return the rows from `start` to `stop`. `rejected` and `error` belong to the last row of the block."""
        rows, last = slice(start, stop), stop >= len(self)
        keys = [key[rows] for key in self.keys]
        return Block(self.X[rows], self.y[rows], keys, self.rejected if last else [], self.error if last else None)


@dataclass(frozen=True)
class Columns:
    """The roles of columns: target, features and keys. A target of None is missing in every row.

    `kinds` contains number, category or date for each feature, and is empty if all features are numbers. Rows with a
    missing feature are bad unless `missing` is "impute". `na_values` are texts and numbers that mean missing.
    """

    target: str | None
    features: tuple[str, ...]
    keys: tuple[str, ...]
    kinds: tuple[str, ...] = ()
    missing: str = "stop"
    date_format: str | None = None
    na_values: tuple[str, ...] = ()

    @property
    def plain(self) -> bool:
        """Whether features need no encoding, because all of them are numbers that are never missing."""
        return not self.kinds and self.missing == "stop"

    @property
    def dtype(self) -> type:
        return np.float64 if self.plain else object

    @property
    def numbers(self) -> list[str]:
        """The columns to read as numbers."""
        features = [name for name, kind in zip(self.features, self.kinds_of_features, strict=True) if kind == "number"]
        return [*features, *([self.target] if self.target is not None else [])]

    @property
    def texts(self) -> list[str]:
        """The features to read as text."""
        return [name for name, kind in zip(self.features, self.kinds_of_features, strict=True) if kind != "number"]

    @property
    def kinds_of_features(self) -> tuple[str, ...]:
        return self.kinds or ("number",) * len(self.features)

    def readers(self, read: Callable[[Any], float]) -> list[tuple[str, Reader]]:
        """Return a reader for each feature. `read` is the reader of numbers."""
        how: Any = {"optional": self.missing == "impute", "format": self.date_format, "codes": self.na_values}
        kinds = zip(self.features, self.kinds_of_features, strict=True)
        return [(name, feature_reader(kind, self.reader(read), **how)) for name, kind in kinds]

    def reader(self, read: Callable[[Any], float]) -> Callable[[Any], float]:
        """Return `read`, a reader of numbers, extended by `na_values`."""
        return with_codes(read, self.na_values)

    def without_codes(self, values: Array) -> Array:
        """Replace numbers that mean missing by NaN."""
        codes = code_values(self.na_values)
        return np.where(np.isin(values, codes), np.nan, values) if codes else values


class Source(ABC):
    """Base class of sources: iterate over blocks of rows, and continue from a stored position.

    `names` are the columns, `numeric` says which columns contain numbers, `samples` are the values of the first rows by
    column, and `notes` are messages for the user. Call `select` before reading the blocks.
    """

    path: str
    names: list[str]
    numeric: dict[str, bool]
    samples: Mapping[str, Sequence[Any]]
    unnamed: frozenset[str] = frozenset()  # columns without a name in the header
    columns: Columns
    notes: list[str]
    skip_bad = False
    has_header = True  # whether the first line names the columns
    live = False  # whether rows arrive over time
    behind = 0  # number of rows after the position that are already done
    decimal = "."  # the decimal mark of numbers in text
    empty_is_missing = False  # whether an empty text means missing
    na_values: tuple[str, ...] = ()  # texts and numbers that mean missing

    def select(self, columns: Columns) -> None:
        self.columns = columns

    def kind(self, name: str, date_format: str | None = None) -> str:
        """Return the kind of a column from its first rows: number, date, category, or "" for anything else."""
        if self.numeric[name] and date_format is None:
            return "number"
        present = self.present(name)
        return kind_of(present, date_format, numeric=self.numeric[name])

    def type_of(self, name: str) -> type | None:
        """Return the type of the first values of a column, or None if all of them are missing."""
        missing = ("", None) if self.empty_is_missing else (None,)
        return next((type(value) for value in self.samples[name] if value not in missing), None)

    def is_key(self, name: str) -> bool:
        """Whether a column identifies rows, according to its name (or because it has no name)."""
        named = name.lower() in KEY_NAMES or ENDS_WITH_ID.search(name) is not None
        return named or name in self.unnamed or self._is_clock(name)

    def _is_clock(self, name: str) -> bool:
        """Whether a column named like a time, such as ts or created_at, counts from 1970: dates from 2001 to 2099."""
        if not named_like_a_time(name) or not self.numeric.get(name):
            return False
        with suppress(ValueError, OverflowError):
            numbers = [float(value) for value in self.present(name)]
            low, high = min(numbers), max(numbers)  # ValueError if there are none
            return any(1e9 * unit <= low and high < 4.1e9 * unit for unit in CLOCK_UNITS)
        return False

    def present(self, name: str) -> list[Any]:
        """Return the first values of a column that are not missing."""
        return [value for value in self.samples[name] if not is_missing(value, self.na_values)]

    def is_empty(self, name: str) -> bool:
        """Whether a column of a file has no value in the first rows."""
        values = self.samples[name]
        return bool(values) and not self.live and not self.present(name)

    def is_feature(self, name: str, rules: Rules, lags: int) -> bool:
        """Whether a column is a feature by default: dates of any name, and numbers if there are no lags.

        Text is no feature if it is dates in a format that has to be named.
        """
        if self.is_empty(name):
            return False
        kind = self.kind(name, rules.date_format)
        if kind == "category" and self.likely_dates(name):
            return False
        return rules.uses(kind) and (kind == "date" or not self.is_key(name)) and not (lags and kind == "number")

    def likely_dates(self, name: str) -> str | None:
        """Return the format of the dates of a column of text, or None if it does not look like dates."""
        return likely_format(self.present(name))

    def __iter__(self) -> Iterator[Block]:
        """Yield the blocks from the current position on."""
        for block in self._blocks():
            done = min(self.behind, len(block))
            self.behind -= done
            block = block.part(done, len(block)) if done else block
            if len(block) or block.rejected or block.error:
                yield block

    @abstractmethod
    def _blocks(self) -> Iterator[Block]:
        """Yield the blocks from the current position of the input."""

    @property
    def position(self) -> dict[str, int]:
        """The position for `seek`: where the next block begins, and a checksum of everything before.

        Within a block: where this block begins, and `behind`, the number of its rows that are done.
        """
        return self._place() | ({"behind": self.behind} if self.behind else {})

    def seek(self, position: dict[str, int]) -> None:
        """Continue at a stored position. Raise a CheckpointError if this is another input."""
        place = dict(position)
        self.behind = place.pop("behind", 0)
        self._seek(place)

    @abstractmethod
    def _place(self) -> dict[str, int]:
        """Return the position of the next block."""

    @abstractmethod
    def _seek(self, place: dict[str, int]) -> None:
        """Go to a position. Raise a CheckpointError if this is another input."""

    def rows_at_most(self, limit: int) -> int:
        """Return the number of rows, or `limit` if there are more rows or their number is unknown."""
        return limit

    @property
    def unfinished(self) -> bool:
        """Whether an incomplete last line was not read."""
        return False

    def close(self) -> None:  # noqa: B027 (nothing to close, as a rule)
        pass


def choose_columns(
    source: Source,
    *,
    target: str | None = None,
    features: tuple[str, ...] | None = None,
    keys: tuple[str, ...] | None = None,
    lags: int = 0,
    rules: Rules = NUMBERS_ONLY,
) -> Columns:
    """Choose target, features and keys, with defaults for names that are not given.

    By default, the target is the last column of numbers that is not a key. The features are the other columns of
    numbers (none if there are lags), and categories and dates if the rules use them. The keys are the columns of text,
    columns with names like time, date and id, columns without a name, and columns without a value in the first rows.
    Columns of text and dates are keys even if they are features.
    """
    _check_names(source, target, features or (), keys or ())
    kinds = {name: source.kind(name, rules.date_format) for name in source.names}
    numbers = [name for name in source.names if kinds[name] == "number"]
    copied = {name for name in source.names if source.is_key(name) or source.is_empty(name)}
    if target is None:
        asked = {*(features or ()), *(keys or ())}
        free = [name for name in numbers if name not in asked and not source.is_key(name)]
        candidates = [name for name in free if name not in copied] or free
        if not candidates:
            raise BadData(
                f"{source.path} has no column of numbers to predict. Its columns: {listed(source.names)}. "
                f"{_other_delimiter(source.names)}"
                f"If one of them holds numbers that should be predicted, name it with --target."
            )
        target = candidates[-1]
    _refuse_text(source, target)
    if keys is None:
        taken = {target, *(name for name in features or () if kinds[name] == "number")}
        keys = tuple(name for name in source.names if (kinds[name] != "number" or name in copied) and name not in taken)
    if features is None:
        features = tuple(name for name in source.names if name != target and source.is_feature(name, rules, lags))
        features = tuple(name for name in features if name not in keys or kinds[name] != "number")
    if target in features:
        raise ValueError(
            f"the target {target!r} must not be among the features. Use --lags to predict it from its past."
        )
    _refuse_unread(source, features, kinds, rules)
    used = tuple(kinds[name] if kinds[name] and rules.uses(kinds[name]) else "number" for name in features)
    plain = all(kind == "number" for kind in used)
    kinds_used = () if plain else used
    return Columns(target, features, keys, kinds_used, rules.missing, rules.date_format, source.na_values)


def named_like_a_time(name: str) -> bool:
    return CLOCK_NAME.search(re.sub(r"([a-z])([A-Z])", r"\1_\2", name).lower()) is not None  # eventTime: event_time


def refuse_unknown(source: Source, *names: str) -> None:
    """Raise an error if a name is not a column of the source."""
    known = set(source.names)
    for name in names:
        if name not in known:
            raise ValueError(
                f"there is no column {short(name)!r} in {source.path}. Its columns: {listed(source.names)}."
            )


def need(source: Source, *names: str) -> None:
    """Raise an error if the source lacks a column that the model needs."""
    known = set(source.names)
    for name in names:
        if name not in known:
            raise ValueError(f"the model needs the column {name!r}. {source.path} has: {listed(source.names)}.")


def _other_delimiter(names: Sequence[str]) -> str:
    """Return a remedy for a header that was not divided into columns, or ""."""
    mark = next((mark for mark in DELIMITERS if len(names) == 1 and mark in names[0]), None)
    shown = "space" if mark == " " else f"'{mark}'"
    return f"If {shown} separates the columns, add --delimiter {shown}. " if mark else ""


def _check_names(source: Source, target: str | None, features: tuple[str, ...], keys: tuple[str, ...]) -> None:
    """Raise an error for unknown names and for names that are given twice."""
    for option, names in (("--features", features), ("--keys", keys)):
        if len(set(names)) < len(names):
            raise ValueError(f"{option} must name each column once, got {listed(names)}.")
    refuse_unknown(source, *([target] if target is not None else []), *features, *keys)


def _refuse_text(source: Source, target: str) -> None:
    """Raise an error for a target of a file that has only text in the first rows."""
    present = source.present(target)
    text = (isinstance(value, str) and not_a_number(value) == NOT_A_NUMBER for value in present)
    if present and not source.live and not source.numeric[target] and all(text):
        raise BadData(
            f"{source.path}: the target {short(target)!r} contains text, such as {short(present[0])!r}, but a target "
            "must be a number. Name another column with --target, or write two classes as 0 and 1."
        )


def _refuse_unread(source: Source, features: tuple[str, ...], kinds: dict[str, str], rules: Rules) -> None:
    """Raise an error for features of text or dates without an option that says how to encode them."""
    for name in features if not source.live else ():
        if not rules.uses(kinds[name]):
            option = "--dates calendar" if kinds[name] == "date" else "--categories onehot"
            raise BadData(
                f"{source.path}: the column {short(name)!r} does not contain numbers. "
                f"Add {option} to predict from it, or leave it out of --features."
            )


def columns_of(stream: dict[str, Any], source: Source, *, target_needed: bool = True) -> Columns:
    """Return the columns of a saved stream, with the keys of `source`."""
    stored = stored_columns(stream)
    target, known = stored.target, set(source.names)
    need(source, *stored.features, *([str(target)] if target_needed else []))
    keys = tuple(name for name in source.names if name not in stored.numbers)
    return replace(stored, target=target if target in known else None, keys=keys)


def stored_columns(stream: dict[str, Any]) -> Columns:
    """Return the columns of a saved stream."""
    stored = stream["columns"]
    features, keys, kinds = (tuple(stored[name]) for name in ("features", "keys", "kinds"))
    codes = tuple(stored.get("na_values", ()))
    return Columns(stored["target"], features, keys, kinds, stored["missing"], stored["date_format"], codes)


def infinite_or_missing(X: Array, y: Array) -> bool:
    """Whether a feature is missing, or a number is infinite or too large, so that each row must be checked."""
    return bool((X.size and not np.abs(X).max() < LARGEST) or (np.abs(y) >= LARGEST).any())


def read_ahead(source: Source) -> Generator[tuple[Block, dict[str, int]], None, None]:
    """Yield blocks, each with the position after it. A thread reads the next block of a file in the background."""
    blocks = iter(source)

    def step() -> tuple[Block, dict[str, int]] | None:
        block = next(blocks, None)
        return None if block is None else (block, source.position)

    if source.live:
        while pair := step():
            yield pair
        return
    with ThreadPoolExecutor(1) as reader:
        coming = reader.submit(step)
        while pair := coming.result():
            coming = reader.submit(step)
            yield pair
