"""Encode the columns of a data frame as numbers, as the commands do with a table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from decimal import Decimal
from typing import Any, Self
from warnings import warn

import numpy as np

from onlinegp import frames
from onlinegp.checks import LARGEST, Array
from onlinegp.columns.dates import likely_format, moment, no_date
from onlinegp.columns.encoders import MISSING
from onlinegp.columns.plan import Plan, Rules, kind_of, learn

KIND_OF = {"number": "number", "onehot": "category", "ordinal": "category", "calendar": "date"}


class Encoding:
    """Encode categories, dates and missing values of a data frame as numbers, with rules learned by `fit`.

    :class:`onlinegp.Columns` uses and describes this encoding. Use this class to encode a frame for another library.
    Fit it on the first rows of a stream, so that it uses nothing from the future.

    Parameters
    ----------
    categories, limit, dates, date_format, missing, na_values
        See :class:`onlinegp.Columns`.

    Attributes
    ----------
    names_ : list of str
        The columns that `transform` returns.

    Examples
    --------
    >>> import pandas as pd
    >>> from onlinegp.columns import Encoding
    >>> frame = pd.DataFrame({"x": [1.0, None, 3.0], "city": ["Rome", "Bern", "Rome"]})
    >>> columns = Encoding(missing="impute").fit(frame)
    >>> columns.names_
    ['x', 'x=missing', 'city=Bern', 'city=Rome']
    >>> columns.transform(frame)["x"].tolist()
    [1.0, 2.0, 3.0]
    """

    def __init__(
        self,
        *,
        categories: str = "onehot",
        limit: int = 10,
        dates: str = "calendar",
        date_format: str | None = None,
        missing: str = "stop",
        na_values: Sequence[str] = (),
    ) -> None:
        self.rules = Rules(categories, limit, dates, date_format, missing)
        self.na_values, self._na_numbers = tuple(na_values), _na_numbers(na_values)

    def __repr__(self) -> str:
        return repr(self.rules).replace("Rules", "Encoding", 1)

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn categories, the first date and means from the rows of a frame."""
        frame, kinds = _frame(X), self.kinds_of(X)
        self.kinds = {name: kind for name, kind in kinds.items() if self.rules.uses(kind)}
        for name, kind in kinds.items():
            _warn_of(name, kind, self._known(frame[name]), self.rules)
        if not self.kinds:
            raise ValueError(f"no column of X can be encoded. X has: {', '.join(map(repr, frame.columns))}.")
        cells = self._cells(frame)
        self.plan_ = learn(list(self.kinds), list(self.kinds.values()), cells, self.rules, _warn_of_limit)
        self.names_ = self.plan_.names
        twice = [name for name, times in Counter(self.names_).items() if times > 1]
        if twice:
            raise ValueError(f"two columns would have the name {twice[0]!r}. Rename a column of X.")
        return self

    def kinds_of(self, X: Any) -> dict[str, str]:
        """Return "number", "date" or "category" for each column of a frame, or "" if it is none of them."""
        frame = _frame(X)
        return {name: _kind(frame[name], self._known(frame[name]), self.rules.date_format) for name in frame.columns}

    def transform(self, X: Any) -> Any:
        """Return the columns of a frame as numbers, in a frame of the same kind, without ignored columns."""
        if not hasattr(self, "plan_"):
            raise ValueError("Encoding is not fitted yet. Call fit with the first rows.")
        Z = self.encode(X)
        origin = frames.origin(X)
        assert origin is not None
        return frames.build({name: Z[:, j] for j, name in enumerate(self.names_)}, origin)

    def encode(self, X: Any) -> Array:
        """Return the columns of a frame, or of a list of rows with names, as numbers, (n, len(names_))."""
        frame = _frame(X)
        unknown = [name for name in self.kinds if name not in frame.columns]
        if unknown:
            raise ValueError(f"X lacks the column {unknown[0]!r}, which fit had. Pass all of {', '.join(self.kinds)}.")
        return self.plan_(self._cells(frame))

    def dump(self) -> list[dict[str, Any]]:
        """Return what was learned as plain values, for a file."""
        return self.plan_.dump()

    def load(self, contents: Any) -> Self:
        """Continue with the result of `dump`. Raise a ValueError if it is not valid."""
        self.plan_ = Plan.load(contents)
        self.kinds = {column.column: KIND_OF[column.part.kind] for column in self.plan_.columns}
        self.names_ = self.plan_.names
        return self

    def fit_transform(self, X: Any, y: Any = None) -> Any:
        """Learn from a frame and return it as numbers. Use this only for the first rows of a stream."""
        return self.fit(X).transform(X)

    def _cells(self, frame: Any) -> Any:
        """Return the used columns as objects, (n, columns), with None or NaN for missing values."""
        cells = np.empty((len(frame), len(self.kinds)), dtype=object)
        for j, (name, kind) in enumerate(self.kinds.items()):
            values = frame[name].to_list()
            for i, value in enumerate(values):
                cells[i, j] = (
                    None
                    if _missing(value) or self._means_missing(value)
                    else _cell(value, kind, name, i, self.rules.date_format)
                )
        return cells

    def _known(self, series: Any) -> list[Any]:
        """Return the values of a column that are not missing."""
        return [value for value in series.to_list() if not (_missing(value) or self._means_missing(value))]

    def _means_missing(self, value: Any) -> bool:
        """Return whether a value is in `na_values`, as text or as a number."""
        if not self.na_values or isinstance(value, bool):
            return False
        return str(value).strip(" \t") in self.na_values or (
            isinstance(value, (int, float)) and value in self._na_numbers
        )


