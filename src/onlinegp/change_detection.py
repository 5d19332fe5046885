"""Detect biased predictions and wrong spreads over many rows, by cumulative sums."""

from __future__ import annotations

from collections.abc import Iterable
from math import log

SHIFT = 1.0  # the bias to detect, in standard deviations
RATIO = 1.5  # the ratio of actual to predicted spread to detect, or its inverse
MAX_Z = 3.0  # |z| is clipped here, so that a single outlier is not a change

# Each test compares z ~ N(0, 1) with z ~ N(+-SHIFT, 1) or N(0, RATIO^(+-2))
KINDS = ("above", "below", "wide", "narrow")


class Cusum:
    """Page's cumulative sums of log-likelihood ratios, one for each kind of change.

    ::

        S <- max(0, S + log p1(z) / p0(z)),    alarm if S >= log(4 / rate), then S <- 0

    p0 is N(0, 1). There are four p1: z is above or below 0 on average, or its spread is wide or narrow. By Lorden's
    inequality each sum raises on average at most one false alarm in 4 / rate rows, so all four sums at most one in 1 /
    rate rows. |z| is clipped at 3; the bound still holds, because this only reduces the evidence.

    E. S. Page, "Continuous inspection schemes", Biometrika, 1954; G. Lorden, "Procedures for reacting to a change in
    distribution", Annals of Mathematical Statistics, 1971.

    Parameters
    ----------
    rate : float
        The largest rate of false alarms per row.

    Attributes
    ----------
    sums : list of four floats, for above, below, wide and narrow
    """

    def __init__(self, rate: float) -> None:
        self.threshold = log(len(KINDS) / rate)
        self.sums = [0.0] * len(KINDS)

    def add(self, z: Iterable[float]) -> list[tuple[int, str]]:
        """Add rows. Return the alarms: the row and the kind of change. Rows with z = NaN are skipped.

        Rows are added one by one, so that blocks of any size give the same bits.
        """
        # log N(z | d, 1) / N(z | 0, 1)   = d z - d^2 / 2
        # log N(z | 0, r^2) / N(z | 0, 1) = z^2 (1 - 1 / r^2) / 2 - log r
        half, up, down = 0.5 * SHIFT**2, 0.5 * (1.0 - RATIO**-2), 0.5 * (1.0 - RATIO**2)
        more, h = log(RATIO), self.threshold
        above, below, wide, narrow = self.sums
        alarms = []
        for i, value in enumerate(z):
            if value != value:
                continue
            high, low, square = min(value, MAX_Z), max(value, -MAX_Z), value * value
            above = max(0.0, above + SHIFT * high - half)
            below = max(0.0, below - SHIFT * low - half)
            wide = max(0.0, wide + up * min(square, MAX_Z * MAX_Z) - more)
            narrow = max(0.0, narrow + down * square + more)
            if above >= h or below >= h or wide >= h or narrow >= h:
                sums = (above, below, wide, narrow)
                alarms += [(i, kind) for kind, s in zip(KINDS, sums, strict=True) if s >= h]
                above, below, wide, narrow = (0.0 if s >= h else s for s in sums)
        self.sums = [above, below, wide, narrow]
        return alarms
