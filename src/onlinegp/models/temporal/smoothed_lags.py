"""Linear regression on recent values and on averages of values at the same phase of a season."""

from __future__ import annotations

from dataclasses import KW_ONLY
from functools import lru_cache
from typing import Any

import numpy as np

from onlinegp.checks import Array, positive
from onlinegp.engine.compiled import leaf
from onlinegp.engine.plan import Plan
from onlinegp.learner import Learner
from onlinegp.models.base import OnlineRegressor
from onlinegp.models.recipe import parameters
from onlinegp.models.rowwise import StepLearner
from onlinegp.state import array, integer, number
from onlinegp.state.fields import LARGEST_POSITION

# Smoothing rates: two means of a phase, the mean of a phase of the second season, the deviation from the slow mean
FAST, SLOW, SECOND, DEVIATION = 0.4, 0.1, 0.5, 0.2
LEVEL, SLOW_LEVEL, CHANGE = 0.3, 0.1, 0.1  # smoothing rates without a season
TIGHTNESS = (10.0, 100.0, 1000.0)  # candidates for the prior precision, in units of the forecaster's MSE
CLIP = 4.0  # errors are clipped to this number of robust deviations
CHOICES, CHOICE = (8, 16, 32, 64), 128  # choose the prior after these numbers of rows, then after every 128 rows
BELIEVED = 3  # after this number of outliers in a row, learn without clipping
FARTHEST = 15.0  # predictions are clipped here, in standard deviations of y
MOST_STEPS = 10_000  # longest forecast
LONGEST_SEASON = 100_000


@parameters
class SmoothedLags(OnlineRegressor):
    """Linear regression of a series on its recent values and on smoothed values of its seasons.

        y_t = a'x_t + e,   x = [1, y_1, y_2, y_3, y_s, fast, slow, y_1 - slow before, v, y_(s+1), ...]

    y_j is the value j rows ago; fast and slow are running means of y at the phase of the row, and v is the smoothed
    deviation from slow. A second season adds four inputs: y_(s2), the mean of its phase, the last deviation from this
    mean, and the smoothed deviation. Without a season the inputs are 1, y_1, y_2, y_3, two smoothed levels and a
    smoothed change.

    The prior mean a_0 of the coefficients is a simple forecaster, such as the last value or the value a season ago. The
    forecaster and its prior precision A_0 are chosen by the evidence after 8, 16, 32 and 64 rows and then after every
    128 rows. The sums G and b fade, A_0 does not. A value farther than 4 robust deviations from its prediction is
    clipped; the third such value in a row is learned unclipped.

    The model expects y around 0 with a spread of about 1. For other units use ``SmoothedLags(...).scaled()``.

    Cost: O(k^2) per sample with 7, 10 or 14 inputs; O(k^3) to predict after it
    Memory: O(k^2) and the seasons
    Equation: a = a_0 + (G + A_0)^-1 (b - G a_0),  G <- f G + x x',  b <- f b + x y
    Variance of y: of the residuals; several rows ahead, of the iterated forecast with known coefficients

    Parameters
    ----------
    seasons : tuple of float
        The season lengths in rows, at most two, for example from `onlinegp.seasons.find_seasons`.
    forgetting : float
        The factor by which the sums G and b are multiplied with each row.
    time : int, optional
        The column of X that holds the row number. It increases by 1 from row to row. Where it increases by more, rows
        are missing, and their predictions replace them. Predictions at later times are iterated. With None no row is
        missing. The other columns of X are inputs with linear effects.
    engine : str
        "auto", "native" or "python".

    Examples
    --------
    >>> import numpy as np, onlinegp as ogp
    >>> t = np.arange(400)
    >>> y = np.sin(2 * np.pi * t / 24) + 0.1 * np.random.default_rng(0).normal(size=400)
    >>> model = ogp.SmoothedLags((24,)).fit(None, y)
    >>> bool(abs(model.predict(np.empty((1, 0)))[0] - np.sin(2 * np.pi * 400 / 24)) < 0.3)
    True
    """

    seasons: tuple[float, ...] = ()
    _: KW_ONLY
    forgetting: float = 0.997
    time: int | None = None
    engine: str = "auto"

    @property
    def features_optional(self) -> bool:
        return self.time is None

    def check(self) -> None:
        self._checked()

    def start(self, features: int, outputs: int) -> Learner:
        seasons, forgetting = self._checked()
        if self.time is not None and not 0 <= self.time < features:
            raise ValueError(f"time must be a column of X, from 0 to {features - 1}, got {self.time}.")
        return leaf(self.engine, SmoothedLagsLearner(features, outputs, seasons, forgetting, self.time))

    def _checked(self) -> tuple[tuple[int, int], float]:
        seasons = tuple(self.seasons)
        if len(seasons) > 2:
            raise ValueError(f"seasons must be at most two periods, got {self.seasons!r}. Leave the weaker one out.")
        periods = [round(positive("A season is a number of rows.", season=season)) for season in seasons]
        if any(not 2 <= s <= LONGEST_SEASON for s in periods):
            raise ValueError(f"seasons must be from 2 to {LONGEST_SEASON} rows, got {self.seasons!r}.")
        if len(periods) == 2 and not periods[1] > periods[0]:
            raise ValueError(f"the second season must be longer than the first, got {self.seasons!r}.")
        if positive(forgetting=self.forgetting) > 1.0:
            raise ValueError(f"forgetting must be at most 1, got {self.forgetting}. Use 1.0 to forget nothing.")
        if self.time is not None and (isinstance(self.time, bool) or not isinstance(self.time, int)):
            raise TypeError(f"time must be the number of a column, or None, got {self.time!r}.")
        s1, s2 = [*periods, 1, 1][:2]
        return (s1, s2), float(self.forgetting)


