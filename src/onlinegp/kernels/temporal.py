"""Kernels over time that are not stationary: drifting levels, slopes and seasons. Time starts at 0."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from onlinegp.checks import Array, count, non_negative, positive
from onlinegp.kernels.base import FIXED, Kernel

SMALL = 1e-2  # below, Taylor series replace differences that would lose digits


@dataclass(frozen=True, eq=False)
class RandomWalk(Kernel):
    """A drifting level with an unknown start, k(s, t) = variance + drift min(s, t)."""

    variance: float = 1.0
    drift: float = 0.1

    def __post_init__(self) -> None:
        positive("It is the variance of the level at time 0.", variance=self.variance)
        non_negative("It is the increase of the variance per unit of time; 0 for a constant level.", drift=self.drift)

    def __call__(self, X: Array, Z: Array | None = None) -> Array:
        return self.variance + self.drift * np.minimum(X, (X if Z is None else Z).T)

    def diag(self, X: Array) -> Array:
        return self.variance + self.drift * X[:, 0]


@dataclass(frozen=True, eq=False)
class LocalTrend(Kernel):
    """A drifting level with a drifting, damped slope::

        l' = b + white noise of variance drift,   b' = -damping b + white noise of variance slope_drift

    At time 0 level and slope have the variances `variance` and `slope`.
    """

    variance: float = 1.0
    slope: float = 0.1
    drift: float = 0.1
    slope_drift: float = 0.01
    damping: float = 0.1

    def __post_init__(self) -> None:
        positive("It is the variance of the level at time 0.", variance=self.variance)
        for name in ("slope", "drift", "slope_drift", "damping"):
            non_negative("Use 0 for none.", **{name: getattr(self, name)})

    def __call__(self, X: Array, Z: Array | None = None) -> Array:
        # with b(r) = (1 - exp(-a r)) / a, s <= t:  q int_0^s b(s - u) b(t - u) du
        #   = q / a^2 (s - b(s) - exp(-a (t - s)) (b(s) - (1 - exp(-2 a s)) / 2 a))
        Z = X if Z is None else Z
        s, t, a, q = np.minimum(X, Z.T), np.maximum(X, Z.T), self.damping, self.slope_drift
        start = self.variance + self.slope * self._reach(s) * self._reach(t) + self.drift * s
        if a == 0.0:
            return start + q * (s * s * t / 2 - s**3 / 6)
        decay = np.exp(-a * (t - s))
        return start + q / a**2 * (s - self._reach(s) - decay * (self._reach(s) + np.expm1(-2 * a * s) / (2 * a)))

    def _reach(self, r: Array) -> Array:
        return r if self.damping == 0.0 else -np.expm1(-self.damping * r) / self.damping


@dataclass(frozen=True, eq=False)
class Season(Kernel):
    """A drifting season, k(s, t) = (variance + drift min(s, t)) sum_j cos(2 pi j (s - t) / period) / j^2."""

    period: float = field(default=12.0, metadata=FIXED)
    harmonics: int = field(default=5, metadata=FIXED)
    variance: float = 1.0
    drift: float = 0.01

    def __post_init__(self) -> None:
        positive("It is the length of the season, in units of time.", period=self.period)
        count("5 are enough for a year of months.", harmonics=self.harmonics)
        positive("It is the variance of the first harmonic at time 0.", variance=self.variance)
        non_negative("It is the variance that a unit of time adds; 0 for a season that stays.", drift=self.drift)

    def __call__(self, X: Array, Z: Array | None = None) -> Array:
        Z = X if Z is None else Z
        angle = 2 * np.pi * np.subtract.outer(X[:, 0] % self.period, Z[:, 0] % self.period) / self.period
        waves = sum(np.cos(j * angle) / j**2 for j in range(1, self.harmonics + 1))
        return (self.variance + self.drift * np.minimum(X, Z.T)) * waves

    def diag(self, X: Array) -> Array:
        return (self.variance + self.drift * X[:, 0]) * sum(1 / j**2 for j in range(1, self.harmonics + 1))
