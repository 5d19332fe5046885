"""Find the inputs that are unusual in an event, compared with their past."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from onlinegp.checks import Array
from onlinegp.state import Fields, WithFields, integer
from onlinegp.state.fields import Field

KEPT = 256  # number of stored rows
ENOUGH = 60  # minimum number of past rows
EARLY = 64  # only the first rows of an event count, because inputs may change later for other reasons
LATEST = 20  # largest number of rows to compare with their past
UNUSUAL = 3.0  # inputs are unusual from this -log10 of the probability, corrected for the number of rows and inputs
PERHAPS = 2.5  # the same limit for an input that is far more unusual than the others
INDEPENDENT = 25.0  # number of independent past values for full evidence
LARGEST = 1e30


class Inputs(WithFields):
    """The last 256 rows of the inputs, in float32."""

    def __init__(self, features: int) -> None:
        self.features, self.rows = features, 0
        self.recent: NDArray[np.float32] = np.zeros((KEPT, features), dtype=np.float32)  # the newest row is last

    @property
    def fields(self) -> Fields:
        recent = Field("array", (KEPT, "features"), np.float32)
        return {"rows": integer(most=KEPT), "recent": recent}

    def add(self, X: Array) -> None:
        """Add rows, and drop the oldest rows."""
        self.recent, self.rows = self._until(X, len(X)), min(self.rows + len(X), KEPT)

    def _until(self, X: Array, n: int) -> NDArray[np.float32]:
        """Return the last 256 rows before row n of the block X."""
        new = np.clip(X[max(0, n - KEPT) : n], -LARGEST, LARGEST).astype(np.float32)
        return np.concatenate([self.recent[len(new) :], new])

    def look(self, X: Array, i: int, rows: int) -> list[float]:
        """Return the evidence that each input is unusual at row i of the block X, in an event of `rows` rows."""
        known = min(self.rows + i + 1, KEPT)
        last = self._until(X, i + 1)[KEPT - known :].astype(np.float64)
        rows = max(rows, 1)
        if known - rows < ENOUGH or rows > EARLY:
            return [0.0] * self.features
        new = min(rows, LATEST)
        several = np.log10(max(self.features, 1))
        return [float(evidence(last[:-rows, j], last[-new - 1 :, j]) - several) for j in range(self.features)]


def unusual(odd: list[float]) -> tuple[int, ...]:
    """Return the indices of the inputs to name in a reason, the most unusual first."""
    worst = sorted((j for j, value in enumerate(odd) if value >= PERHAPS), key=lambda j: -odd[j])
    if len(worst) == 1 or (worst and odd[worst[0]] >= odd[worst[1]] + 1.0 and odd[worst[0]] < UNUSUAL):
        return (worst[0],)
    return tuple(j for j in worst if odd[j] >= UNUSUAL)


def evidence(past: Array, with_one_before: Array) -> float:
    """Return the evidence, -log10 of a probability, that rows of an input are unusual compared with its past.

    Values, mean, changes, and the number of rows without a change are compared. Correlated past values count less,
    because fewer of them are independent.
    """
    rows, center = with_one_before[1:], np.median(past)
    sure = independent(past)
    found = [min(1.0, sure / INDEPENDENT) * tail(np.abs(past - center), float(np.abs(rows - center).max()), len(rows))]
    changes, new = np.diff(past), np.diff(with_one_before)
    jump = tail(np.abs(changes), float(np.abs(new).max()), len(rows))
    found.append(min(1.0, independent(changes) / INDEPENDENT) * jump)
    if len(rows) >= 3:
        sums = np.cumsum(past - past.mean())
        means = np.abs(sums[len(rows) :] - sums[: -len(rows)]) / len(rows)
        sure = min(sure, len(past) / len(rows))
        found.append(min(1.0, sure / INDEPENDENT) * tail(means, abs(float(rows.mean() - past.mean())), 1))
        same = float(np.mean(changes == 0.0))
        found.append(-len(rows) * np.log10(max(same, 0.05)) if not new[1:].any() else 0.0)
    return max(found)


def independent(x: Array) -> float:
    """Return the effective number of independent values, n (1 - r) / (1 + r), where r is the lag-1 correlation."""
    x = x - x.mean()
    squares = float(x @ x)
    r = max(float(x[1:] @ x[:-1]) / squares, 0.0) if squares > 0.0 else 0.0
    return len(x) * (1.0 - r) / (1.0 + r)


def tail(past: Array, x: float, trials: int) -> float:
    """Return -log10 of the probability that one of `trials` values is at least x, with an exponential tail.

    The tail is fitted to the largest tenth of the past. If most past values are equal, like a setpoint with rare jumps,
    this tail is uncertain, and the evidence is reduced.
    """
    u = float(np.quantile(past, 0.9))
    if x <= u:
        return 0.0
    excess = past[past > u] - u
    scale = max(float(excess.mean()) if len(excess) else 0.0, 0.1 * (u or float(past.mean())))
    p = 0.1 * np.exp(-(x - u) / scale) if scale > 0.0 else 0.0
    rank = np.count_nonzero(past >= x) / len(past)
    sure = min(1.0, 20.0 * len(excess) / len(past)) if len(excess) else 1.0
    return float(-sure * np.log10(min(1.0, trials * max(p, rank, 1e-12))))