class Past:
    """The past of one output, from which the inputs of a row are computed: recent values and the means of the phases.

    All numbers are in the array `values`. The other attributes are views of its parts; `recent` is a ring buffer.
    """

    def __init__(self, values: Array, s1: int, s2: int) -> None:
        self.values, self.s1, self.s2 = values, s1, s2
        ends = np.cumsum(part_sizes(s1, s2))[:-1]
        self.recent, self.fast, self.slow, self.second, self.smooth = np.split(values, ends)

    def copy(self) -> Past:
        return Past(self.values.copy(), self.s1, self.s2)

    def back(self, t: int, j: int) -> float:
        return self.recent[(t - j) % len(self.recent)]

    def inputs(self, t: int) -> list[float]:
        """Return the inputs x of row t."""
        y1, s1, s2 = self.back(t, 1), self.s1, self.s2
        x = [1.0, y1, self.back(t, 2), self.back(t, 3)]
        if s1 == 1:
            return [*x, *self.smooth[2:]]
        before = y1 - self.slow[(t - 1) % s1]
        x += [self.back(t, s1), self.fast[t % s1], self.slow[t % s1], before, self.smooth[0], self.back(t, s1 + 1)]
        if s2 == 1:
            return x
        before = y1 - self.second[(t - 1) % s2]
        return [*x, self.back(t, s2), self.second[t % s2], before, self.smooth[1]]

    def push(self, y: float, t: int) -> None:
        """Add the value y of row t."""
        if self.s1 > 1:
            i, cycle = t % self.s1, t // self.s1 + 1.0
            deviation = y - self.slow[i]
            self.smooth[0] += DEVIATION * (deviation - self.smooth[0])
            self.fast[i] += max(FAST, 1 / cycle) * (y - self.fast[i])
            self.slow[i] += max(SLOW, 1 / cycle) * deviation
        if self.s2 > 1:
            i, cycle = t % self.s2, t // self.s2 + 1.0
            deviation = y - self.second[i]
            self.smooth[1] += DEVIATION * (deviation - self.smooth[1])
            self.second[i] += max(SECOND, 1 / cycle) * deviation
        self.smooth[2] += LEVEL * (y - self.smooth[2])
        self.smooth[3] += SLOW_LEVEL * (y - self.smooth[3])
        self.smooth[4] += CHANGE * (y - self.back(t, 1) - self.smooth[4])
        self.recent[t % len(self.recent)] = y


