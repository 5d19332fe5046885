"""Read data frames (pandas, Polars, Arrow and others that narwhals supports), and build frames of the same kind.

Narwhals is imported only when an argument looks like a frame or a series.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from onlinegp.checks import Array

KINDS = ("pandas", "polars", "pyarrow")


@dataclass(frozen=True)
class Origin:
    """The kind of frame that rows came from, and their pandas index."""

    kind: str
    index: Any = None


def is_frame(X: Any) -> bool:
    """Return whether X has named columns. This looks at the type only, so it is cheap and imports nothing."""
    return hasattr(type(X), "columns") or hasattr(type(X), "column_names")


def is_series(y: Any) -> bool:
    return hasattr(y, "to_numpy") and not is_frame(y)


def read(X: Any, expected: Sequence[str] | None = None, *, owner: str = "the model") -> tuple[Any, Array | None]:
    """Return the values of a frame, (n, d), and the names of its columns. Return anything else unchanged, with None.

    Parameters
    ----------
    X : frame or array-like
    expected : sequence of str, optional
        The columns that the model was trained with. They are selected by name, in any order.
    owner : str
        The name of the model, for error messages.

    Returns
    -------
    values : array of shape (n, d), or X
    names : array of str, or None if the column names are not strings
    """
    if not is_frame(X):
        return X, None
    frame = narwhal(X)
    names = _names(frame.columns)
    if expected is not None and names is not None:
        _same_columns(list(expected), list(names), owner)
        frame, names = frame.select(list(expected)), np.asarray(expected, dtype=object)
    columns = [floats(frame[:, i], f"column {name!r} of X") for i, name in enumerate(frame.columns)]
    return np.stack(columns, axis=1) if columns else np.empty((len(frame), 0)), names


def narwhal(X: Any) -> Any:
    """Return a frame of any kind as narwhals' frame."""
    return _narwhals().from_native(_eager(X), eager_only=True)


def target(y: Any) -> Any:
    """Return a series as (n,), a frame of outputs as (n, p), and anything else unchanged."""
    if is_frame(y):
        return read(y)[0]
    if is_series(y) and not isinstance(y, np.generic):
        return floats(_narwhals().from_native(y, series_only=True), "y")
    return y


def floats(series: Any, name: str) -> Array:
    """Return a column as finite float64, or raise an error that names the column and the value."""
    nw = _narwhals()
    if series.dtype == nw.Object:
        values = np.array([_number(value, name) for value in series.to_list()], dtype=np.float64)
    elif series.dtype.is_numeric() or series.dtype == nw.Boolean:
        values = series.cast(nw.Float64).to_numpy()
    else:
        raise ValueError(
            f"{name} must hold numbers, got {series.dtype}. Use onlinegp.Columns for text and dates, or drop it."
        )
    if not np.isfinite(values).all():
        row = int(np.flatnonzero(~np.isfinite(values))[0])
        what = "infinity" if np.isinf(values[row]) else "NaN or nothing"
        raise ValueError(
            f"{name} contains {what} at row {row} (counted from 0). Every value must be finite (no NaN, no inf); "
            f"drop or impute that row."
        )
    return values


def origin(X: Any) -> Origin | None:
    """Return the origin of X if it is a frame, else None."""
    if not is_frame(X):
        return None
    kind = str(_narwhals().from_native(X, eager_only=True).implementation.value)
    return Origin(kind, X.index if kind == "pandas" else None)


def build(columns: dict[str, Any], where: Origin) -> Any:
    """Build a frame of the same kind, and with the same index, as the original frame."""
    if where.kind not in KINDS:
        raise ValueError(f"kind must be one of {', '.join(map(repr, KINDS))}, got {where.kind!r}.")
    frame = _narwhals().from_dict(columns, backend=where.kind).to_native()
    if where.index is not None:
        frame.index = where.index
    return frame


def _number(value: Any, name: str) -> float:
    if isinstance(value, str | bytes):
        raise ValueError(
            f"{name} must hold numbers, got the text {value!r}. Use onlinegp.Columns for text and dates, or drop it."
        )
    try:
        return float(value)
    except (TypeError, ValueError):  # None and similar values
        return np.nan


def _names(columns: Sequence[Any]) -> Array | None:
    """Return the names if all of them are text, None if none is: scikit-learn's rule."""
    text = [isinstance(name, str) for name in columns]
    if any(text) and not all(text):
        odd = columns[text.index(False)]
        raise TypeError(f"the column names of X must all be strings, or none of them, got {odd!r}. Rename it.")
    return np.asarray(columns, dtype=object) if columns and all(text) else None


def _same_columns(expected: list[str], names: list[str], owner: str) -> None:
    missing = [name for name in expected if name not in names]
    unknown = [name for name in names if name not in expected]
    if missing or unknown:
        faults = [f"lacks {', '.join(map(repr, missing))}"] if missing else []
        faults += [f"has {', '.join(map(repr, unknown))} too, unseen in training"] if unknown else []
        raise ValueError(
            f"the columns of X should match those that {owner} was trained with: X {' and '.join(faults)}. "
            f"Pass {', '.join(map(repr, expected))}, in any order."
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
