"""Convert a kernel over time to a state space, which is a list of blocks x of one to three numbers.

    x(t + dt) = A(dt) x(t) + N(0, Q(dt)),   f(t) = sum of h(t) x_0(t) over all blocks

A block is a random walk, a Matern process or a local trend. f observes the first number x_0 of each block, multiplied
by h(t), which is 1, a power of t or a wave (a sine or cosine). A sum of kernels has the blocks of all terms. A product
with Matern-1/2 makes a block decay. A product with Periodic repeats a block for both waves of each harmonic.

S. Sarkka and A. Solin, Applied Stochastic Differential Equations, 2019, ch. 12; A. Solin and S. Sarkka, "Explicit link
between periodic covariance functions and state space models", AISTATS 2014.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import Any, NamedTuple

import numpy as np

from onlinegp.checks import Array
from onlinegp.kernels import Constant, Kernel, Linear, Matern12, Matern32, Matern52, Periodic, Product, Scaled, Sum
from onlinegp.kernels.temporal import SMALL, LocalTrend, RandomWalk, Season

MOST_HARMONICS = 60
LEFT_OUT = 1e-13  # largest share of the variance of a periodic kernel in the omitted harmonics

WALK, MATERN12, MATERN32, MATERN52, TREND = range(5)  # kinds of blocks, the same in native/leaves/temporal.hpp
STATES = (1, 1, 2, 3, 2)


class Block(NamedTuple):
    """A part of the state. Its first number contributes to f.

    Attributes
    ----------
    kind : WALK, MATERN12, MATERN32, MATERN52 or TREND
    variance : the variance of a Matern process, or at time 0 of a random walk or of the level of a trend
    rate : sqrt(2 nu) / length scale of a Matern process, or the damping of a trend
    decay : the additional rate of a Matern process from products with Matern-1/2
    drift, slope, slope_drift : parameters of a walk or trend, see `onlinegp.kernels.temporal`
    period, harmonic, sine : h contains this wave; a period of 0 means no wave
    power : h contains this power of time
    column : h contains this input; -1 means no input
    """

    kind: int
    variance: float
    rate: float = 0.0
    decay: float = 0.0
    drift: float = 0.0
    slope: float = 0.0
    slope_drift: float = 0.0
    period: float = 0.0
    harmonic: int = 0
    sine: int = 0
    power: int = 0
    column: int = -1

    @property
    def states(self) -> int:
        return STATES[self.kind]

    def start(self) -> Array:
        """Return the covariance of the block at time 0, (states, states)."""
        v, a = self.variance, self.rate
        if self.kind == TREND:
            return np.diag([v, self.slope])
        if self.kind == MATERN32:
            return v * np.diag([1.0, a * a])
        if self.kind == MATERN52:
            k = a * a / 3
            return v * np.array([[1.0, 0.0, -k], [0.0, k, 0.0], [-k, 0.0, a**4]])
        return np.array([[v]])

    def transition(self, dt: float) -> tuple[Array, Array]:
        """Return the matrices A(dt) and Q(dt), (states, states)."""
        if self.kind == WALK:
            return np.eye(1), np.array([[self.drift * dt]])
        if self.kind == TREND:
            return self._trend(dt)
        A = np.exp(-(self.rate + self.decay) * dt) * self._polynomial(self.rate, dt)
        P = self.start()
        return A, P - A @ P @ A.T

    def _polynomial(self, a: float, t: float) -> Array:
        """Return exp(F t) exp(a t), where F is the drift matrix of a Matern process."""
        if self.kind == MATERN12:
            return np.eye(1)
        if self.kind == MATERN32:
            return np.array([[1 + a * t, t], [-a * a * t, 1 - a * t]])
        b = a * t
        return np.array(
            [
                [1 + b + b * b / 2, t * (1 + b), t * t / 2],
                [-(a**3) * t * t / 2, 1 + b - b * b, t * (1 - b / 2)],
                [a**3 * t * (b / 2 - 1), a * a * t * (b - 3), 1 - 2 * b + b * b / 2],
            ]
        )

    def _trend(self, dt: float) -> tuple[Array, Array]:
        x = self.rate * dt
        e1, e2 = (-np.expm1(-k * x) / (k * x) if x else 1.0 for k in (1, 2))  # means of exp(-k rate r) for r in (0, dt)
        if x < SMALL:
            cross, level = 1 / 2 - x / 2 + 7 * x**2 / 24 - x**3 / 8, 1 / 3 - x / 4 + 7 * x**2 / 60 - x**3 / 24
        else:
            cross, level = (e1 - e2) / x, (1 - 2 * e1 + e2) / (x * x)
        A = np.array([[1.0, dt * e1], [0.0, np.exp(-x)]])
        q = self.slope_drift * dt
        return A, np.array([[self.drift * dt + q * dt * dt * level, q * dt * cross], [q * dt * cross, q * e2]])

    def observed(self, t: float, x: Array) -> float:
        """Return h(t), the factor of the first number. `x` holds the inputs of the row."""
        h = prod([t] * self.power, start=1.0)  # `**` would raise an OverflowError instead of returning infinity
        if self.period:
            angle = 2 * np.pi * self.harmonic * (np.fmod(t, self.period) / self.period)
            h *= np.sin(angle) if self.sine else np.cos(angle)
        return h if self.column < 0 else h * x[self.column]

    def replaced(self, **values: Any) -> Block:
        """Return a copy with some attributes changed."""
        return self._replace(**values)


def state_space(kernel: Kernel) -> tuple[Block, ...]:
    """Return the blocks that represent a kernel over time. Raise an error if there is no such state space."""
    return tuple(block for variance, factors in _terms(kernel) for block in _blocks(variance, factors))


def _terms(kernel: Kernel) -> Iterator[tuple[float, list[Kernel]]]:
    """Yield the terms of a sum of kernels, each as a constant and a list of factors."""
    if isinstance(kernel, Sum):
        yield from _terms(kernel.left)
        yield from _terms(kernel.right)
    elif isinstance(kernel, Scaled):
        yield from ((kernel.variance * variance, factors) for variance, factors in _terms(kernel.kernel))
    elif isinstance(kernel, Product):
        for left, factors in _terms(kernel.left):
            yield from ((left * right, factors + others) for right, others in _terms(kernel.right))
    else:
        yield (float(kernel.variance), []) if isinstance(kernel, Constant) else (1.0, [kernel])


def _blocks(variance: float, factors: list[Kernel]) -> Iterator[Block]:
    """Yield the blocks of a product of kernels."""
    base = Block(WALK, variance)
    waves: list[Periodic | Season] = []
    for kernel in factors:
        if isinstance(kernel, Linear):
            base = base.replaced(variance=base.variance * _one(kernel, "variance"), power=base.power + 1)
        elif isinstance(kernel, Matern12):
            base = base.replaced(decay=base.decay + 1 / _one(kernel, "length_scale"))
        elif isinstance(kernel, Periodic | Season) and not waves:
            waves = [kernel]
        elif isinstance(kernel, Matern32 | Matern52 | RandomWalk | LocalTrend) and base.kind == WALK and not base.drift:
            base = _with_process(base, kernel)
        else:
            raise ValueError(
                f"{kernel!r} is not supported{' as a further factor' if len(factors) > 1 else ''}. Each term must be a "
                "product of Constant, Linear and Matern12, at most one of Matern32, Matern52, RandomWalk and "
                "LocalTrend, and at most one of Periodic and Season. Use Matern52 for RBF."
            )
    if base.decay and (base.kind == TREND or base.drift or any(isinstance(wave, Season) for wave in waves)):
        raise ValueError("a product of Matern12 and a kernel that drifts is not supported. Use the sum of both.")
    if base.decay and base.kind == WALK:
        base = base.replaced(kind=MATERN12)
    yield from _through_waves(base, waves[0]) if waves else (base,)


def _with_process(base: Block, kernel: Kernel) -> Block:
    if isinstance(kernel, RandomWalk):
        return base.replaced(drift=base.variance * kernel.drift, variance=base.variance * kernel.variance)
    if isinstance(kernel, LocalTrend):
        v = base.variance
        base = base.replaced(drift=v * kernel.drift, slope=v * kernel.slope, slope_drift=v * kernel.slope_drift)
        return base.replaced(kind=TREND, rate=kernel.damping, variance=v * kernel.variance)
    length = _one(kernel, "length_scale")
    kind, nu2 = (MATERN32, 3.0) if isinstance(kernel, Matern32) else (MATERN52, 5.0)
    return base.replaced(kind=kind, rate=np.sqrt(nu2) / length)


def _through_waves(base: Block, kernel: Periodic | Season) -> Iterator[Block]:
    """Yield a copy of a block for each wave of a season, with its share of the variance."""
    if isinstance(kernel, Season):
        if base.kind != WALK or base.drift:
            raise ValueError(
                "Season drifts by itself, so it must be multiplied by Constant or Linear only. Use Periodic instead."
            )
        shares = [(j, j**-2.0) for j in range(1, kernel.harmonics + 1)]
        base = base.replaced(drift=base.variance * kernel.drift, variance=base.variance * kernel.variance)
    else:
        shares = list(enumerate(harmonic_shares(_one(kernel, "length_scale"))))
    period = _one(kernel, "period")
    for j, share in shares:
        own = base.replaced(variance=share * base.variance, drift=share * base.drift)
        own = own.replaced(slope=share * base.slope, slope_drift=share * base.slope_drift)
        yield from (own.replaced(period=period, harmonic=j, sine=sine) for sine in (0, 1)) if j else (own,)


def harmonic_shares(length_scale: float) -> list[float]:
    """Return the variances of the harmonics 0, 1, ... of a periodic kernel. Raise an error if there are too many.

    exp((cos(u) - 1) / l^2) = sum_j a_j cos(j u),  a_j = 2 I_j(l^-2) exp(-l^-2), half of it for j = 0
    """
    from scipy.special import ive

    order = np.arange(100 * MOST_HARMONICS)
    shares = np.where(order > 0, 2.0, 1.0) * ive(order, length_scale**-2.0)
    needed = int(np.argmax(np.cumsum(shares[::-1]) > LEFT_OUT))  # number of harmonics that can be omitted
    most = len(order) - 1 - needed
    if most > MOST_HARMONICS:
        raise ValueError(
            f"Periodic(length_scale={length_scale:g}) needs {most} harmonics, and at most {MOST_HARMONICS} are used: "
            "each adds two numbers to the state. Use a longer length scale, or Season(period, harmonics)."
        )
    return shares[: most + 1].tolist()


def _one(kernel: Kernel, name: str) -> float:
    """Return a parameter of a kernel. Raise an error unless it is one number, because time is one column."""
    value = np.ravel(getattr(kernel, name))
    if len(value) != 1:
        raise ValueError(f"{name} must be one number for a kernel over time, got {getattr(kernel, name)!r}.")
    return float(value[0])
