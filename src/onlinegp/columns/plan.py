"""Learn from the first rows how to encode each column."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np

from onlinegp.checks import LARGEST, Array, count
from onlinegp.columns.dates import are_dates, checked_format, phases, seconds
from onlinegp.columns.encoders import Calendar, Learned, Number, OneHot, Ordinal, Part, categories

CHOICES = {
    "categories": ("onehot", "ordinal", "ignore"),
    "dates": ("calendar", "ignore"),
    "missing": ("impute", "stop"),
}
PARTS: dict[str, type[Part]] = {part.kind: part for part in (Number, OneHot, Ordinal, Calendar)}
Say = Callable[[str], None]


@dataclass(frozen=True)
class Rules:
    """How to encode categories, dates and missing values."""

    categories: str = "ignore"
    limit: int = 10
    dates: str = "ignore"
    date_format: str | None = None
    missing: str = "stop"

    def __post_init__(self) -> None:
        for name, known in CHOICES.items():
            if getattr(self, name) not in known:
                raise ValueError(f"{name} must be one of {', '.join(known)}, got {getattr(self, name)!r}.")
        count(limit=self.limit)
        checked_format(self.date_format)

    def uses(self, kind: str) -> bool:
        """Whether columns of a kind (number, category, date) are used. Columns of other kinds are never used."""
        asked = {"number": "number", "category": self.categories, "date": self.dates}
        return asked.get(kind, "ignore") != "ignore"


@dataclass(frozen=True)
class Plan:
    """The encoding of each column, in order."""

    columns: tuple[Learned, ...]

    @property
    def names(self) -> list[str]:
        """The names of the encoded columns."""
        return [name for column in self.columns for name in column.names]

    def __call__(self, cells: Any) -> Array:
        """Encode cells, (n, columns) of objects with None or NaN for missing values, as numbers, (n, len(names))."""
        X = [column.encode(cells[:, j].tolist()) for j, column in enumerate(self.columns)]
        return np.concatenate(X, axis=1) if X else np.empty((len(cells), 0))

    def summary(self) -> list[str]:
        """Return a line of text for each column that is encoded."""
        return [
            f"{c.column}: {', '.join(c.names)}"
            for c in self.columns
            if c.names != [c.column] or c.part.kind == "ordinal"
        ]

    def dump(self) -> list[dict[str, Any]]:
        """Return the plan as plain values, for a file."""
        return [_dumped(column) for column in self.columns]

    @classmethod
    def load(cls, contents: Any) -> Plan:
        """Return the plan in a file. Raise a ValueError if it is not valid."""
        if not isinstance(contents, list):
            raise ValueError("the plan of the columns must be a list")
        return cls(tuple(map(_loaded, contents)))


def kind_of(values: Sequence[Any], format: str | None) -> str:
    """Return "date" or "category" for values that are not numbers, or "" for other values. No value may be missing."""
    if are_dates(values, format):
        return "date"
    return "category" if sum(isinstance(value, (str, bool)) for value in values) * 2 > len(values) else ""


def learn(names: Sequence[str], kinds: Sequence[str], cells: Any, rules: Rules, say: Say = lambda text: None) -> Plan:
    """Learn the encoding of columns from their cells in the first rows, (n, columns) of objects.

    A kind is number, category or date. A cell is a float, a text or a datetime; None and NaN are missing values.
    """
    columns = [
        _part(name, kind, cells[:, j].tolist(), rules, say)
        for j, (name, kind) in enumerate(zip(names, kinds, strict=True))
    ]
    return Plan(tuple(columns))


def _part(name: str, kind: str, cells: list[Any], rules: Rules, say: Say) -> Learned:
    part: Part = Number()
    if kind == "category":
        values, found = categories(cells, rules.limit)
        part = (OneHot if rules.categories == "onehot" else Ordinal)(values)
        if found > len(values):
            say(
                f"{name!r} has {found} categories in the first rows, such as {values[0]!r}: the {len(values)} most "
                f"frequent are kept, all others become 'other'"
            )
    elif kind == "date":
        hours, at = phases(cells)["hour"], seconds(cells)
        known = at[~np.isnan(at)]
        part = Calendar(float(known.min()) if len(known) else 0.0, bool((np.nan_to_num(hours) != 0.0).any()))
    if not any(cell is not None and cell == cell for cell in cells):
        raise ValueError(
            f"column {name!r} has no value in the first {len(cells)} rows, so its encoding cannot be learned. "
            f"Leave it out, or learn from more rows."
        )
    if rules.missing == "stop":
        return Learned(name, part)
    X = part.encode(cells)
    missing = np.isnan(X[:, 0])
    return Learned(name, part, tuple(X[~missing].mean(axis=0).tolist()), bool(missing.any()))


# In a file


def _dumped(column: Learned) -> dict[str, Any]:
    means = None if column.means is None else list(column.means)
    rest = {"column": column.column, "kind": column.part.kind, "means": means, "flag": column.flag}
    return rest | {name: list(v) if isinstance(v, tuple) else v for name, v in asdict(column.part).items()}


def _loaded(entry: Any) -> Learned:
    """Return one column of a stored plan. Everything is checked, because files are not trusted."""
    _need(isinstance(entry, dict) and entry.get("kind") in tuple(PARTS), "kind")
    kind = PARTS[entry["kind"]]
    own = [field.name for field in fields(kind)]
    _need(set(entry) == {"column", "kind", "means", "flag", *own}, "made of column, kind, means, flag and its own")
    _need(isinstance(entry["column"], str), "column")
    _need(isinstance(entry["flag"], bool) and isinstance(entry.get("hours", True), bool), "flag")
    _need(_is_number(entry.get("start", 0.0)), "start")
    if "values" in own:
        values = entry["values"]
        _need(isinstance(values, list) and len(values) > 0 and all(isinstance(v, str) for v in values), "values")
        _need(len(set(values)) == len(values), "values")
    own_values: dict[str, Any] = {name: tuple(entry[name]) if name == "values" else entry[name] for name in own}
    part = kind(**own_values)
    means = entry["means"]
    _need(means is None or (isinstance(means, list) and all(map(_is_number, means))), "means")
    _need(means is None or len(means) == len(part.suffixes), "means")
    _need(means is not None or not entry["flag"], "flag")
    return Learned(entry["column"], part, None if means is None else tuple(means), entry["flag"])


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < LARGEST


def _need(good: bool, what: str) -> None:
    if not good:
        raise ValueError(f"the plan of a column is not valid: {what}")
