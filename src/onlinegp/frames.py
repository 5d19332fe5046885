"""Read rows with names (data frames supported by narwhals, dicts, named tuples), and build frames.

Narwhals is imported only when an argument looks like a frame or a series.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from onlinegp.checks import Array

KINDS = ("pandas", "polars", "pyarrow")
FLEET = "the fleet"  # as the owner of rows: onlinegp.Columns cannot be a model of a fleet


@dataclass(frozen=True)
class Origin:
    """The kind of frame that rows came from, and their pandas index."""

    kind: str
    index: Any = None


def is_frame(X: Any) -> bool:
    """Return whether X has named columns. This checks only the type, so it is fast and imports nothing."""
    return hasattr(type(X), "columns") or hasattr(type(X), "column_names")


def is_series(y: Any) -> bool:
    return hasattr(y, "to_numpy") and not is_frame(y)


def read(X: Any, expected: Sequence[str] | None = None, *, owner: str = "the model") -> tuple[Any, Array | None]:
    """Return the values of rows with names, (n, d), and the names. Return other objects unchanged, with None.

    Parameters
    ----------
    X : frame, list of dicts or named tuples, or array-like
    expected : sequence of str, optional
        The columns of the training data, which are selected by name.
    owner : str
        The name of the model, for error messages.

    Returns
    -------
    values : array of shape (n, d), or X
    names : array of str, or None if the column names are not strings
    """
    if is_records(X):
        return _records(X, expected, owner)
    if isinstance(X, Mapping) and not hasattr(X, "toarray"):  # a sparse matrix may be a dict, too
        raise TypeError(
            "X must have rows, got a dict. If it is one row, pass [X], or use predict_one and learn_one. "
            "If it contains columns, pass a data frame."
        )
    if not is_frame(X):
        return X, None
    frame = narwhal(X)
    names = _names(frame.columns)
    if expected is not None and names is not None:
        _same_columns(list(expected), list(names), owner)
        frame, names = frame.select(list(expected)), np.asarray(expected, dtype=object)
    columns = [floats(frame[:, i], f"column {name!r} of X", owner) for i, name in enumerate(frame.columns)]
    return np.stack(columns, axis=1) if columns else np.empty((len(frame), 0)), names


def named(x: Any) -> Mapping[str, Any] | None:
    """Return a row with names as a mapping, given a mapping, a named tuple, or a pandas Series with text labels.

    Return None for other objects.
    """
    if isinstance(x, Mapping):
        return x
    if isinstance(x, tuple):
        as_dict = getattr(x, "_asdict", None)  # a method of named tuples
        return None if as_dict is None else as_dict()
    labels = x.index.tolist() if is_series(x) and hasattr(x, "index") else ()
    texts = all(isinstance(label, str) for label in labels) and len(set(labels)) == len(labels)
    return dict(zip(labels, x.tolist(), strict=True)) if labels and texts else None


def is_records(X: Any) -> bool:
    """Return whether X is a list or a tuple of rows with names."""
    return isinstance(X, (list, tuple)) and len(X) > 0 and (isinstance(X[0], Mapping) or hasattr(X[0], "_asdict"))


class Records:
    """A table from rows with names. Its values can be of any kind; it is read by column, as frames of narwhals are."""

    def __init__(self, rows: Sequence[Mapping[str, Any]]) -> None:
        self.rows, self.columns = rows, list(dict.fromkeys(name for row in rows for name in row))

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, name: str) -> RecordColumn:
        return RecordColumn([row.get(name) for row in self.rows])


@dataclass(frozen=True)
class RecordColumn:
    """A column of rows with names. If a row lacks the name, the value is missing."""

    values: list[Any]

    def to_list(self) -> list[Any]:
        return [value.item() if isinstance(value, np.generic) else value for value in self.values]


def in_order(row: Mapping[str, Any], names: Sequence[str], owner: str = "the model", what: str = "x") -> list[Any]:
    """Return the values of a row in the order of `names`. Raise an error if the row has other names."""
    if len(row) != len(names) or not all(name in row for name in names):
        _same_columns(list(names), list(row), owner, what)
    return [row[name] for name in names]


def _records(X: Any, expected: Sequence[str] | None, owner: str) -> tuple[Array, Array]:
    """Return the values and names of a list of rows with names. The first row determines the order."""
    rows = [named(x) for x in X]
    names = list(rows[0] or ()) if expected is None else list(expected)
    if odd := [name for name in names if not isinstance(name, str)]:
        raise TypeError(f"the names of features must be strings, got {odd[0]!r}. Rename it.")
    table = []
    for i, row in enumerate(rows):
        what = "x" if len(rows) == 1 else f"row {i} of X"
        if row is None:
            raise TypeError(f"{what} must have names like the rows before, got {X[i]!r}. Pass only dicts, or no dicts.")
        table.append(in_order(row, names, owner if expected is not None else "the first row", what))
    columns = [
        finite([_number(row[j], f"feature {name!r}", owner) for row in table], f"feature {name!r}")
        for j, name in enumerate(names)
    ]
    return np.stack(columns, axis=1) if columns else np.empty((len(X), 0)), np.asarray(names, dtype=object)


def narwhal(X: Any) -> Any:
    """Convert a frame of any kind to a frame of narwhals."""
    narwhals = _narwhals()
    try:
        return narwhals.from_native(_eager(X), eager_only=True)
    except narwhals.exceptions.DuplicateError:
        names = list(X.columns)
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"X has several columns with the name {twice!r}. Rename them, or drop all but one.") from None


def target(y: Any) -> Any:
    """Return a series as (n,), a frame or dicts of outputs as (n, p), and other objects unchanged."""
    if is_frame(y) or is_records(y):
        return read(y)[0]
    if is_series(y) and not isinstance(y, np.generic):
        return floats(_narwhals().from_native(y, series_only=True), "y")
    return y


def series(y: Any) -> Array:
    """Return a series of any kind as float64, with NaN where a value is missing. A frame or dicts become (n, p)."""
    if np.iscomplexobj(y):
        kind = np.asarray(y).dtype
        raise ValueError(f"Complex data not supported: y has dtype {kind}. Pass real and imaginary parts separately.")
    try:
        if hasattr(y, "dtype") and (kind := np.asarray(y).dtype).kind in "mM":
            raise TypeError(f"got times of dtype {kind}")
        return np.asarray(read(y)[0] if is_records(y) else y, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise type(error)(f"y must hold numbers: {error}. Pass one column of a data frame, such as df['y'].") from None


def floats(series: Any, name: str, owner: str = "the model") -> Array:
    """Return a column as finite float64. Raise an error with the name of the column and the invalid value."""
    nw = _narwhals()
    if series.dtype == nw.Object:
        values = np.array([_number(value, name, owner) for value in series.to_list()], dtype=np.float64)
    elif series.dtype.is_numeric() or series.dtype == nw.Boolean:
        values = series.cast(nw.Float64).to_numpy()
    else:
        raise ValueError(f"{name} must hold numbers, got {series.dtype}. {_remedy(name, owner)}")
    return finite(values, name)


def finite(numbers: Any, name: str) -> Array:
    """Return the numbers of a column as float64. Raise an error with the row of a number that is not finite."""
    values = np.asarray(numbers, dtype=np.float64)
    if not np.isfinite(values).all():
        row = int(np.flatnonzero(~np.isfinite(values))[0])
        what = "infinity" if np.isinf(values[row]) else "NaN or nothing"
        raise ValueError(
            f"{name} contains {what} at row {row} (counted from 0). Every value must be finite (no NaN, no inf); "
            f"drop or impute this row{_imputing(name)}."
        )
    return values


def _imputing(name: str) -> str:
    return "" if name == "y" else ", or use onlinegp.Columns(model, missing='impute')"


def origin(X: Any) -> Origin | None:
    """Return the origin of a frame. Return None if X is not a frame."""
    if not is_frame(X):
        return None
    kind = str(narwhal(X).implementation.value)
    return Origin(kind, X.index if kind == "pandas" else None)


def build(columns: dict[str, Any], where: Origin) -> Any:
    """Build a frame of the same kind and with the same index as the original frame."""
    if where.kind not in KINDS:
        raise ValueError(f"kind must be one of {', '.join(map(repr, KINDS))}, got {where.kind!r}.")
    try:
        frame = _narwhals().from_dict(columns, backend=where.kind).to_native()
    except ModuleNotFoundError as error:
        raise ImportError(
            f"a frame of {where.kind} requires {where.kind}, which is not installed. Install it, or choose another "
            f"library that you have with `kind`: {', '.join(KINDS)}."
        ) from error
    if where.index is not None:
        frame.index = where.index
    return frame


def _number(value: Any, name: str, owner: str) -> float:
    """Return a value as a float, NaN if missing. Raise an error for text, dates and other values."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return np.nan
    try:
        if not isinstance(value, str | bytes):
            return float(value)
    except (TypeError, ValueError):
        pass
    what = "the text " if isinstance(value, str | bytes) else ""
    raise ValueError(f"{name} must hold numbers, got {what}{value!r}. {_remedy(name, owner)}")