class SmoothedLagsLearner(StepLearner):
    """For each output: its past, the fading sums of its regression, and the prior mean a_0 of its coefficients."""

    fields = {
        "seen": integer(),
        "position": integer(most=LARGEST_POSITION),
        "time": number(least=None, attribute="last"),
        "past": array("outputs", "room"),
        "G": array("outputs", "k", "k"),
        "b": array("outputs", "k"),
        "yy": array("outputs", least=0.0),
        "rows": number(),
        "deviation": array("outputs", least=0.0),
        "wild": array("outputs", least=0.0),
        "a0": array("outputs", "k"),
        "tightness": array("outputs", positive=True),
    }

    def __init__(
        self,
        features: int,
        outputs: int,
        seasons: tuple[int, int],
        forgetting: float,
        time: int | None = None,
        *,
        earliest: int | None = None,
    ) -> None:
        self.features, self.outputs, (self.s1, self.s2), self.forgetting = features, outputs, seasons, forgetting
        self.time, self.last = time, 0.0
        self.columns = [column for column in range(features) if column != time]
        longest = max(seasons)
        self.k = own_inputs(*seasons) + len(self.columns)
        self.earliest = longest + 4 if earliest is None else earliest  # number of rows before learning starts
        self.position = 0  # number of rows, including missing rows
        self.room = sum(part_sizes(*seasons))
        self.past = np.zeros((outputs, self.room))
        self.G, self.b, self.yy = np.zeros((outputs, self.k, self.k)), np.zeros((outputs, self.k)), np.zeros(outputs)
        self.rows = 0.0  # fading number of rows in the sums
        self.deviation = np.zeros(outputs)  # robust deviation of the errors
        self.wild = np.zeros(outputs)  # number of outliers since the last usual value
        self.a0 = np.tile(simple_forecasters(*seasons, self.k)[0], (outputs, 1))
        self.tightness = np.ones(outputs)

    def past_of(self, o: int) -> Past:
        return Past(self.past[o], self.s1, self.s2)

    def look(self, x: Array) -> tuple[Array, Array, Any]:
        steps = self._steps(x)
        mean, variance = np.empty(self.outputs), np.empty(self.outputs)
        for o in range(self.outputs):
            a, s2 = self.solved(o)
            mean[o], psi2 = self._ahead(self.past_of(o), a, x, steps)
            variance[o] = psi2 * s2
        return mean, np.sqrt(variance), steps

    def solved(self, o: int) -> tuple[Array, float]:
        """Return the coefficients of an output, and the variance of its residuals."""
        G, b0 = self.G[o], self.b[o] - self.G[o] @ self.a0[o]
        A = G + self.tightness[o] * np.diag(prior_shape(self.k)) + (1e-7 * np.trace(G) / self.k + 1e-9) * np.eye(self.k)
        change = np.zeros(self.k) if factor(A) is None else np.linalg.solve(A, b0)
        yy0 = self.yy[o] - 2 * self.a0[o] @ self.b[o] + self.a0[o] @ G @ self.a0[o]
        q = max(yy0 - b0 @ change, 1e-12 * self.rows)
        return self.a0[o] + change, q / max(self.rows - self.k / 2, 1.0) + 1.0 / (1.0 + self.seen**2.0)

    def _ahead(self, past: Past, a: Array, x: Array, steps: int) -> tuple[float, float]:
        """Return the prediction `steps` rows ahead, and its variance in units of the variance one step ahead.

        The variance is the sum of psi_i^2, where psi_i is the effect of a unit error in the first row after i rows.
        """
        own = x[self.columns]
        if steps == 1:
            return self._bounded(a @ [*past.inputs(self.position), *own]), 1.0
        past, shocked = past.copy(), past.copy()
        mean, psi2 = 0.0, 0.0
        for i in range(steps):
            t = self.position + i
            mean = self._bounded(a @ [*past.inputs(t), *own])
            other = a @ [*shocked.inputs(t), *own] + (i == 0)
            other = min(max(other, mean - 3.0), mean + 3.0)
            psi2 += (other - mean) ** 2
            past.push(mean, t)
            shocked.push(other, t)
        return mean, psi2

    @staticmethod
    def _bounded(mean: float) -> float:
        return min(max(mean, -FARTHEST), FARTHEST)

    def correct(self, x: Array, y: Array, e: Array, steps: Any) -> None:
        for o in range(self.outputs):
            past = self.past_of(o)
            a, _ = self.solved(o)
            for i in range(steps - 1):  # predictions replace missing rows
                past.push(self._bounded(a @ [*past.inputs(self.position + i), *x[self.columns]]), self.position + i)
        self.position += steps - 1
        learns = self.position >= self.earliest
        for o in range(self.outputs):
            past = self.past_of(o)
            value = float(y[o])
            if learns:
                inputs = np.array([*past.inputs(self.position), *x[self.columns]])
                value = self._believed(o, value, float(e[o]))
                f = self.forgetting
                self.G[o] = f * self.G[o] + np.outer(inputs, inputs)
                self.b[o] = f * self.b[o] + inputs * value
                self.yy[o] = f * self.yy[o] + value * value
            past.push(value, self.position)
        self.rows = self.forgetting * self.rows + learns
        self.position += 1
        if self.time is not None:  # `last` never decreases
            t = float(x[self.time])
            self.last = max(self.last, t) if self.seen else t
        count = self.position - self.earliest
        if learns and (count in CHOICES or count % CHOICE == 0):
            for o in range(self.outputs):
                self._choose(o)

    def _believed(self, o: int, y: float, e: float) -> float:
        """Return y, clipped if its error e makes it an outlier, and update the robust deviation of the errors."""
        count = self.position - self.earliest + 1
        deviation = self.deviation[o]
        wild = count > 21 and abs(e) > CLIP * deviation
        self.wild[o] = self.wild[o] + 1 if wild else 0
        size = min(abs(e), 4 * deviation) if count > 21 else abs(e)
        self.deviation[o] += max(0.02, 1 / count) * (1.2533 * size - deviation)
        if wild and self.wild[o] < BELIEVED:
            return y - e + np.sign(e) * CLIP * deviation
        return y

    def _choose(self, o: int) -> None:
        """Choose the forecaster and the prior precision with the largest evidence."""
        G, b, rows, shape, best = self.G[o], self.b[o], self.rows, prior_shape(self.k), -np.inf
        for a0 in simple_forecasters(self.s1, self.s2, self.k):
            b0 = b - G @ a0
            yy0 = max(float(self.yy[o] - 2 * a0 @ b + a0 @ G @ a0), 0.0)
            for times in TIGHTNESS:
                tightness = times * min(1.0, max(yy0 / rows, 1e-9))
                L = factor(G + np.diag(tightness * shape))
                if L is None:
                    continue
                z = np.linalg.solve(L, b0)
                q = max(yy0 - float(z @ z), 1e-12 * rows)
                gap = (np.log(np.diag(L)) - 0.5 * np.log(tightness * shape)).sum()
                evidence = -gap - 0.5 * (rows + 1) * np.log((q + 1e-4) / (rows + 1))
                if evidence > best:
                    best, self.a0[o], self.tightness[o] = evidence, a0, tightness

    def _steps(self, x: Array) -> int:
        """Return the number of rows from the last row to x."""
        if self.time is None or not self.seen:
            return 1
        return int(min(max(np.rint(x[self.time] - self.last), 1.0), MOST_STEPS))

    def leaf_plan(self) -> Plan:
        numbers: dict[str, float | Array] = {
            "s1": self.s1,
            "s2": self.s2,
            "memory": part_sizes(self.s1, self.s2)[0],
            "k": self.k,
            "forgetting": self.forgetting,
            "time": -1 if self.time is None else self.time,
            "earliest": self.earliest,
            "forecasters": simple_forecasters(self.s1, self.s2, self.k),
        }
        return Plan("smoothed lags", self, numbers)


