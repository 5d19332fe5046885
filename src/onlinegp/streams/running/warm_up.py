"""Collect the first rows of a stream, on which the model is tuned, and predict them without a model."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from onlinegp.checks import Array
from onlinegp.lags import windows
from onlinegp.models.combined.standardize import CONSTANT
from onlinegp.predictions import Gaussian
from onlinegp.streams.running.column_encoding import Encoder
from onlinegp.streams.running.predict_then_learn import Predicted


class WarmUp:
    """Predicts each row by the mean and standard deviation of the targets before it, and keeps the rows for tuning.

    A prediction uses earlier rows only, and needs two targets that differ. If the target is constant over the first
    `rows` rows, it has no scale, and tuning must wait: the warm-up continues until the target changes, and for `rows`
    rows after that. The `encoder` learns from the rows that are kept.
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
        self.memory = lags + horizon - 1 if lags else 0  # rows before the first row that has all its lags
        self.seen = self.n = 0
        self.until = rows
        self.average = self.squares = self.largest = 0.0  # Welford's mean and sum of squared deviations; largest |y|
        self._kept: list[tuple[Array, Array, Array]] = []  # features, targets, targets with missing ones filled in

    @property
    def done(self) -> bool:
        """Whether there are enough rows to tune the model."""
        return self.seen >= self.until

    @property
    def varied(self) -> bool:
        """Whether two targets differ by more than rounding."""
        return self.squares > self.n * (CONSTANT * self.largest) ** 2

    def advance(self, X: Array, y: Array) -> Predicted:
        """Add rows, up to the last one that tuning needs, and return their predictions."""
        mean, std, averages = np.full(len(y), np.nan), np.full(len(y), np.nan), []
        for i, value in enumerate(y.tolist()):
            if self.done:
                break
            mean[i], std[i] = self._next()
            averages.append(self.average)
            self._count(value)
        n = len(averages)
        self._keep(X[:n], y[:n], np.array(averages))
        return Predicted(Gaussian(mean[:n], std[:n]), np.zeros(n), np.zeros(n, dtype=bool))

    def next(self) -> Gaussian:
        """Predict the next row."""
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
        """Describe a target that has not varied."""
        return f"the target is {self.average:g}" if self.n else "the target is missing"

    def _keep(self, X: Array, y: Array, averages: Array) -> None:
        """Keep the rows; as a lag of later rows, a missing target is the average before it."""
        self._kept.append((X.copy(), y.copy(), np.where(np.isnan(y), averages, y)))
        enough = self.rows + self.memory
        while not self.varied and sum(len(part[1]) for part in self._kept[1:]) >= enough:  # enough constant rows
            del self._kept[0]

    def rows_for_learning(self) -> tuple[Array, Array]:
        """Return features and targets of the rows that the model learns, with NaN for missing targets.

        These are the last `rows` rows that have a target and all their lags, and the rows before them with these lags.
        """
        X, y, _ = self._joined()
        start = self._known(y)[0] - self.memory
        return X[start:], y[start:]

    def data(self) -> tuple[Array, Array]:
        """Return inputs (with lags) and targets of the rows that the model learns."""
        X, y, filled = self._joined()
        known = self._known(y)
        if not self.lags:
            return X[known], y[known]
        lags = windows(filled, self.lags)[known - self.memory]  # the window of row i begins at i - memory
        return np.hstack([X[known], lags]), y[known]

    def _joined(self) -> tuple[Array, Array, Array]:
        kept = self._kept or [(np.empty((0, 0)), np.empty(0), np.empty(0))]
        X, y, filled = map(np.concatenate, zip(*kept, strict=True))
        if self.encoder is not None:
            self.encoder.learn(X)
            X = self.encoder(X)
        return X, y, filled

    def _known(self, y: Array) -> NDArray[np.intp]:
        """Return the indices of the last `rows` rows that have a target and all their lags."""
        known = np.flatnonzero(~np.isnan(y))
        known = known[known >= self.memory][-self.rows :]
        if not len(known):
            raise ValueError("there is no row with a target to tune on yet. Use a larger --tune.")
        return known