def _remedy(name: str, owner: str) -> str:
    if name == "y":
        return "Convert it first, with pandas for example by pd.to_numeric(y)."
    model = "Use onlinegp.Columns(model) around the whole model"
    encode = "Encode X with onlinegp.columns.Encoding" if owner == FLEET else model
    return f"{encode} for text and dates, or drop it."


def _names(columns: Sequence[Any]) -> Array | None:
    """Return the names if all are text, and None if no name is text (the rule of scikit-learn)."""
    text = [isinstance(name, str) for name in columns]
    if any(text) and not all(text):
        odd = columns[text.index(False)]
        raise TypeError(f"the column names of X must all be strings, or none of them, got {odd!r}. Rename it.")
    return np.asarray(columns, dtype=object) if columns and all(text) else None


def _same_columns(expected: list[str], names: list[str], owner: str, what: str = "X") -> None:
    missing = [name for name in expected if name not in names]
    unknown = [name for name in names if name not in expected]
    if missing or unknown:
        faults = [f"lacks {', '.join(map(repr, missing))}"] if missing else []
        faults += [f"also has {', '.join(map(repr, unknown))}, unseen in training"] if unknown else []
        kind = "columns" if what == "X" else "names"
        source = owner if owner == "the first row" else f"the training of {owner}"
        index = " Use itertuples(index=False) for the rows of a frame." if unknown == ["Index"] else ""
        raise ValueError(
            f"the {kind} of {what} should match {source}: {what} {' and '.join(faults)}. "
            f"Pass {', '.join(map(repr, expected))}, in any order.{index}"
        )


def _eager(X: Any) -> Any:
    if hasattr(X, "collect") and not hasattr(X, "to_numpy"):
        raise TypeError(f"X must be a frame in memory, got a {type(X).__name__}. Pass X.collect().")
    return X


def _narwhals() -> Any:
    try:
        import narwhals
    except ImportError:
        raise ImportError(
            "data frames require narwhals, which is not installed. "
            "Install it with `pip install 'onlinegp[frames]'`, or pass X.to_numpy()."
        ) from None
    return narwhals
