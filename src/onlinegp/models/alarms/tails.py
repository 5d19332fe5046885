"""Learn the tail of a statistic from its largest past values, by a generalized Pareto law and by ranks."""

from __future__ import annotations

from math import ceil, log10, sqrt

import numpy as np
from numpy.typing import NDArray

from onlinegp.checks import Array
from onlinegp.models.alarms.constants import Constants

LARGEST = 1e30  # fits into float32
ENOUGH = 50  # minimum number of rows
U, SHAPE, SCALE, SHARE, CHANGES = range(5)  # positions in `law`


class Tail:
    """The tail of one statistic. Its arrays are views of arrays for all statistics.

    Two generations of 10,000 rows keep their 144 largest values, in decreasing order. n is the number of rows in both,
    K = .05 n (less if fewer values are kept), and u is the (K+1)-th largest value; ties at u do not count in K. Values
    above u follow a generalized Pareto law::

        p = max(K / n (1 + xi (x - u) / sigma)^(-1 / xi),  #{kept >= u + .95 (x - u)} / n),    s = -log10 p

    and only a quarter of s beyond log10 n + .7 counts. The law alone would not adapt to a stream with rare equal
    spikes, but ranks do. Ranks alone give no information beyond the largest value.

    J. R. M. Hosking and J. R. Wallis, "Parameter and quantile estimation for the generalized Pareto distribution",
    Technometrics, 1987: probability-weighted moments. Here the shape is shrunk to a prior mean.

    Parameters
    ----------
    values : (2, KEPT), float32
    counts : (2, 2), the number of values and of rows in each generation
    law : u, shape, scale, share of the rows above u, number of values since the last fit
    least : the smallest scale
    """

    def __init__(
        self, values: NDArray[np.float32], counts: NDArray[np.int64], law: Array, least: float, rule: Constants
    ) -> None:
        self.values, self.counts, self.law, self.least, self.rule = values, counts, law, least, rule

    def evidence(self, x: float, nearly: float) -> float:
        """Return the evidence s at x."""
        law, n = self.law, int(self.counts[:, 1].sum())
        x = float(np.float32(min(x, LARGEST)))
        if n < ENOUGH or (law[SHARE] > 0.0 and x <= law[U]):
            return 0.0
        if law[CHANGES] > 0.0 or law[SHARE] == 0.0:
            self.fit(n)
        u, xi, sigma, share = (float(value) for value in law[:CHANGES])
        excess = x - u
        if excess <= 0.0:
            return 0.0
        pareto = share * (1.0 + xi * excess / sigma) ** (-1.0 / xi) if sigma > 0.0 else share * 1e-9
        as_large = u + nearly * excess
        kept = [self.values[g, : self.counts[g, 0]].astype(np.float64) for g in (0, 1)]
        rank = sum(int((values >= as_large).sum()) for values in kept)
        s = -log10(max(pareto, min(rank / n, share), 1e-30))
        limit = log10(n) + self.rule.beyond
        return s if s <= limit else limit + self.rule.speed * (s - limit)

    def fit(self, n: int) -> None:
        """Fit the law: a0 = mean excess, a1 = mean of excess (rank - .35) / K, with rank 1 for the largest.

        xi = 2 - a0 / (a0 - 2 a1), shrunk and within .01 ... 1; sigma = a0 (1 - xi).
        """
        rule, counts = self.rule, self.counts
        kept = np.concatenate([self.values[g, : counts[g, 0]] for g in (0, 1)]).astype(np.float64)
        kept = -np.sort(-kept)
        most = self.values.shape[1] - 1  # the list of a generation is complete only down to this number of values
        K = min(int(rule.share * n), max(most, int(most / rule.generation * n)))
        K = min(max(2, K), len(kept) - 1)
        u = kept[K]
        K = int(np.count_nonzero(kept[:K] > u))
        a0 = a1 = 0.0
        for m in range(K):
            excess = float(kept[m] - u)
            a0 += excess / K
            a1 += excess * (m + 0.65) / K / K
        xi = rule.shape
        if a0 > 0.0:
            xi = 0.01 if a0 - 2.0 * a1 <= 1e-12 * a0 else 2.0 - a0 / (a0 - 2.0 * a1)
        xi = min(max((K * xi + rule.prior * rule.shape) / (K + rule.prior), 0.01), 1.0)
        fewest = 0.01 if self.least >= 1.0 else 1.0 / n
        self.law[:] = u, xi, max(a0 * (1.0 - xi), self.least), max(K / n, fewest), 0.0

    def learn(self, x: float) -> None:
        """Add the value of a new row. When the newer generation is full, drop the older generation."""
        values, counts = self.values, self.counts
        x = float(np.float32(min(x, LARGEST)))
        if counts[0, 1] >= self.rule.generation:
            values[1], counts[1] = values[0], counts[0]
            counts[0] = 0
            self.law[CHANGES] += 1.0
        counts[0, 1] += 1
        size, most = int(counts[0, 0]), values.shape[1]
        if size < most or x > values[0, size - 1]:
            place = int((values[0, :size] >= x).sum())
            size = min(size + 1, most)
            values[0, place + 1 : size] = values[0, place : size - 1].copy()
            values[0, place] = x
            counts[0, 0] = size
            self.law[CHANGES] += 1.0

    def largest(self) -> np.float32:
        """Return the largest kept value, or 0 without values."""
        return max((self.values[g, 0] for g in (0, 1) if self.counts[g, 0]), default=np.float32(0.0))

    def remove_above(self, x: float, most: int) -> None:
        """Forget up to `most` values above x, the smallest first. One value always stays, because the law needs it."""
        for g in (0, 1):
            size = int(self.counts[g, 0])
            above = int((self.values[g, :size] > np.float32(x)).sum())
            gone = min(above, most, max(size - 1, 0))
            self.values[g, above - gone : size - gone] = self.values[g, above:size].copy()
            self.counts[g] -= gone
            most -= gone
        self.law[CHANGES] += 1.0

    def thin(self, x: float) -> None:
        """Keep only n^(1/4) of the n values above x in the newer generation."""
        above = int((self.values[0, : self.counts[0, 0]] > np.float32(x)).sum())
        self.remove_above(x, above - ceil(sqrt(sqrt(above))))
