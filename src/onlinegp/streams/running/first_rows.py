"""Collect the first rows of a stream, to encode its columns or to tune the model of all keys."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from onlinegp.checks import Array
from onlinegp.models.combined.scaled import MIN_SCALE_ROWS
from onlinegp.models.combined.standardize import CONSTANT, Scale, like_so_far, moments
from onlinegp.predictions import Gaussian, Predictions
from onlinegp.sliding_windows import windows
from onlinegp.streams.running.column_encoding import Encoder
from onlinegp.streams.running.predict_then_learn import Predicted

MAX_SHARE = 0.5  # keys are alike if the median one deviates by a larger share of the deviation of all rows
ROWS_OF_ALL = 1000  # the latest rows of all keys that predict a key with few rows


class FirstRows:
    """Collect `rows` rows, and predict each row by the mean and spread of the targets before it.

    With keys, the targets are those of the same key, if there are enough, else the latest of all keys.

    With `varied`, it waits until the target varies, because a constant target gives nothing to tune on. Until then it
    keeps the latest rows.

    With `of_key`, it waits until `rows` rows are of keys that have at least `of_key` rows each, or until there are
    `most` rows. If thousands of devices report in turn, the first thousand rows have one row of each, which does not
    show what a device does.
    """

    def __init__(self, rows: int, encoder: Encoder, *, varied: bool = False, of_key: int = 0, most: int = 0) -> None:
        self.rows, self.encoder, self.varied, self.seen = rows, encoder, varied, 0
        self.of_key, self.most = of_key, most
        self.varies = False  # whether two targets differ by more than rounding
        self._X: list[Array] = []
        self._y: list[float] = []
        self._of_key: dict[Hashable, list[float]] = {}
        self._frequent = 0  # rows of keys that have at least `of_key` rows
        self._last: float | None = None

    @property
    def done(self) -> bool:
        """Whether there are enough rows."""
        if len(self._y) < self.rows or (self.varied and not self.varies):
            return False
        return self._frequent >= self.rows or not self.of_key or len(self._y) >= self.most

    def add(self, X: Array, y: Array, keys: Sequence[Hashable] | None = None) -> Predicted:
        """Add the rows that are still needed, and return their predictions."""
        parts: list[Predictions] = []
        while len(parts) < len(y) and not self.done:
            i = len(parts)
            own = [] if keys is None else self._of_key.setdefault(keys[i], [])
            parts.append(self.next(own))
            self.keep(X[i : i + 1], y[i : i + 1])
            own += y[i : i + 1].tolist()
            if len(own) >= self.of_key:
                self._frequent += len(own) if len(own) == self.of_key else 1
        predicted = Predictions.joined(parts) if parts else Gaussian(np.empty(0), np.empty(0))
        return Predicted(predicted, np.zeros(len(parts)), ~np.isnan(predicted.mean))

    def keep(self, X: Array, y: Array) -> None:
        """Add the rows that are still needed, without predicting them."""
        for x, value in zip(X, y.tolist(), strict=True):
            if self.done:
                return
            self._X.append(x)
            self._y.append(value)
            self.seen += 1
            if value == value:
                self.varies |= self._last is not None and abs(value - self._last) > CONSTANT * abs(value)
                self._last = value
            if len(self._y) > self.rows and not self.varies:
                del self._X[0], self._y[0]

    def next(self, own: Sequence[float] = ()) -> Predictions:
        """Predict the next row from its `own` targets if there are enough, else from all; NaN before there are any."""
        for values in (own, self._y[-ROWS_OF_ALL:]):
            y = np.array(values)
            known = y[~np.isnan(y), None]
            if len(known) >= MIN_SCALE_ROWS:
                break
        if not len(known):
            return Gaussian(np.array([np.nan]), np.array([np.nan]))
        return like_so_far(Gaussian(np.zeros((1, 1)), np.ones((1, 1))), known).output(0)

    def encoded(self) -> tuple[Array, Array]:
        """Learn the encoding of the columns from the rows. Return inputs and targets, with NaN for missing values."""
        X: Array = np.array(self._X, dtype=self.encoder.columns.dtype).reshape(len(self._X), -1)
        self.encoder.learn(X)
        return self.encoder(X), np.array(self._y)


def of_frequent_keys(keys: Sequence[Hashable], rows: int) -> NDArray[np.intp]:
    """Return the rows of the keys that have most of them, about `rows` rows in their order; all if there are fewer."""
    of_key: dict[Hashable, list[int]] = {}
    for i, key in enumerate(keys):
        of_key.setdefault(key, []).append(i)
    chosen: list[int] = []
    for own in sorted(of_key.values(), key=len, reverse=True):
        if len(chosen) < rows:
            chosen += own
    return np.array(sorted(chosen), dtype=np.intp)


def in_units_of_keys(X: Array, y: Array, keys: Sequence[Hashable]) -> tuple[Array, Array] | None:
    """Return inputs, and targets standardized by key, for the keys with enough rows. Return None if keys are alike.

    Keys are alike if a typical key varies about as much as all rows together. Then one scale fits all keys. One scale
    is also used if most keys have only a few rows, or if all keys are constant.
    """
    known = ~np.isnan(y)
    of_key: dict[Hashable, list[int]] = {}
    for i in np.flatnonzero(known).tolist():
        of_key.setdefault(keys[i], []).append(i)
    groups = [rows for rows in of_key.values() if len(rows) >= MIN_SCALE_ROWS]
    used = np.array(sorted(chain.from_iterable(groups)), dtype=np.int64)
    if 2 * len(used) < known.sum():
        return None
    spreads = [float(moments(y[rows, None])[1][0]) for rows in groups]
    if np.median(spreads) > MAX_SHARE * moments(y[known, None])[1][0]:
        return None
    standard = np.empty(len(y))
    for rows in groups:
        standard[rows] = Scale.of(y[rows, None])(y[rows, None])[:, 0]
    return (X[used], standard[used]) if standard[used].any() else None


def with_lags(
    X: Array, y: Array, lags: int, horizon: int, keys: Sequence[Hashable] | None = None
) -> tuple[Array, Array]:
    """Return inputs with lags, and targets, for the rows that have both.

    The lags of a row are past targets of the same key. The mean of all known targets replaces a missing past target.
    Rows with too few past rows are left out.
    """
    known = ~np.isnan(y)
    if not lags:
        return X[known], y[known]
    memory, filled = lags + horizon - 1, np.where(known, y, y[known].mean())
    of_key: dict[Hashable, list[int]] = {}
    for i, key in enumerate([0] * len(y) if keys is None else keys):
        of_key.setdefault(key, []).append(i)
    past = np.empty((len(y), lags))
    for rows in of_key.values():
        known[rows[:memory]] = False
        if len(rows) > memory:
            past[rows[memory:]] = windows(filled[rows], lags)[: len(rows) - memory]
    if not known.any():
        raise ValueError(
            f"the first {len(y)} rows have no series of more than {memory} rows, too few to tune with --lags {lags}. "
            "Use fewer lags, or a larger --tune."
        )
    return np.hstack([X[known], past[known]]), y[known]