def prior_shape(k: int) -> Array:
    """Return the diagonal of A_0 divided by its tightness. The constant has little prior precision."""
    return np.array([0.1] + [1.0] * (k - 1))


def part_sizes(s1: int, s2: int) -> tuple[int, int, int, int, int]:
    """Return the sizes of the five arrays of `Past`: recent, fast, slow, second, smooth."""
    return max(s1, s2, 4) + 2, s1, s1, s2, 5


def own_inputs(s1: int, s2: int) -> int:
    return (7 if s1 == 1 else 10) + (4 if s2 > 1 else 0)


@lru_cache(maxsize=100)
def simple_forecasters(s1: int, s2: int, k: int) -> Array:
    """Return the candidates for the prior mean a_0, each the coefficients of a simple forecaster, (forecasters, k)."""

    def forecaster(**weights: float) -> Array:
        a = np.zeros(k)
        for name, weight in weights.items():
            a[int(name[1:])] = weight
        return a

    if s1 == 1:  # the last value; plus 0.7 of the change; each level; 0.7 of the last value
        plain = ({"x1": 1}, {"x1": 1, "x6": 0.7}, {"x4": 1}, {"x5": 1}, {"x1": 0.7})
        return np.array([forecaster(**weights) for weights in plain])
    one = (
        {"x1": 1},
        {"x6": 1, "x7": 0.7},  # the slow mean plus 0.7 of the last deviation from it
        {"x6": 1, "x8": 0.7},
        {"x4": 1},  # the value a season ago
        {"x5": 1},
        {"x4": 1, "x1": 0.7, "x9": -0.7},
        {"x4": 1, "x1": 1, "x9": -1},
    )
    two = ({"x11": 1, "x12": 0.7}, {"x11": 1}, {"x11": 1, "x13": 0.7}, {"x10": 1}) if s2 > 1 else ()
    return np.array([forecaster(**weights) for weights in (*one, *two)])


def factor(A: Array) -> Array | None:
    """Return the Cholesky factor of A, or None if A is not positive definite (for example with y beyond 1e100)."""
    try:
        return np.asarray(np.linalg.cholesky(A), dtype=np.float64)
    except np.linalg.LinAlgError:
        return None
