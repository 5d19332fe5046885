"""Before there is a model: the first rows of a stream, which it is tuned on."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from onlinegp.checks import Array
from onlinegp.lags import windows
from onlinegp.models.combined.standardize import CONSTANT
from onlinegp.predictions import Gaussian
from onlinegp.streams.running.column_encoding import Encoder
from onlinegp.streams.running.predict_then_learn import Said


class WarmUp:
    """Before there is a model: each row is predicted by mean and spread of the targets before it, and kept.

    Honest, if modest: nothing that comes later is used. A prediction needs two targets that differ. A target that is
    constant over the first `rows` rows has no scale to tune with: then it goes on until the target has changed, and for
    as many rows after that. The `encoder` learns from the rows that are kept.
    """

    def __init__(
        self,
        rows: int,
        *,
        lags: int = 0,
        horizon: int = 1,
        encoder: Encoder | None = None,
        say: Callable[[str], None] = lambda text: None,
    ) -> None:
        self.rows, self.lags, self.encoder, self.say = rows, lags, encoder, say
        self.memory = lags + horizon - 1 if lags else 0  # rows before the first that has all its lags
        self.seen = self.n = 0
        self.until = rows
        self.average = self.squares = self.largest = 0.0  # Welford's mean and sum of squared deviations; largest |y|
        self._kept: list[tuple[Array, Array, Array]] = []  # features, targets, targets with the missing ones filled in

    @property
    def done(self) -> bool:
        """Whether the model can be tuned."""
        return self.seen >= self.until

    @property
    def varied(self) -> bool:
        """Whether the target has taken two values that differ by more than rounding."""
        return self.squares > self.n * (CONSTANT * self.largest) ** 2

    def advance(self, X: Array, y: Array) -> Said:
        """Take rows up to the last one that tuning needs, and return what was said of those."""
        mean, std, averages = np.full(len(y), np.nan), np.full(len(y), np.nan), []
        for i, value in enumerate(y.tolist()):
            if self.done:
                break
            mean[i], std[i] = self._next()
            averages.append(self.average)
            self._count(value)
        n = len(averages)
        self._keep(X[:n], y[:n], np.array(averages))
        return Said(Gaussian(mean[:n], std[:n]), np.zeros(n), np.zeros(n, dtype=bool))

    def next(self) -> Gaussian:
        """Return what is predicted of the row that comes next."""
        mean, std = self._next()
        return Gaussian(np.array([mean]), np.array([std]))

    def _next(self) -> tuple[float, float]:
        if not self.varied:
            return np.nan, np.nan
        return self.average, float(np.sqrt(self.squares / (self.n - 1) * (1.0 + 1.0 / self.n)))

    def _count(self, value: float) -> None:
        self.seen += 1
        if value == value:
            self.n += 1
            delta = value - self.average
            self.average += delta / self.n
            self.squares += delta * (value - self.average)
            self.largest = max(self.largest, abs(value))
        if self.seen >= self.rows and not self.varied:
            if self.seen == self.rows:
                self.say(f"{self.constant()} in the first {self.rows} rows: tuning waits until it changes")
            self.until = self.seen + self.rows

    def constant(self) -> str:
        """Return what to say of a target that has not varied."""
        return f"the target is {self.average:g}" if self.n else "the target is missing"

    def _keep(self, X: Array, y: Array, averages: Array) -> None:
        """Keep the rows; in the lags of later ones a missing target is the average before it."""
        self._kept.append((X.copy(), y.copy(), np.where(np.isnan(y), averages, y)))
        enough = self.rows + self.memory
        while (
            not self.varied and sum(len(part[1]) for part in self._kept[1:]) >= enough
        ):  # no need for more of the same
            del self._kept[0]

    def rows_for_learning(self) -> tuple[Array, Array]:
        """Return features and targets of the rows so far that a model is to learn, NaN where a target is missing.

        The last `rows` of those that have a target and all their lags, and the rows before them that have these lags.
        """
        X, y, _ = self._joined()
        start = self._known(y)[0] - self.memory
        return X[start:], y[start:]

    def data(self) -> tuple[Array, Array]:
        """Return inputs, lags included, and targets of the rows that a model is to learn."""
        X, y, filled = self._joined()
        known = self._known(y)
        if not self.lags:
            return X[known], y[known]
        lags = windows(filled, self.lags)[known - self.memory]  # the row i has the window that starts at i - memory
        return np.hstack([X[known], lags]), y[known]

    def _joined(self) -> tuple[Array, Array, Array]:
        kept = self._kept or [(np.empty((0, 0)), np.empty(0), np.empty(0))]
        X, y, filled = map(np.concatenate, zip(*kept, strict=True))
        if self.encoder is not None:
            self.encoder.learn(X)
            X = self.encoder(X)
        return X, y, filled

    def _known(self, y: Array) -> NDArray[np.intp]:
        """Return the places of the last `rows` rows that have a target and all their lags."""
        known = np.flatnonzero(~np.isnan(y))
        known = known[known >= self.memory][-self.rows :]
        if not len(known):
            raise ValueError("no row with a target has come yet, so there is nothing to tune on. Use a larger --tune.")
        return known
