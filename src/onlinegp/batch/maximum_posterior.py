"""Maximize the posterior density of hyperparameters, with weak priors, from several starts, first on few rows.

The likelihood of a Gaussian process has several maxima. With few rows, some of them have zero noise. A prior avoids
these: wide, independent normal distributions of the log hyperparameters, centered at values that fit the spread of the
data. A thousand rows outweigh the prior, twenty do not.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from onlinegp.batch.changing_kernel import Tracked
from onlinegp.batch.likelihood import FAILED, Climb, at, climb, likelihood_at, loss_of
from onlinegp.checks import Array
from onlinegp.kernels import Constant, Kernel, Linear, Product, Scaled, Sum
from onlinegp.kernels.stationary import Stationary
from onlinegp.processes import Jobs, in_parallel

LENGTH_SCALE = 1.5  # standard deviations of the logarithms
POWER = 1.5
WEIGHTS = 2.0
NOISE = 2.5
OTHER = 2.0
NOISE_SHARE = 1e-2  # prior mean of the noise, relative to the power
REACH = 5.0  # the search stays within this number of standard deviations of the prior mean
ITERATIONS = 15  # limit on all rows
LEAST_GAIN = 1e-5  # smaller improvements of a posterior do not matter
WIDE, OTHER_WORK = 100, 110  # columns; the work of an evaluation besides that for columns, as so many of them

Progress = Callable[[float], None]


@dataclass(frozen=True)
class Stage:
    """A stage of the search: climbs on a subset of the rows, of which the best continue."""

    rows: int
    iterations: int
    survivors: int


FIRST, SECOND = Stage(250, 25, survivors=2), Stage(500, 15, survivors=1)
QUICK = Stage(60, 12, survivors=1)
QUICK_ITERATIONS = 8


@dataclass(frozen=True)
class Prior:
    """Independent normal distributions of theta = [kernel.theta, log noise], (p + 1,)."""

    mean: Array
    std: Array

    @classmethod
    def of(cls, kernel: Kernel, X: Array, y: Array) -> Prior:
        """Return the prior for data of this spread and power."""
        power = float(np.mean(y**2))
        mean, std = _prior(kernel, X, power)
        return cls(np.append(mean, np.log(NOISE_SHARE * power)), np.append(std, NOISE))

    def log_density(self, theta: Array) -> tuple[float, Array]:
        """Return the log density up to a constant, and its gradient. Entries of -inf are ignored."""
        u = np.where(np.isfinite(theta), (theta - self.mean) / self.std, 0.0)
        return -0.5 * float(u @ u), -u / self.std

    def draw(self, rng: np.random.Generator) -> Array:
        """Return a theta drawn from the prior."""
        return self.mean + self.std * rng.standard_normal(self.mean.size)

    def bounds(self) -> Array:
        """Return the bounds of the search, (p + 1, 2)."""
        return np.stack([self.mean - REACH * self.std, self.mean + REACH * self.std], axis=1)


def _prior(kernel: Kernel, X: Array, power: float) -> tuple[Array, Array]:
    """Return the means and standard deviations of kernel.theta."""
    if isinstance(kernel, Tracked):
        inner, std = _prior(kernel.kernel, X[:, :-1], power)
        span = float(np.ptp(X[:, -1])) or 1.0
        return np.append(inner, np.log(span)), np.append(std, OTHER)
    if isinstance(kernel, Scaled):
        inner, std = _prior(kernel.kernel, X, power)
        return np.append(inner, np.log(power)), np.append(std, POWER)
    if isinstance(kernel, (Sum, Product)):
        (left, s), (right, t) = _prior(kernel.left, X, power), _prior(kernel.right, X, power)
        return np.append(left, right), np.append(s, t)
    mean, std = kernel.theta, np.full(kernel.theta.size, OTHER)
    spread = spreads(X)
    if isinstance(kernel, Stationary):
        scales = np.size(kernel.length_scale)
        typical = spread if np.ndim(kernel.length_scale) else np.exp(np.mean(np.log(spread)))
        mean[:scales] = np.log(2.0 * np.sqrt(X.shape[1]) * typical)
        std[:scales] = LENGTH_SCALE
    elif isinstance(kernel, Linear):
        typical = spread**2 if np.ndim(kernel.variance) else np.mean(spread**2)
        mean, std = np.log(power / X.shape[1] / typical) + np.zeros_like(mean), np.full_like(mean, WEIGHTS)
    elif isinstance(kernel, Constant):
        mean, std = np.full(1, np.log(0.1 * power)), np.full(1, WEIGHTS)
    return mean, std


def spreads(X: Array) -> Array:
    """Return the standard deviation of each column, or one for a constant column."""
    std = X.std(axis=0)
    return np.where(std > 1e-12 * np.abs(X).max(axis=0, initial=0.0), std, 1.0)


def effort(columns: int) -> float:
    """Return the share of the iterations that a search for a stream takes: fewer in wide inputs.

    An evaluation takes time proportional to about 110 + columns, so a tuning on a thousand rows takes less than six
    seconds of one core for any number of columns.
    """
    return min(1.0, (OTHER_WORK + WIDE) / (OTHER_WORK + columns))


@dataclass
class Clock:
    """The time limit and the progress of a search, and the share of the iterations that it takes."""

    seconds: float = np.inf
    progress: Progress = lambda share: None
    total: float = 1.0  # the amount of work
    effort: float = 1.0
    done: float = 0.0
    started: float = field(default_factory=time.monotonic)

    def __post_init__(self) -> None:
        if not self.seconds >= 0.0:
            raise ValueError(f"seconds must not be negative, got {self.seconds}. Leave it out for no limit.")

    @property
    def over(self) -> bool:
        return time.monotonic() - self.started >= self.seconds

    @property
    def left(self) -> float:
        """The number of seconds that are left."""
        return max(0.0, self.seconds - (time.monotonic() - self.started))

    def advance(self, work: float) -> None:
        self.done += work
        self.progress(min(1.0, self.done / self.total))


def posterior_loss(kernel: Kernel, theta: Array, prior: Prior, X: Array, y: Array) -> tuple[float, Array]:
    """Return minus the log posterior per value of y, and its gradient. FAILED and zeros if it cannot be computed."""
    value, gradient = likelihood_at(kernel, theta, X, y)
    density, slope = prior.log_density(theta)
    return loss_of(value + density, gradient + slope, theta, y.size)


def climb_posterior(
    kernel: Kernel, start: Array, prior: Prior, X: Array, y: Array, *, iterations: int, clock: Clock
) -> Climb:
    """Maximize the posterior from `start`, and return the best point."""
    found = climb(
        lambda theta: posterior_loss(kernel, theta, prior, X, y),
        start,
        prior.bounds(),
        iterations=iterations,
        evaluations=2 * iterations,
        least_gain=LEAST_GAIN,
        over=lambda: clock.over,
    )
    clock.advance(work(len(y), iterations))
    return found


def climbs(
    kernel: Kernel,
    points: list[Array],
    prior: Prior,
    X: Array,
    y: Array,
    iterations: int,
    clock: Clock,
    jobs: Jobs,
) -> list[Climb]:
    """Climb from each point, in this process or in parallel."""
    iterations = max(1, round(clock.effort * iterations))
    if jobs == 1 or len(points) == 1:
        return [climb_posterior(kernel, p, prior, X, y, iterations=iterations, clock=clock) for p in points]
    found = in_parallel(_climb_elsewhere, ((kernel, p, prior, X, y, iterations, clock.left) for p in points), jobs)
    clock.advance(len(points) * work(len(y), iterations))
    return found


def _climb_elsewhere(
    kernel: Kernel, start: Array, prior: Prior, X: Array, y: Array, iterations: int, seconds: float
) -> Climb:
    """Climb with a new clock, because clocks of other processes or machines are not comparable."""
    return climb_posterior(kernel, start, prior, X, y, iterations=iterations, clock=Clock(seconds))


def search(
    kernel: Kernel,
    starts: Sequence[Array],
    X: Array,
    y: Array,
    *,
    later: Sequence[Array] = (),
    order: NDArray[np.int64],
    clock: Clock,
    jobs: Jobs = 1,
    quick: bool = False,
) -> tuple[Kernel, float]:
    """Return the kernel and the noise with the largest posterior density, from several starts.

    Each start climbs on a few rows, the first rows in a random `order`. The best points continue with more rows, and
    the best of all with all rows. Starts in `later` are already good, and are added after the stages with few rows.
    With `jobs`, the climbs of a stage run in parallel. A quick search has a single stage on few rows, and stops early.
    """
    prior = Prior.of(kernel, X, y)
    if quick:
        points = _best_on_few(kernel, list(starts), prior, X, y, QUICK, order, clock, jobs)
        last = climbs(kernel, [*points, *later], prior, X, y, QUICK_ITERATIONS, clock, jobs)
    else:
        points = _best_on_few(kernel, list(starts), prior, X, y, FIRST, order, clock, jobs)
        points = _best_on_few(kernel, [*points, *later], prior, X, y, SECOND, order, clock, jobs)
        last = climbs(kernel, points, prior, X, y, _last(len(y)), clock, jobs)
    best = min(last, key=lambda one: one.loss)
    if best.loss >= FAILED:
        raise np.linalg.LinAlgError(
            "no start gave a positive definite kernel matrix. Use a larger noise or another kernel."
        )
    return at(kernel, best.theta)


def _best_on_few(
    kernel: Kernel,
    points: list[Array],
    prior: Prior,
    X: Array,
    y: Array,
    stage: Stage,
    order: NDArray[np.int64],
    clock: Clock,
    jobs: Jobs,
) -> list[Array]:
    """Return the best points of a stage. Return all points if there are too few rows for the stage."""
    if stage.rows >= len(y) or not points:
        return points
    few, more = np.sort(order[: stage.rows]), np.sort(order[: 2 * stage.rows])
    points = [one.theta for one in climbs(kernel, points, prior, X[few], y[few], stage.iterations, clock, jobs)]
    if len(points) > stage.survivors:
        points.sort(key=lambda p: posterior_loss(kernel, p, prior, X[more], y[more])[0])
    return points[: stage.survivors]


def work(rows: int, iterations: int) -> float:
    """Return the cost of a climb, in arbitrary units."""
    return iterations * float(rows) ** 2 * (rows + 500.0)


def planned(starts: int, rows: int, later: int = 0) -> float:
    """Return the cost of a search."""
    total, points = 0.0, starts
    for stage, joining in ((FIRST, 0), (SECOND, later)):
        points += joining
        if stage.rows < rows:
            total += points * work(stage.rows, stage.iterations)
            points = min(points, stage.survivors)
    return total + points * work(rows, _last(rows))


def _last(rows: int) -> int:
    """Return the number of iterations on all rows, which is larger without an earlier stage."""
    return ITERATIONS if rows > FIRST.rows else 2 * ITERATIONS
