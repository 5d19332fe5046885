"""Scores of the predictions of a stream, and curves over the stream, in constant memory."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from onlinegp.checks import Array
from onlinegp.models.combined.standardize import CONSTANT
from onlinegp.state import Values, integer, integers, number
from onlinegp.streams.running.observers import Observer, Rows, array_with_gaps

LEVELS = (0.5, 0.68, 0.8, 0.9, 0.95, 0.99)
BINS = 20  # bins of the PIT histogram
BUCKETS = 800  # at 2 BUCKETS points of a curve, pairs of points are merged
TAIL = 400  # number of last rows with full detail
SUMS = ("rows", "scored", "squares", "density", "covered", "persistence")  # sums: added when two buckets are merged
LOW, HIGH = ("y_low", "mean_low", "lower"), ("y_high", "mean_high", "upper", "size")
COLUMNS = (*SUMS, *LOW, *HIGH)  # columns of a bucket
TAILED = ("y", "mean", "lower", "upper", "size")  # columns of the last rows


class Score(Observer):
    """Scores over the rows so far. `level` is the level of the intervals for the coverage."""

    fields = {
        "n": integer(),
        "covered": integer(),
        "squares": number(),
        "density": number(least=None),
        "y_mean": number(least=None),
        "y_squares": number(),
        "within": integers(len(LEVELS), least=0),
        "pit": integers(BINS, least=0),
    }

    def __init__(self, level: float) -> None:
        self.level = level
        self.n = self.covered = 0
        self.squares = self.density = 0.0
        self.y_mean = self.y_squares = 0.0  # mean and sum of squared deviations of y, updated by Chan's method
        self.within = np.zeros(len(LEVELS), dtype=np.int64)
        self.pit = np.zeros(BINS, dtype=np.int64)

    def add(self, rows: Rows) -> None:
        if not rows.scored.any():
            return
        pick = slice(None) if rows.scored.all() else rows.scored  # a slice makes no copy
        y, e, pit = rows.y[pick], (rows.y - rows.mean)[pick], rows.pit[pick]
        n = len(y)
        delta, total = float(y.mean()) - self.y_mean, self.n + n
        self.y_squares += float(((y - y.mean()) ** 2).sum()) + delta**2 * self.n * n / total
        self.y_mean += delta * n / total
        self.n = total
        self.squares += float(e @ e)
        self.density += float(rows.density[pick].sum())
        self.covered += int(((rows.lower <= rows.y) & (rows.y <= rows.upper))[pick].sum())
        central = np.abs(2.0 * pit - 1.0)  # the level of the central interval with an end at y
        self.within += [int(np.count_nonzero(central <= a)) for a in LEVELS]
        self.pit += np.bincount(np.minimum((BINS * pit).astype(np.int64), BINS - 1), minlength=BINS)

    def summary(self) -> dict[str, Any]:
        """Return the scores by name. They are None if no row was scored."""
        if self.n == 0:
            return {"scored": 0, "nmse": None, "nmse_db": None, "rmse": None, "log_density": None, "coverage": None}
        mse, variance = self.squares / self.n, self.y_squares / self.n
        nmse = mse / variance if variance > (CONSTANT * self.y_mean) ** 2 else None
        return {
            "scored": self.n,
            "nmse": nmse,
            "nmse_db": 10.0 * np.log10(nmse) if nmse else None,
            "rmse": mse**0.5,
            "log_density": self.density / self.n,
            "coverage": self.covered / self.n,
            "level": self.level,
        }


class Curves(Observer):
    """Curves of at most 2 BUCKETS - 1 points, and the last TAIL rows in detail. All points cover equally many rows.

    The baseline is persistence: predict the last target that was known `horizon` rows before.
    """

    fields = {
        "width": integer(least=1),
        "rows": integer(),
        "last": array_with_gaps("horizon"),
        "buckets": array_with_gaps(len(COLUMNS), "points"),
        "tail": array_with_gaps(len(TAILED), "kept"),
    }
    lengths = {"points": 2 * BUCKETS, "kept": TAIL}

    def __init__(self, horizon: int = 1) -> None:
        self.horizon = horizon
        self.width = 1
        self.buckets = np.empty((len(COLUMNS), 0))
        self.tail = np.empty((len(TAILED), 0))
        self.rows = 0
        self.last = np.full(horizon, np.nan)  # the last targets; NaN before the first target

    def check(self, values: Values) -> None:
        rows, width = values["rows"], values["width"]
        for name, points in (("buckets", -(-rows // width)), ("tail", min(rows, TAIL))):
            if values[name].shape[1] != points:
                raise ValueError(f"{name} must have {points} points after {rows} rows, got {values[name].shape[1]}.")

    def __getitem__(self, name: str) -> Array:
        """Return a column of all buckets."""
        return self.buckets[COLUMNS.index(name)]

    def add(self, rows: Rows) -> None:
        start, n, rows = 0, len(rows), drawn(rows)
        persistence = self._persistence(rows)
        while start < n:
            room = self.width - self.rows % self.width
            full = (n - start - room) // self.width if room == self.width else 0
            stop = min(n, start + room + max(0, full) * self.width)
            self._add(rows, persistence, slice(start, stop))
            start = stop
        last = np.array([getattr(rows, name)[-TAIL:] for name in TAILED], dtype=np.float64)
        self.tail = np.hstack([self.tail, last])[:, -TAIL:]

    def _persistence(self, rows: Rows) -> Array:
        """Return the squared errors of persistence. Zero if a row is not scored or no earlier target is known."""
        known = np.concatenate([self.last, rows.y])
        latest = np.maximum.accumulate(np.where(np.isnan(known), 0, np.arange(len(known))))
        known = known[latest]
        self.last = known[len(rows) :]
        e = np.where(rows.scored, rows.y - known[: len(rows)], 0.0)
        return np.where(np.isnan(e), 0.0, e) ** 2

    def _add(self, rows: Rows, persistence: Array, part: slice) -> None:
        """Add rows that fill whole buckets, or that belong to one bucket."""
        n = part.stop - part.start
        shape = (-1, self.width) if n % self.width == 0 else (1, n)
        scored = rows.scored[part]
        e2 = np.where(scored, (rows.y[part] - rows.mean[part]) ** 2, 0.0)
        inside = (rows.lower[part] <= rows.y[part]) & (rows.y[part] <= rows.upper[part]) & scored
        sums = (np.ones(n), scored, e2, np.where(scored, rows.density[part], 0.0), inside, persistence[part])
        low, high = (rows.y, rows.mean, rows.lower), (rows.y, rows.mean, rows.upper, rows.size)
        new = np.array(
            [
                *(np.reshape(values, shape).sum(axis=1) for values in sums),
                *(np.fmin.reduce(np.reshape(values[part], shape), axis=1) for values in low),
                *(np.fmax.reduce(np.reshape(values[part], shape), axis=1) for values in high),
            ]
        )
        if self.rows % self.width:
            self.buckets[:, -1:] = _merged(self.buckets[:, -1:], new)
        else:
            self.buckets = np.hstack([self.buckets, new])
        self.rows += n
        while self.buckets.shape[1] >= 2 * BUCKETS:
            self._halve()

    def sums(self, rows: int) -> dict[str, float]:
        """Return the sums over all complete buckets in the first `rows` rows."""
        whole = rows // self.width
        return {name: float(np.sum(self[name][:whole])) for name in SUMS}

    def _halve(self) -> None:
        pairs = self.buckets.shape[1] // 2
        merged = _merged(self.buckets[:, : 2 * pairs : 2], self.buckets[:, 1 : 2 * pairs : 2])
        self.buckets = np.hstack([merged, self.buckets[:, 2 * pairs :]])
        self.width *= 2


def drawn(rows: Rows) -> Rows:
    """Return rows without the predictions that were made before anything was learned, of 0 +- 1 for example."""
    blind = ~rows.scored & ~np.isnan(rows.y)
    if not blind.any():
        return rows
    mean, lower, upper = (np.where(blind, np.nan, values) for values in (rows.mean, rows.lower, rows.upper))
    return replace(rows, mean=mean, lower=lower, upper=upper)


def _merged(a: Array, b: Array) -> Array:
    """Merge two arrays of buckets (columns, n)."""
    low, high = len(SUMS), len(SUMS) + len(LOW)
    return np.vstack([a[:low] + b[:low], np.fmin(a[low:high], b[low:high]), np.fmax(a[high:], b[high:])])
