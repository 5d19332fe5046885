"""How the predictions fare along a stream, in memory that does not grow with it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onlinegp.checks import Array
from onlinegp.models.combined.standardize import CONSTANT
from onlinegp.predictions import Predictions
from onlinegp.streams.running.predict_then_learn import Said

LEVELS = (0.5, 0.68, 0.8, 0.9, 0.95, 0.99)
BINS = 20  # of the PIT histogram
BUCKETS = 800  # points of a curve; twice as wide whenever there are twice as many
TAIL = 400  # last rows kept in full
SUMS = ("rows", "scored", "squares", "density", "covered", "persistence")  # added when two buckets become one
TAILED = ("y", "mean", "lower", "upper", "size")  # of which the last rows are kept
LOW, HIGH = ("y_low", "mean_low", "lower"), ("y_high", "mean_high", "upper", "size")


@dataclass(frozen=True)
class Rows:
    """Some rows of a stream with what was predicted of them; `scored` marks those that count."""

    y: Array
    mean: Array
    std: Array
    lower: Array
    upper: Array
    density: Array
    pit: Array  # the probability of which y is the predicted quantile
    size: NDArray[Any]
    scored: NDArray[np.bool_]
    predictions: Predictions

    @classmethod
    def of(cls, y: Array, said: Said, *, level: float, counts: bool) -> Rows:
        """Ask the predictions for what is written and scored; NaN where either target or prediction is missing."""
        p = said.predictions
        scored = ~(np.isnan(y) | np.isnan(p.mean)) & said.known & counts
        return cls(y, p.mean, p.std, *p.interval(level), p.log_density(y), p.pit(y), said.size, scored, p)

    @classmethod
    def joined(cls, parts: Sequence[Rows]) -> Rows:
        """Return rows that follow each other as one."""
        if len(parts) == 1:
            return parts[0]
        names = [field.name for field in fields(cls) if field.name != "predictions"]
        columns = {name: np.concatenate([getattr(part, name) for part in parts]) for name in names}
        return cls(**columns, predictions=Predictions.joined([part.predictions for part in parts]))

    @cached_property
    def z(self) -> Array:
        """How far out y is, in standard deviations."""
        return self.predictions.z(self.y)

    @cached_property
    def tail(self) -> Array:
        """The two-sided tail probability of y."""
        return self.predictions.tail(self.y)


class Score:
    """Sums over the scored rows."""

    def __init__(self, level: float) -> None:
        self.level = level
        self.n = self.covered = 0
        self.squares = self.density = 0.0
        self.y_mean = self.y_squares = 0.0  # Chan's mean and sum of squared deviations of y
        self.within = [0] * len(LEVELS)
        self.pit = [0] * BINS

    def add(self, rows: Rows) -> None:
        if not rows.scored.any():
            return
        pick = slice(None) if rows.scored.all() else rows.scored  # the whole, without a copy
        y, e, pit = rows.y[pick], (rows.y - rows.mean)[pick], rows.pit[pick]
        n = len(y)
        delta, total = float(y.mean()) - self.y_mean, self.n + n
        self.y_squares += float(((y - y.mean()) ** 2).sum()) + delta**2 * self.n * n / total
        self.y_mean += delta * n / total
        self.n = total
        self.squares += float(e @ e)
        self.density += float(rows.density[pick].sum())
        self.covered += int(((rows.lower <= rows.y) & (rows.y <= rows.upper))[pick].sum())
        central = np.abs(2.0 * pit - 1.0)  # the level of the central interval that ends at y
        self.within = [have + int(np.count_nonzero(central <= a)) for have, a in zip(self.within, LEVELS, strict=True)]
        bins = np.minimum((BINS * pit).astype(np.int64), BINS - 1)
        self.pit = (np.asarray(self.pit) + np.bincount(bins, minlength=BINS)).tolist()

    def summary(self) -> dict[str, Any]:
        """Return the figures by name; None where no row was scored."""
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

    def state(self) -> dict[str, Any]:
        return dict(vars(self))

    @classmethod
    def restored(cls, state: dict[str, Any]) -> Score:
        score = cls(state["level"])
        vars(score).update(state)
        return score


class Curves:
    """The stream as at most 2 BUCKETS points, each for equally many rows, and the last TAIL rows in full.

    Its baseline is persistence: the last target that was known when the row was predicted, `horizon` rows before.
    """

    def __init__(self, horizon: int = 1) -> None:
        self.width = 1
        self.buckets: dict[str, list[float]] = {name: [] for name in (*SUMS, *LOW, *HIGH)}
        self.tail: dict[str, list[float]] = {name: [] for name in TAILED}
        self.rows = 0
        self.tuning = 0  # rows at the beginning that the model was tuned on
        self.last = [np.nan] * horizon  # targets, NaN before the first

    def add(self, rows: Rows, *, tuning: bool = False) -> None:
        """Take rows; `tuning` says that the model was tuned on them."""
        start, n = 0, len(rows.y)
        self.tuning += n if tuning else 0
        persistence = self._persistence(rows)
        while start < n:
            room = self.width - self.rows % self.width
            full = (n - start - room) // self.width if room == self.width else 0
            stop = min(n, start + room + max(0, full) * self.width)
            self._add(rows, persistence, slice(start, stop))
            start = stop
        for name, values in self.tail.items():
            values.extend(getattr(rows, name)[-TAIL:].tolist())
            del values[:-TAIL]

    def _persistence(self, rows: Rows) -> Array:
        """Return the squared errors of persistence; zero where nothing is scored, or no target was known."""
        known = np.concatenate([self.last, rows.y])
        latest = np.maximum.accumulate(np.where(np.isnan(known), 0, np.arange(len(known))))
        known = known[latest]
        self.last = known[len(rows.y) :].tolist()
        e = np.where(rows.scored, rows.y - known[: len(rows.y)], 0.0)
        return np.where(np.isnan(e), 0.0, e) ** 2

    def _add(self, rows: Rows, persistence: Array, part: slice) -> None:
        """Add rows that fill whole buckets, or that lie within one."""
        n = part.stop - part.start
        shape = (-1, self.width) if n % self.width == 0 else (1, n)
        scored = rows.scored[part]
        e2 = np.where(scored, (rows.y[part] - rows.mean[part]) ** 2, 0.0)
        inside = (rows.lower[part] <= rows.y[part]) & (rows.y[part] <= rows.upper[part]) & scored
        sums = (np.ones(n), scored, e2, np.where(scored, rows.density[part], 0.0), inside, persistence[part])
        new = {name: np.reshape(v, shape).sum(axis=1) for name, v in zip(SUMS, sums, strict=True)}
        for name, values in zip(LOW, (rows.y, rows.mean, rows.lower), strict=True):
            new[name] = np.fmin.reduce(np.reshape(values[part], shape), axis=1)
        for name, values in zip(HIGH, (rows.y, rows.mean, rows.upper, rows.size), strict=True):
            new[name] = np.fmax.reduce(np.reshape(values[part], shape), axis=1)
        begun = self.rows % self.width != 0
        self.rows += n
        for name, values in new.items():
            have = self.buckets[name]
            if begun:
                have[-1] = _merged(name, have[-1], float(values[0]))
            else:
                have.extend(values.tolist())
        while len(self.buckets["rows"]) >= 2 * BUCKETS:
            self._halve()

    def sums(self, rows: int) -> dict[str, float]:
        """Return the sums over the first rows, as many as whole buckets hold."""
        whole = rows // self.width
        return {name: float(np.sum(self.buckets[name][:whole])) for name in SUMS}

    def _halve(self) -> None:
        for name, values in self.buckets.items():
            pairs = zip(values[::2], [*values[1::2], None] if len(values) % 2 else values[1::2], strict=True)
            self.buckets[name] = [a if b is None else _merged(name, a, b) for a, b in pairs]
        self.width *= 2

    def state(self) -> dict[str, Any]:
        own = {"width": self.width, "rows": self.rows, "tuning": self.tuning, **_plain({"last": self.last})}
        return own | {"buckets": _plain(self.buckets), "tail": _plain(self.tail)}

    @classmethod
    def restored(cls, state: dict[str, Any]) -> Curves:
        curves = cls()
        curves.width, curves.rows, curves.tuning = state["width"], state["rows"], state["tuning"]
        curves.last = _numbers(state["last"])
        for name in ("buckets", "tail"):
            setattr(curves, name, {column: _numbers(values) for column, values in state[name].items()})
        return curves


def _merged(name: str, a: float, b: float) -> float:
    if name in SUMS:
        return a + b
    return float(np.fmin(a, b) if name in LOW else np.fmax(a, b))


def _plain(columns: dict[str, list[float]]) -> dict[str, list[float | None]]:
    return {name: [None if v != v else v for v in values] for name, values in columns.items()}


def _numbers(values: list[float | None]) -> list[float]:
    return [np.nan if value is None else value for value in values]
