"""The learner of `Forecaster`: keeps the last rows of a series, and schedules the fits of its members."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from onlinegp.background import Job, submit
from onlinegp.checks import LARGEST, Array
from onlinegp.learner import RowLearner, Sizes
from onlinegp.models.temporal.forecast import Forecast
from onlinegp.models.temporal.members import Fit, find_fit
from onlinegp.models.temporal.one_step import OneStep, mixtures, so_far
from onlinegp.models.temporal.rolling import Rolling, Rows, random_walk
from onlinegp.predictions import Predictions
from onlinegp.state import Values, array, flags, integer

FIRST_FIT = 12  # number of rows of the first fit
MAX_WINDOW = 3000  # largest number of rows in a fit and between two fits
BEHIND = 96  # fits to at least this number of rows run in the background
DELAY, MOST_DELAY = 1 / 16, 200  # rows until a background fit is used: a share of its rows, and the maximum


def next_fit(fitted: int) -> tuple[int, int]:
    """Return the number of rows of the fit after the fit to `fitted` rows, and the row from which it is used."""
    rows = FIRST_FIT if not fitted else min(2 * fitted, fitted + MAX_WINDOW)
    return rows, rows if rows < BEHIND else rows + min(int(DELAY * rows), MOST_DELAY)


class SeriesLearner(RowLearner):
    """The last rows of a series, and the row of the last fit. Everything else is computed from them on demand.

    A fit is used from a fixed number of rows after its last row. It runs in the background if a call ends in between.
    """

    fields = {
        "seen": integer(),
        "position": integer(),
        "start": integer(),
        "fitted": integer(),
        "values": array("kept", least=-LARGEST, most=LARGEST),
        "known": flags("kept"),
        "inputs": array("kept", "features", least=-LARGEST, most=LARGEST),
    }
    lengths = {"kept": 2 * MAX_WINDOW + MOST_DELAY}

    def __init__(self, features: int, seasons: tuple[float, ...] | None) -> None:
        self.features, self.outputs, self.seasons = features, 1, seasons
        self.position = self.start = self.fitted = 0  # number of rows so far, dropped, in the last fit
        self.values, self.known, self.inputs = np.empty(0), np.empty(0, dtype=bool), np.empty((0, features))
        self.rebuild()

    def rebuild(self) -> None:
        self._one_step: OneStep | None = None
        self._rolling: Rolling | None = None
        self._fits: dict[bool, Fit | None] = {}  # the last fit; the key is `quick`
        self._jobs: dict[bool, tuple[int, Job]] = {}  # the next fit and its row

    def first_rows(self, rows: int) -> SeriesLearner:
        """Return a learner with only the first rows of the window."""
        first = SeriesLearner(self.features, self.seasons)
        first.values, first.known, first.inputs = self.values[:rows], self.known[:rows], self.inputs[:rows]
        first.position = rows
        return first

    @property
    def rows(self) -> Rows:
        return Rows(np.where(self.known, self.values, np.nan), self.inputs)

    # Rows

    def learn(self, X: Array, Y: Array) -> None:
        self._append(X, Y[:, 0])
        self.seen += len(Y)
        self._fit_behind()

    def skip(self, X: Array, Y: Array | None = None) -> Predictions:
        predictions = self.predict(X)
        self._append(X, np.full(len(X), np.nan) if Y is None else Y[:, 0])
        self._fit_behind()
        return predictions

    def _append(self, X: Array, y: Array) -> None:
        for part in self._parts(len(y)):
            known = np.isfinite(y[part])
            self.values = np.append(self.values, np.where(known, y[part], 0.0))
            self.known = np.append(self.known, known)
            self.inputs = np.concatenate([self.inputs, X[part]])
            self.position += part.stop - part.start
            rows, adopted = next_fit(self.fitted)
            if self.position == adopted:
                self.fitted = rows
                old = max(0, rows - self.start - MAX_WINDOW)
                self.start += old
                self.values, self.known, self.inputs = self.values[old:], self.known[old:], self.inputs[old:]

    def _parts(self, n: int) -> list[slice]:
        """Divide the next n rows at the rows from which a new fit is used."""
        edges, fitted = [0], self.fitted
        while (adopted := next_fit(fitted)[1] - self.position) < n:
            fitted = next_fit(fitted)[0]
            edges.append(adopted)
        return [slice(a, b) for a, b in pairwise([*edges, n])]

    def check(self, values: Values) -> None:
        rows, position, start, fitted = len(values["values"]), values["position"], values["start"], values["fitted"]
        if position != start + rows or not (start <= fitted <= position or not fitted):
            raise ValueError(f"position must be start plus the {rows} kept rows, with fitted between both.")
        if not position < next_fit(fitted)[1]:
            raise ValueError(f"fitted must be the row of the last fit, got {fitted}.")

    # Fits

    def _fit_behind(self) -> None:
        """Start the next fit in the background if enough rows are known and the result of the last fit is in use."""
        rows, _ = next_fit(self.fitted)
        if self.position < rows:
            return
        for quick, of_use in ((True, self._one_step), (False, self._rolling)):
            if of_use is not None and of_use.row == self.fitted and self._jobs.get(quick, (0, None))[0] != rows:
                self._jobs[quick] = rows, submit(find_fit, *self._fit_arguments(rows, quick), then=lambda fit: fit)

    def _fit(self, row: int, *, quick: bool) -> Fit | None:
        """Return the fit to the rows up to `row`."""
        if quick not in self._fits or getattr(self._fits[quick], "row", 0) != row:
            job = self._jobs.pop(quick, (0, None))
            if job[1] is not None and job[0] == row:
                self._fits[quick] = job[1].result(lambda share: None)
            else:
                self._fits[quick] = find_fit(*self._fit_arguments(row, quick))
        return self._fits[quick]

    def _fit_arguments(self, row: int, quick: bool) -> tuple[Array, Array, tuple[float, ...] | None, int, bool]:
        window = slice(max(0, row - self.start - MAX_WINDOW), row - self.start)
        return self.rows.values[window], self.inputs[window], self.seasons, row, quick

    # One step ahead

    def run(self, X: Array, Y: Array) -> tuple[Predictions, Sizes]:
        parts = []
        for part in self._parts(len(Y)):
            parts.append(self._run(X[part], Y[part, 0]))
            self._append(X[part], Y[part, 0])
            if self._one_step is not None:
                self._one_step.learned += part.stop - part.start
        self.seen += len(Y)
        self._fit_behind()
        return mixtures(*(np.concatenate(one) for one in zip(*parts, strict=True))), np.zeros(len(Y), dtype=np.int64)

    def _run(self, X: Array, y: Array) -> tuple[Array, Array, Array]:
        """Predict and learn rows before the next fit is used. Return weights, means and deviations of the members."""
        current = self._current()
        if current is not None:
            return current.run(self.rows.after(len(self.values), X), y)
        before = self.values[self.known]
        constant = self.fitted > 0  # else there would be a fit
        each = [so_far(np.concatenate([before, y[:i]]), 1, constant=constant) for i in range(len(y))]
        weights, means, stds = (np.concatenate(one) for one in zip(*each, strict=True))
        return weights, means, stds

    def predict(self, X: Array) -> Predictions:
        current = self._current()
        if current is None:
            return mixtures(*so_far(self.values[self.known], len(X), constant=self.fitted > 0))
        return current.predict(np.column_stack([np.full(len(X), float(len(self.values))), X]))

    def _current(self) -> OneStep | None:
        """Return the members of the last fit after they have learned all rows, or None before the first fit."""
        if not self.fitted:
            return None
        current = self._one_step
        if current is None or current.row != self.fitted:
            fit = self._fit(self.fitted, quick=True)
            if fit is None:
                return None
            current = self._one_step = OneStep(fit)
        if current.learned < len(self.values):
            X, y = self.rows.known(current.learned, len(self.values))
            if len(y):
                current.run(X, y)
            current.learned = len(self.values)
        return current

    # Several steps ahead

    def forecast(self, future: Array, *, refit: bool) -> Forecast:
        """Forecast the rows with the inputs `future`. With `refit`, fit the parameters to all rows first."""
        rows, h, row = self.rows, len(future), self.position if refit else self.fitted
        rolling = self._rolling
        if rolling is None or rolling.row != row or rolling.h != h or self.features:
            fit = self._fit(row, quick=False)
            if fit is None:
                return random_walk(self.values[self.known], h)
            rolling = self._rolling = Rolling(fit, (len(rows) if self.features else row - self.start), h)
        with np.errstate(all="ignore"):
            return rolling.forecast(rows, future)
