"""Changes that no single row shows: sums of evidence that predictions are off, or that their spread is wrong."""

from __future__ import annotations

from collections.abc import Iterable
from math import log

SHIFT = 1.0  # standard deviations that the mean may be off: what is looked for
RATIO = 1.5  # by which the errors may be larger or smaller than predicted
FAR = 3.0  # standard deviations beyond which a row counts no more: one outlier is no change

# A row with z ~ N(0, 1), if all is well, against z ~ N(+-SHIFT, 1) or N(0, RATIO^(+-2)).
KINDS = ("above", "below", "wide", "narrow")


class Cusum:
    """Page's cumulative sums of log-likelihood ratios, one for each way in which predictions may go wrong.

    ::

        S <- max(0, S + log p1(z) / p0(z)),    an alarm where S >= log(4 / rate), and S <- 0

    p0 is N(0, 1), and p1 one of four: z is on average above or below 0, or its spread wide or narrow. By Lorden's
    inequality a sum alarms by mistake at most once in 4 / rate rows on average, so the four together at most once in
    1 / rate. A z beyond 3 counts as 3, which keeps that bound, as it takes evidence away.

    E. S. Page, "Continuous inspection schemes", Biometrika, 1954; G. Lorden, "Procedures for reacting to a change in
    distribution", Annals of Mathematical Statistics, 1971.

    Parameters
    ----------
    rate : float
        False alarms per row, at most.

    Attributes
    ----------
    sums : list of four floats, of above, below, wide and narrow
    """

    def __init__(self, rate: float) -> None:
        self.threshold = log(len(KINDS) / rate)
        self.sums = [0.0] * len(KINDS)

    def add(self, z: Iterable[float]) -> list[tuple[int, str]]:
        """Take rows, and return the alarms: which row, and the kind of the change. A row whose z is NaN is passed over.

        Row by row, so that blocks of any size give the same bits.
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
            high, low, square = min(value, FAR), max(value, -FAR), value * value
            above = max(0.0, above + SHIFT * high - half)
            below = max(0.0, below - SHIFT * low - half)
            wide = max(0.0, wide + up * min(square, FAR * FAR) - more)
            narrow = max(0.0, narrow + down * square + more)
            if above >= h or below >= h or wide >= h or narrow >= h:
                sums = (above, below, wide, narrow)
                alarms += [(i, kind) for kind, s in zip(KINDS, sums, strict=True) if s >= h]
                above, below, wide, narrow = (0.0 if s >= h else s for s in sums)
        self.sums = [above, below, wide, narrow]
        return alarms
