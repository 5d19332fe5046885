"""A Gaussian process of trend, Matern-1/2 process, drifting seasons and noise, fitted to a series by MAP.

In units of the noise, with harmonics j of each season, per row:

    level l += b + N(0, q_l),   slope b = phi b + N(0, q_b),   u = rho u + N(0, q_u (1 - rho^2)),
    y = l + u + sum_j season_j + N(0, 1),   and each harmonic drifts by N(0, q_s / j^2)

The logarithms of the variances and the logits of phi and rho have normal priors. All variances are multiplied by
sigma^2, which is integrated out with a prior worth two rows. For an error of z > 2 standard deviations, z^2 is replaced
by 4 z - 4 (Huber), and the state changes as for an error of 2 standard deviations.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from onlinegp.checks import Array
from onlinegp.models.temporal.state_space import MATERN12, TREND, WALK, Block
from onlinegp.models.temporal.temporal_gp import TemporalLearner
from onlinegp.native_module import available, native

# mean and standard deviation of the priors of log q_l, log q_u, logit rho, log q_b, logit phi, log q_s
PRIORS = {"l": (-1.5, 2.0), "u": (-1.0, 2.0), "rho": (0.5, 1.5), "b": (-7.0, 2.0), "phi": (2.5, 1.0), "s": (-6.0, 2.0)}
ROBUST = 2.0
MOST_STATES = 256  # limit of the compiled likelihood
MOST_HARMONICS = (12, 6)  # of the first and of the second season
SLOPE, DRIFT_SLOPE = 0.3, 0.01  # prior variance of the slope per row, without and with `drift`
FARTHEST = 4.0  # parameters stay within this number of standard deviations of their prior mean
STEP = 1e-6  # step of numerical derivatives, used without compiled code
ENOUGH = 1e-5  # a fit ends if the objective improves by a smaller share
PARAMETERS = ("variance", "rate", "drift", "slope_drift")  # attributes of a block that depend on theta
HARMONIC = list(Block.__annotations__).index("harmonic")
PLACES = VARIANCE, RATE, DRIFT, SLOPE_DRIFT = [list(Block.__annotations__).index(name) for name in PARAMETERS]


@dataclass(frozen=True)
class Structure:
    """The components of the process. Their parameters `theta` are arguments of the methods.

    Attributes
    ----------
    seasons : season lengths in rows
    drift : if True, the slope is constant with a tight prior (close to the Theta method); else the slope drifts
    variance : the initial variance of level and seasons, in units of the noise
    inputs : the number of columns with linear effects
    """

    seasons: tuple[float, ...]
    drift: bool
    variance: float
    inputs: int = 0
    robust: float = field(default=ROBUST)

    @property
    def names(self) -> tuple[str, ...]:
        slopes = () if self.drift else ("b", "phi")
        return ("l", "u", "rho", *slopes, *("s" for _ in self.seasons))

    @cached_property
    def prior(self) -> Array:
        """Prior means and standard deviations of the parameters, (2, p)."""
        return np.array([PRIORS[name] for name in self.names]).T

    @cached_property
    def _template(self) -> tuple[list[Block], Array, list[NDArray[np.int64]]]:
        """The blocks with default parameters, the same blocks as a table, and the rows of each season in this table."""
        v = self.variance
        blocks = [Block(TREND, v + 10.0, slope=DRIFT_SLOPE if self.drift else SLOPE), Block(MATERN12, 1.0)]
        places = []
        for i, s in enumerate(self.seasons):
            harmonics = max(1, min(int(np.ceil(s / 2)) - 1, MOST_HARMONICS[i > 0]))
            waves = [(j, sine) for j in range(1, harmonics + 1) for sine in (0, 1)]
            places.append(np.arange(len(blocks), len(blocks) + len(waves), dtype=np.int64))
            blocks += [Block(WALK, (v + 1.0) / j**2, period=s, harmonic=j, sine=sine) for j, sine in waves]
        blocks += [Block(WALK, v + 1.0, column=column) for column in range(1, self.inputs + 1)]
        return blocks, np.array(blocks, dtype=np.float64), places

    @property
    def states(self) -> int:
        return len(self._template[0]) + 1

    def table(self, theta: Array) -> Array:
        """Return the table of blocks with the parameters theta, (blocks, fields)."""
        _, fixed, places = self._template
        table, values = fixed.copy(), dict(zip(self.names, theta, strict=False))
        table[0, DRIFT] = np.exp(values["l"])
        table[1, VARIANCE] = np.exp(values["u"])
        table[1, RATE] = np.log1p(np.exp(-values["rho"]))  # -log rho
        if not self.drift:
            damping = np.log1p(np.exp(-values["phi"]))
            table[0, RATE] = damping
            table[0, SLOPE_DRIFT] = np.exp(values["b"]) * 2 * damping / -np.expm1(-2 * damping)
        for place, log_q in zip(places, theta[len(theta) - len(places) :], strict=True):
            table[place, DRIFT] = np.exp(log_q) / table[place, HARMONIC] ** 2
        return table

    def chained(self, table: Array, by_block: Array) -> Array:
        """Convert derivatives by the PARAMETERS of each block, (blocks, 4), to derivatives by theta."""
        by_log = by_block * table[:, PLACES]
        by_rate = -by_block[:2, 1] * -np.expm1(-table[:2, RATE])  # derivative by the logit
        values = {"l": by_log[0, 2], "u": by_log[1, 0], "rho": by_rate[1], "b": by_log[0, 3]}
        if not self.drift:
            damping = table[0, RATE]
            per_damping = 1 / damping - 2 / np.expm1(2 * damping)  # derivative of log slope drift by the damping
            values["phi"] = by_rate[0] + by_log[0, 3] * per_damping * np.expm1(-damping)
        seasons = [by_log[place, 2].sum() for place in self._template[2]]
        return np.array([*(values[name] for name in self.names if name != "s"), *seasons])

    def learner(self, theta: Array) -> TemporalLearner:
        """Return the Python learner, in units of the noise."""
        numbers = self.table(theta)[:, PLACES].tolist()
        blocks = [
            block.replaced(**dict(zip(PARAMETERS, own, strict=True)))
            for block, own in zip(self._template[0], numbers, strict=True)
        ]
        return TemporalLearner(1 + self.inputs, 1, tuple(blocks), 1.0, 0, self.robust)

    def likelihood(self, theta: Array, X: Array, z: Array, first: int) -> tuple[float, float]:
        """Return the negative log likelihood of the rows from `first` on, up to a constant, and sigma^2."""
        predictions, _ = self.learner(theta).run(X, z[:, None])
        s = predictions.std[first:, 0]
        e = np.abs(z[first:] - predictions.mean[first:, 0]) / s
        rows = len(e) + 2.0
        sigma2 = (np.where(e > self.robust, self.robust * (2 * e - self.robust), e * e).sum() + 2.0) / rows
        return float(np.log(s).sum() + 0.5 * rows * np.log(sigma2)), float(sigma2)

    def objective(self, u: Array, X: Array, z: Array, first: int) -> tuple[float, Array, float]:
        """Return the negative log posterior, its gradient, and sigma^2. u = (theta - prior mean) / prior deviation."""
        mean, deviation = self.prior
        theta = mean + deviation * u
        if available() and self.states <= MOST_STATES:
            table = self.table(theta)
            value, sigma2, by_block = native().temporal_likelihood(table, X, z, first, self.robust)
            gradient = self.chained(table, by_block)
        else:
            value, sigma2 = self.likelihood(theta, X, z, first)
            ahead = [self.likelihood(theta + step, X, z, first)[0] for step in STEP * np.eye(len(theta))]
            gradient = (np.array(ahead) - value) / STEP
        return value + 0.5 * (u @ u), gradient * deviation + u, sigma2

    def fit(self, X: Array, z: Array, evaluations: int, start: Array | None = None) -> tuple[Array, float]:
        """Return the theta with the largest posterior density, and sigma^2. X: the time, from 0, and the inputs.

        The search starts at the prior mean or at `start`, and evaluates the objective at most `evaluations` times.
        """
        mean, deviation = self.prior
        first = min(self.states, len(z) // 3)  # earlier rows only start the filter
        u = np.zeros(len(mean)) if start is None else (start - mean) / deviation
        with np.errstate(all="ignore"):
            u, sigma2 = _climb(lambda u: self.objective(u, X, z, first), u, evaluations)
        return mean + deviation * u, sigma2


def _climb(objective: Callable[[Array], tuple[float, Array, float]], u: Array, evaluations: int) -> tuple[Array, float]:
    """Minimize the objective by BFGS from u on. Return the best point, and sigma^2 at this point.

    A step that does not lower the objective is repeated with a third of its length.
    """
    value, g, found = objective(u)
    H = np.eye(len(u)) / max(1.0, float(np.sqrt(g @ g)))  # estimate of the inverse Hessian
    step = -H @ g
    for _ in range(evaluations - 1):
        place = np.clip(u + step, -FARTHEST, FARTHEST)
        s = place - u
        new_value, new_g, new_found = objective(place)
        if not (new_value < value + 1e-4 * (g @ s) and np.isfinite(new_g).all()):
            step = step / 3
            continue
        change, y = value - new_value, new_g - g
        u, value, g, found = place, new_value, new_g, new_found
        if change < ENOUGH * max(1.0, abs(value)):
            break
        if (sy := s @ y) > 1e-12 * (y @ y):
            A = np.eye(len(u)) - np.outer(s, y) / sy
            H = A @ H @ A.T + np.outer(s, s) / sy
        step = -H @ g
    return u, found
