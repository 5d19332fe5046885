"""Encode text, dates and missing values, so that a model can learn from raw tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY
from typing import Any, Self, cast

import numpy as np
from numpy.typing import ArrayLike

from onlinegp import frames
from onlinegp.checks import Array, check_x, count
from onlinegp.columns import Encoding
from onlinegp.kernels.importance import KernelInUse
from onlinegp.learner import Learner
from onlinegp.models.base import OnlineRegressor
from onlinegp.models.combined.base import OuterRegressor
from onlinegp.models.recipe import parameters


@parameters
class Columns(OuterRegressor):
    """Wrap a model so that it takes raw tables: text, dates and missing values become numbers.

    A text column becomes one column per category (``onehot``) or the rank of the category in sorted order
    (``ordinal``). A date becomes hour, weekday and month, each as sine and cosine, and the days since the first date.
    A missing value becomes the mean over the first rows. If a column had missing values in these rows, an additional
    column marks them. Categories that are not in the first rows, or not among the most frequent ones, are "other": 0 in
    all columns with ``onehot``, and one more than the largest rank with ``ordinal``.

    The encoding is learned from the first `rows` rows of the first call; only their inputs are used. It is saved with
    the model. `onlinegp.load` returns such a model for a file that ``onlinegp run --categories onehot --save`` wrote.
    Columns that were missing in the first rows are ignored. Rows without names, such as arrays, are not encoded. All
    columns are inputs, so leave out ids.

    Cost: as for the inner model
    Memory: as for the inner model
    Equation: x = (1 if category = c for each c, sin and cos of hour, weekday and month, ...)
    Variance of y: as for the inner model

    Parameters
    ----------
    model : OnlineRegressor
        The inner model. A copy with the same parameters learns; this object does not change.
    rows : int
        The number of rows to learn the encoding from.
    categories : {"onehot", "ordinal", "ignore"}
        How to encode text.
    limit : int
        The largest number of categories per column. The most frequent categories are kept.
    dates : {"calendar", "ignore"}
        How to encode dates and times.
    date_format : str, optional
        The format of dates that are text, such as ``"%d.%m.%Y"``; ISO 8601 if None.
    missing : {"stop", "impute"}
        Raise an error for a missing value, or replace it.
    na_values : sequence of str
        Texts and numbers that mean a missing value, such as ``("-999", "n/a")``.

    Examples
    --------
    >>> import onlinegp as ogp
    >>> rows = [{"x": 1.0, "city": "Rome"}, {"x": 2.0, "city": "Bern"}, {"x": 3.0, "city": "Rome"}]
    >>> model = ogp.Columns(ogp.KRLST()).fit(rows, [1.0, 2.0, 3.0])
    >>> model.names_
    ['x', 'city=Bern', 'city=Rome']
    >>> bool(model.predict_one({"city": "Rome", "x": 1.0}) > 0.5)
    True
    """

    model: OnlineRegressor
    _: KW_ONLY
    rows: int = 100
    categories: str = "onehot"
    limit: int = 10
    dates: str = "calendar"
    date_format: str | None = None
    missing: str = "stop"
    na_values: Sequence[str] = ()

    _encoding = cast("Encoding | None", None)  # without an annotation, because this is not a parameter

    def check(self) -> None:
        count(rows=self.rows)
        self._rules()
        super().check()

    def start(self, features: int, outputs: int) -> Learner:
        return self._inside().start(features, outputs)

    def kernels_in_use(self, learner: Learner) -> list[KernelInUse]:
        return self._inside().kernels_in_use(learner)

    @property
    def names_(self) -> list[str]:
        """The names of the inputs of the inner model."""
        if self._encoding is None:
            raise AttributeError("names_ exists only after rows with names were learned. Call fit with a data frame.")
        return list(self._encoding.names_)

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Forget everything, then learn the encoding and the rows of X and y, in order."""
        with self._lock:
            before, self._encoding = self._encoding, None
            try:
                return super().fit(X, y)
            except BaseException:
                if self._encoding is None:  # an invalid first sample must not leave an encoding
                    self._encoding = before
                raise

    def learn_one(self, x: Any, y: ArrayLike) -> Self:
        """Learn one sample: x with names, such as a dict, or the numbers of the inner model; y as for any model."""
        row = frames.named(x)
        if row is None:
            return super().learn_one(x, y)
        target = check_x(y, name="y")
        rows: Any = [row]
        return self.partial_fit(rows, target if np.ndim(y) == 0 else target[None, :])

    def predict_one(self, x: Any, return_std: bool = False) -> Any:
        row = frames.named(x)
        return super().predict_one(x if row is None else self.checked_X([row])[0], return_std)

    def encode(self, X: Any) -> Array:
        """Return the inputs of the inner model, (n, len(names_))."""
        return self.checked_X(X)

    def encoding(self) -> Encoding | None:
        """Return the learned encoding, or None before the first rows and for rows without names."""
        return self._encoding

    def adopt_encoding(self, contents: Any) -> Self:
        """Continue with an encoding from a file; raise a ValueError if it is not valid."""
        encoding = self._rules().load(contents)
        width = getattr(self, "n_features_in_", len(encoding.names_))
        if width != len(encoding.names_):
            raise ValueError(f"the columns make {len(encoding.names_)} inputs, but the model has {width}.")
        self._encoding = encoding
        return self

    def _rules(self) -> Encoding:
        return Encoding(
            categories=self.categories,
            limit=self.limit,
            dates=self.dates,
            date_format=self.date_format,
            missing=self.missing,
            na_values=self.na_values,
        )

    def _learned_from(self, X: Any) -> Encoding:
        """Learn an encoding from the first of these rows."""
        first = X[: self.rows] if frames.is_records(X) else X.head(self.rows) if hasattr(X, "head") else X
        first = first.slice(0, self.rows) if first is X and hasattr(X, "slice") else first
        rules = self._rules()
        if len(X) < 2 and set(rules.kinds_of(first).values()) != {"number"}:
            raise ValueError(
                "text and dates cannot be encoded from a single row, which does not show the other categories. Call "
                "partial_fit with some first rows, then learn_one."
            )
        return rules.fit(first)

    def checked_X(self, X: Any) -> Array:
        if not (frames.is_frame(X) or frames.is_records(X)):
            return super().checked_X(X)
        if self._encoding is None and not hasattr(self, "n_features_in_"):
            return self._learned_from(X).encode(X)  # nothing is learned yet: encode for a prediction from the prior
        return super().checked_X(self._encoded(X))

    def checked_Xy(self, X: Any, y: Any, *, first: bool = False) -> tuple[Array, Array, Any]:
        if not (frames.is_frame(X) or frames.is_records(X)):
            return super().checked_Xy(X, y, first=first)
        if self._encoding is not None or (hasattr(self, "n_features_in_") and not first):
            return super().checked_Xy(self._encoded(X), y, first=first)
        encoding = self._learned_from(X)
        checked = super().checked_Xy(encoding.encode(X), y, first=first)
        self._encoding = encoding  # only after the rows were accepted
        return checked

    def _encoded(self, X: Any) -> Array:
        if self._encoding is None:
            raise ValueError("X has names, but the first rows had none, so there is no encoding. Pass numbers, or fit.")
        return self._encoding.encode(X)
