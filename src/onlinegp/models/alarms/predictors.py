"""Predict the next value by recursive least squares on recent and seasonal lags."""

from __future__ import annotations

from math import sqrt

import numpy as np
from numpy.typing import NDArray

from onlinegp.checks import Array
from onlinegp.models.alarms.constants import AROUND, NEAR, RECENT, WEEK

CUT = 10.0  # regressors are clipped here, in spreads
SHORTEST, LONGEST = NEAR + 1, 700  # limits of the season, in rows
MOST_NEAR = NEAR + 2 * AROUND + 2  # number of weights: lags and bias
MOST_FAR = 6
WINDUP = 1e10  # limit of the mean of the diagonal of P; smooth waves need a large P


def near_lags(season: int) -> list[int]:
    """Return the lags of the near predictor."""
    lags = list(range(1, NEAR + 1))
    if season > 20:
        return lags + list(range(season - AROUND, season + AROUND + 1))
    return [*lags, season] if season > NEAR else lags


def far_lags(season: int, daily: bool) -> list[int]:
    """Return the lags of the far predictor. If the season is a day, they include a week."""
    if season <= NEAR:
        return []
    lags = [season - 1, season, season + 1, 2 * season] + ([WEEK * season] if daily else [])
    return [lag for lag in lags if lag <= RECENT]


class Predictor:
    """Recursive least squares with forgetting on a bias and (lagged value - level) / spread, clipped at 10::

        g = P x,   w <- w + g e / (lambda + x.g),   P <- (P - g g' / (lambda + x.g)) / lambda

    The arrays P (most, most) and w (most,) belong to the caller. Their first p rows and columns are used.
    """

    def __init__(self, P: Array, w: Array, lags: list[int], spare: int, forgetting: float) -> None:
        self.P, self.w, self.lags, self.spare, self.forgetting = P, w, lags, spare, forgetting
        self.x = np.zeros(len(w))
        self.p = len(lags) + 1

    def start(self, ridge: float, first: float) -> None:
        """Forget everything, and set the first weight to `first`."""
        self.P[:], self.w[:] = 0.0, 0.0
        self.P[np.arange(self.p), np.arange(self.p)] = 1.0 / ridge
        self.w[0] = first

    def predict(self, recent: NDArray[np.float32], t: int, reach: int, level: float, spread: float) -> float:
        """Return (prediction - level) / spread for row t.

        Only the last `reach` rows are known. The lag `spare` replaces longer lags. If `spare` is 0 or too long, the
        level is used as the past value.
        """
        for j, lag in enumerate(self.lags):
            lag = lag if lag <= reach else self.spare
            past = float(recent[(t - lag) % RECENT]) if 0 < lag <= reach else level
            self.x[j] = min(max((past - level) / spread, -CUT), CUT)
        self.x[self.p - 1] = 1.0
        total = 0.0
        for j in range(self.p):
            total += self.w[j] * self.x[j]
        return float(total)

    def learn(self, error: float, limit: float) -> None:
        """Learn the row that was predicted last. Its error is clipped to `limit`."""
        p, x, P = self.p, self.x, self.P
        error = min(max(error, -limit), limit)
        g, s = np.zeros(p), self.forgetting
        for j in range(p):
            g += P[:p, j] * x[j]
        for j in range(p):
            s += g[j] * x[j]
        root = 1.0 / sqrt(s)
        g *= root
        self.w[:p] += g * (root * error)
        P[:p, :p] = (P[:p, :p] - g[:, None] * g[None, :]) * (1.0 / self.forgetting)
        if sum(P[i, i] for i in range(p)) > p * WINDUP:  # the inputs have not changed for a long time
            P *= 0.1


def find_season(x: Array) -> int:
    """Return the season: the shortest lag whose peak of the autocorrelation reaches 90% of the highest peak.

    Only lags after the first zero of the autocorrelation and up to a third of the rows count. The result is 0 if the
    highest peak is below 0.2, or no higher than a few large values reach that happen to be so many rows apart
    (Bernstein's inequality).
    """
    n = len(x)
    longest = min(LONGEST, n // 3)
    x = x - x.mean()
    squares = float(x @ x)
    if squares <= 0.0:
        return 0
    spectrum = np.fft.rfft(x, 2 * n)
    products = np.fft.irfft(spectrum * spectrum.conj())[: longest + 2]
    r = products / squares * n / (n - np.arange(longest + 2))
    zeros = np.flatnonzero(r[1:longest] <= 0.0)
    first = max(int(zeros[0]) + 1 if len(zeros) else longest, SHORTEST)
    highest = max(r[first : longest + 1], default=0.0)
    chance = 2.0 / 3.0 * np.log(max(longest, 1)) * float((x * x).max()) / squares
    if highest < max(0.2, chance):
        return 0
    for k in range(first + 1, longest + 1):
        if r[k] > r[k - 1] and r[k] >= r[k + 1] and r[k] >= 0.9 * highest:
            return k
    return 0