def _na_numbers(texts: Sequence[str]) -> set[float]:
    numbers = set()
    for text in texts:
        with suppress(ValueError):
            numbers.add(float(text))
    return numbers


def _frame(X: Any) -> Any:
    if frames.is_records(X):
        return frames.Records([frames.named(x) or {} for x in X])
    if not frames.is_frame(X):
        raise TypeError(f"X must be a data frame with named columns, got a {type(X).__name__}.")
    return frames.narwhal(X)


def _kind(series: Any, values: list[Any], format: str | None) -> str:
    """Return "number", "date" or "category" for the values of a column, or "" for other values."""
    if hasattr(series, "dtype") and (series.dtype.is_numeric() or str(series.dtype) == "Boolean"):
        return "number"
    if all(isinstance(value, (int, float, Decimal)) for value in values):
        return "number"
    return kind_of(values, format)


def _warn_of(name: str, kind: str, values: list[Any], rules: Rules) -> None:
    """Warn of a column that is not used, or not as what it is, because of the form of its values."""
    if kind in ("number", "date"):
        return
    if not kind:
        odd = next((value for value in values if isinstance(value, (str, bool))), values[0])
        text = f"the column {name!r} is not used, because it is neither numbers nor dates nor text: it has {odd!r}"
        warn(f"{text}. Convert it, pass na_values= if this means a missing value, or drop it.", stacklevel=3)
    elif rules.uses("date") and (format := likely_format(values)):
        warn(f"the column {name!r} has dates of another form: use date_format={format!r} for dates.", stacklevel=3)


def _warn_of_limit(text: str) -> None:
    remedy = "Use a larger limit=, convert numbers, or drop the column if each row has its own text"
    warn(f"{text}. {remedy}.", stacklevel=2)


def _missing(value: Any) -> bool:
    """Return whether a value is missing: None, NaN, or a text that means missing on the command line."""
    if isinstance(value, str):
        return value.strip(" \t") in MISSING
    return value is None or type(value).__name__ == "NAType" or value != value  # pandas' NA cannot be compared


def _cell(value: Any, kind: str, name: str, row: int, format: str | None) -> Any:
    """Convert a value to the kind of its column. Raise an error with its place if this is not possible."""
    if kind == "category":
        text = str(value).strip(" \t")
        return (
            text.lower() if isinstance(value, bool) else text.removesuffix(".0") if isinstance(value, float) else text
        )
    try:
        if kind == "date":
            return moment(value, format)
        number = float(value)
    except (TypeError, ValueError):
        why = (
            no_date(value, format).replace("add --date-format", "pass date_format=")
            if kind == "date"
            else "is not a number. Write numbers with digits and a decimal point only, and missing values as None"
        )
        raise ValueError(f"column {name!r}, row {row} (counted from 0): {value!r} {why}.") from None
    if not abs(number) < LARGEST:
        rule = f"must be below {LARGEST:g}. Replace it by None if it means a missing value"
        raise ValueError(f"column {name!r}, row {row} (counted from 0): {value!r} {rule}.")
    return number
