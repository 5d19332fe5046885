"""Turn the columns of a data frame into numbers, as the commands do with a table."""

from __future__ import annotations

from collections import Counter
from typing import Any, Self

import numpy as np

from onlinegp import frames
from onlinegp.checks import LARGEST
from onlinegp.columns.dates import moment, no_date
from onlinegp.columns.plan import Rules, kind_of, learn


class Columns:
    """Turn categories, dates and missing values of a data frame into numbers, with rules learned by `fit`.

    A text column becomes one column per category (``onehot``) or the rank of the category in sorted order
    (``ordinal``). A date becomes hour, weekday and month, each as sine and cosine, and the days since the first date.
    A missing value becomes the mean over the rows of `fit`. If a column had missing values in these rows, an additional
    column marks them. Categories that `fit` did not see, or that are not among its most frequent, are "other": 0 in all
    columns of ``onehot``, one more than the largest rank in ``ordinal``.

    Fit it on the first rows of a stream, so that it uses nothing from the future.

    Parameters
    ----------
    categories : {"onehot", "ordinal", "ignore"}
        How to encode text.
    limit : int
        The largest number of categories per column. The most frequent ones are kept.
    dates : {"calendar", "ignore"}
        How to encode dates and times.
    date_format : str, optional
        The format of dates that are text, such as ``"%d.%m.%Y"``; ISO 8601 if None.
    missing : {"stop", "impute"}
        Raise an error for a missing value, or replace it.

    Attributes
    ----------
    names_ : list of str
        The columns that `transform` returns.

    Examples
    --------
    >>> import onlinegp as ogp, pandas as pd
    >>> frame = pd.DataFrame({"x": [1.0, None, 3.0], "city": ["Rome", "Bern", "Rome"]})
    >>> columns = ogp.Columns(missing="impute").fit(frame)
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
    ) -> None:
        self.rules = Rules(categories, limit, dates, date_format, missing)

    def __repr__(self) -> str:
        return repr(self.rules).replace("Rules", "Columns", 1)

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn categories, the first date and means from the rows of a frame."""
        frame = _frame(X)
        kinds = {name: _kind(frame[name], self.rules.date_format) for name in frame.columns}
        self._kinds = {name: kind for name, kind in kinds.items() if self.rules.uses(kind)}
        self.plan_ = learn(list(self._kinds), list(self._kinds.values()), self._cells(frame), self.rules)
        self.names_ = self.plan_.names
        twice = [name for name, times in Counter(self.names_).items() if times > 1]
        if twice:
            raise ValueError(f"two columns would have the name {twice[0]!r}. Rename a column of X.")
        return self

    def transform(self, X: Any) -> Any:
        """Return the columns of a frame as numbers, in a frame of the same kind, without ignored columns."""
        if not hasattr(self, "plan_"):
            raise ValueError("Columns is not fitted yet. Call fit with the first rows.")
        frame = _frame(X)
        unknown = [name for name in self._kinds if name not in frame.columns]
        if unknown:
            raise ValueError(f"X lacks the column {unknown[0]!r} that fit saw. Pass all of {', '.join(self._kinds)}.")
        Z = self.plan_(self._cells(frame))
        origin = frames.origin(X)
        assert origin is not None
        return frames.build({name: Z[:, j] for j, name in enumerate(self.names_)}, origin)

    def fit_transform(self, X: Any, y: Any = None) -> Any:
        """Learn from a frame and return it as numbers. Use this only for the first rows of a stream."""
        return self.fit(X).transform(X)

    def _cells(self, frame: Any) -> Any:
        """Return the used columns as objects, (n, columns), with None or NaN for missing values."""
        cells = np.empty((len(frame), len(self._kinds)), dtype=object)
        for j, (name, kind) in enumerate(self._kinds.items()):
            values = frame[name].to_list()
            for i, value in enumerate(values):
                cells[i, j] = None if _missing(value) else _cell(value, kind, name, i, self.rules.date_format)
        return cells


def _frame(X: Any) -> Any:
    if not frames.is_frame(X):
        raise TypeError(f"X must be a data frame with named columns, got a {type(X).__name__}.")
    return frames.narwhal(X)


def _kind(series: Any, format: str | None) -> str:
    """Return "number", "date" or "category" for the values of a column, or "" if it is none of them."""
    if series.dtype.is_numeric() or str(series.dtype) == "Boolean":
        return "number"
    values = [value for value in series.to_list() if not _missing(value)]
    if all(isinstance(value, (int, float)) for value in values):
        return "number"
    return kind_of(values, format)


def _missing(value: Any) -> bool:
    return value is None or value != value or type(value).__name__ == "NAType"


def _cell(value: Any, kind: str, name: str, row: int, format: str | None) -> Any:
    """Convert a value that is not missing to its kind. If it does not fit, raise an error that says where it is."""
    if kind == "category":
        return value if isinstance(value, str) else str(value).lower() if isinstance(value, bool) else str(value)
    try:
        if kind == "date":
            return moment(value, format)
        number = float(value)
    except (TypeError, ValueError):
        why = (
            no_date(value, format).replace("add --date-format", "pass date_format=")
            if kind == "date"
            else "is not a number"
        )
        raise ValueError(f"column {name!r}, row {row} (counted from 0): {value!r} {why}.") from None
    if not abs(number) < LARGEST:
        raise ValueError(f"column {name!r}, row {row} (counted from 0): {value!r} must be below {LARGEST:g}.")
    return number
