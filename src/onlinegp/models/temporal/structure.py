"""The Gaussian process of a series whose parameters are found by MAP: trend, Matern-1/2, drifting seasons, noise.

In units of the noise, with harmonics j of each season, per row:

    level l += b + N(0, q_l),   slope b = phi b + N(0, q_b),   u = rho u + N(0, q_u (1 - rho^2)),
    y = l + u + sum_j season_j + N(0, 1),   and each harmonic drifts by N(0, q_s / j^2)

Variances have normal priors in logarithms, phi and rho in logits. All are times sigma^2, which is integrated with two
rows' worth of a prior. An error of z > 2 deviations counts 4 z - 4 in place of z^2, and moves the state as 2 would.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onlinegp.checks import Array
from onlinegp.engine.compiled import run_once
from onlinegp.engine.plan import Plan
from onlinegp.models.temporal.state_space import MATERN12, TREND, WALK, Block
from onlinegp.models.temporal.temporal_gp import TemporalLearner
from onlinegp.native_module import available

# mean and deviation of the priors of log q_l, log q_u, logit rho, log q_b, logit phi, log q_s
PRIORS = {"l": (-1.5, 2.0), "u": (-1.0, 2.0), "rho": (0.5, 1.5), "b": (-7.0, 2.0), "phi": (2.5, 1.0), "s": (-6.0, 2.0)}
ROBUST = 2.0
MAX_FIT_ROWS = 1500
MOST_HARMONICS = (12, 6)  # of the first season, of a further one
SLOPE, DRIFT_SLOPE = 0.3, 0.01  # prior variances of the slope, per row


@dataclass(frozen=True)
class Structure:
    """The structure of the process, without its parameters.

    Attributes
    ----------
    seasons : periods in rows
    drift : whether the slope is constant with a tight prior, close to the Theta method, in place of one that wanders
    variance : of the series, in units of the noise: how unsure the start is
    inputs : columns that act linearly
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
        """Means and deviations of the parameters, (2, p)."""
        return np.array([PRIORS[name] for name in self.names]).T

    @cached_property
    def _template(self) -> tuple[dict[str, Array], list[NDArray[np.int64]]]:
        """The parameters of the blocks that stay as they are, and the places of the harmonics of each season."""
        v = self.variance
        blocks = [Block(TREND, v + 10.0, slope=DRIFT_SLOPE if self.drift else SLOPE), Block(MATERN12, 1.0)]
        places = []
        for i, s in enumerate(self.seasons):
            harmonics = max(1, min(int(np.ceil(s / 2)) - 1, MOST_HARMONICS[i > 0]))
            waves = [(j, sine) for j in range(1, harmonics + 1) for sine in (0, 1)]
            places.append(np.arange(len(blocks), len(blocks) + len(waves), dtype=np.int64))
            blocks += [Block(WALK, (v + 1.0) / j**2, period=s, harmonic=j, sine=sine) for j, sine in waves]
        blocks += [Block(WALK, v + 1.0, column=column) for column in range(1, self.inputs + 1)]
        return numbers_of(blocks), places

    @property
    def states(self) -> int:
        return len(self._template[0]["kind"]) + 1

    def numbers(self, theta: Array) -> dict[str, Array]:
        """Return the parameters of the blocks, by name."""
        fixed, places = self._template
        numbers = {**fixed, **{name: fixed[name].copy() for name in ("variance", "rate", "drift", "slope_drift")}}
        values = dict(zip(self.names, theta, strict=False))
        numbers["drift"][0] = np.exp(values["l"])
        numbers["variance"][1] = np.exp(values["u"])
        numbers["rate"][1] = np.log1p(np.exp(-values["rho"]))  # -log rho
        if not self.drift:
            damping = np.log1p(np.exp(-values["phi"]))
            numbers["rate"][0] = damping
            numbers["slope_drift"][0] = np.exp(values["b"]) * 2 * damping / -np.expm1(-2 * damping)
        for place, log_q in zip(places, theta[len(theta) - len(places) :], strict=True):
            numbers["drift"][place] = np.exp(log_q) / fixed["harmonic"][place] ** 2
        return numbers

    def learner(self, theta: Array) -> TemporalLearner:
        """Return the readable learner, in units of the noise."""
        numbers = self.numbers(theta)
        whole = ("kind", "harmonic", "sine", "power", "column")
        blocks = []
        for i in range(len(numbers["kind"])):
            own: dict[str, Any] = {name: values[i].item() for name, values in numbers.items()}
            blocks.append(Block(**own | {name: int(own[name]) for name in whole}))
        return TemporalLearner(1 + self.inputs, 1, tuple(blocks), 1.0, 0, self.robust)

    def one_step(self, theta: Array, X: Array, z: Array) -> tuple[Array, Array]:
        """Return means and standard deviations of rows, each predicted from those before it."""
        if not available():
            predictions, _ = self.learner(theta).run(X, z[:, None])
            return predictions.mean[:, 0], predictions.std[:, 0]
        numbers: dict[str, Any] = self.numbers(theta)
        P = np.diag(np.insert(numbers["variance"], 1, numbers["slope"][0]))
        start = {"seen": 0, "time": 0.0, "m": np.zeros((1, self.states)), "P": P[None]}
        plan = Plan("temporal", self, {**numbers, "noise": 1.0, "robust": self.robust, "time": 0.0})
        return run_once(plan, start, X, z[:, None])

    @property
    def features(self) -> int:
        return 1 + self.inputs

    @property
    def outputs(self) -> int:
        return 1

    def fit(self, X: Array, z: Array, evaluations: int) -> tuple[Array, float]:
        """Return the parameters of largest posterior density, and sigma^2; X holds times, from 0, and inputs."""
        from scipy.optimize import minimize

        mean, deviation = self.prior
        first = min(self.states, len(z) // 3)  # rows before it do not count

        def posterior(theta: Array) -> tuple[float, float]:
            with np.errstate(all="ignore"):
                m, s = self.one_step(theta, X, z)
                e = np.abs((z - m) / s)[first:]
                total = np.where(e > self.robust, self.robust * (2 * e - self.robust), e * e).sum() + 2.0
                rows = len(e) + 2.0
                likelihood = np.log(s[first:]).sum() + 0.5 * rows * np.log(total / rows)
            value = likelihood + 0.5 * (((theta - mean) / deviation) ** 2).sum()
            return (float(value) if np.isfinite(value) else 1e10), float(total / rows)

        bounds = list(zip(mean - 4 * deviation, mean + 4 * deviation, strict=True))
        options = {"maxfun": evaluations, "maxiter": 30, "ftol": 1e-5}
        found = minimize(lambda theta: posterior(theta)[0], mean, method="L-BFGS-B", bounds=bounds, options=options)
        return found.x, posterior(found.x)[1]


def numbers_of(blocks: list[Block]) -> dict[str, Array]:
    """Return the parameters of blocks, by name, as a plan holds them."""
    return {name: np.array([getattr(block, name) for block in blocks], float) for name in Block.__dataclass_fields__}
