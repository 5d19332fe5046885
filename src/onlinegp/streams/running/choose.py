"""Hyperparameters and a model from the first rows of a stream, by what would have predicted those rows best."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from onlinegp.checks import Array
from onlinegp.kernels import RBF, Kernel, Matern52
from onlinegp.metrics import log_density
from onlinegp.models.base import OnlineRegressor
from onlinegp.streams.running.predictor import Embedding, Predictor, Scaling
from onlinegp.streams.running.registry import algorithm

FAMILIES: tuple[Callable[..., Kernel], ...] = (RBF, Matern52)
ROWS = 500  # for a likelihood: n^3 a step of the search
NOISE_FLOOR = 1e-7  # a share of k(x, x): on noise-free data the likelihood asks for ever less
LARGEST_AMPLITUDE = 10.0  # of f, in variances of the target
BUDGET = 300
FORGETTING = (0.999999, 0.9999, 0.999, 0.99)  # the first: a memory of a million rows
CANDIDATES = ("krlst", "swkrls", "qklms", "knlms")  # bounded cost on any stream, one of each kind


@dataclass(frozen=True)
class Tuned:
    """A kernel and a noise for standardized data, and how likely they make it, per row."""

    kernel: Kernel
    noise: float
    log_likelihood: float = np.nan


@dataclass(frozen=True)
class Trial:
    """A model that was tried on the tuning rows: its parameters, and the mean log density of the second half."""

    name: str
    params: dict[str, Any]
    log_density: float

    def build(self) -> OnlineRegressor:
        return algorithm(self.name).estimator(**self.params)


def hyperparameters(Z: Array, t: Array, *, rows: int = ROWS) -> list[Tuned]:
    """Return the most likely kernel of each family with one length scale a column, and its noise; best first.

    Z (n, d) and t (n,) are standardized. More than `rows` rows are thinned evenly.
    """
    pick = np.unique(np.linspace(0, len(Z) - 1, min(rows, len(Z))).astype(int))
    Z, t = Z[pick], t[pick]
    start = tuple([2.0 * float(np.sqrt(Z.shape[1]))] * Z.shape[1])
    found = []
    for family in FAMILIES:
        try:
            found.append(_most_likely(family(start), Z, t))
        except np.linalg.LinAlgError:
            continue
    if not found:
        found = [Tuned(RBF(start), 0.1)]
    return sorted(found, key=lambda tuned: -tuned.log_likelihood)


def _most_likely(shape: Kernel, Z: Array, t: Array) -> Tuned:
    """Return the most likely amplitude, length scales and noise, the amplitude at most LARGEST_AMPLITUDE.

    On data without noise the likelihood has no end: ever smoother, ever larger. The noise floor goes with it.
    """
    from onlinegp.batch.gp import log_marginal_likelihood, maximum_likelihood

    best = maximum_likelihood(1.0 * shape, 1e-2, Z, t, restarts=0)
    kernel, noise = best.kernel, best.noise
    if kernel.diag(Z[:1])[0] > (v := LARGEST_AMPLITUDE):
        best = maximum_likelihood(shape, 1e-2 / v, Z, t / np.sqrt(v), restarts=0)
        kernel, noise = v * best.kernel, v * best.noise
    noise = max(noise, NOISE_FLOOR * float(kernel.diag(Z[:1])[0]))
    return Tuned(kernel, noise, log_marginal_likelihood(kernel, noise, Z, t) / len(t))


def recommend(
    Z: Array,
    t: Array,
    tuned: list[Tuned],
    *,
    names: Iterable[str] = CANDIDATES,
    budget: int = BUDGET,
    given: dict[str, Any] | None = None,
    horizon: int = 1,
    robust: float | None = None,
) -> list[Trial]:
    """Return the models of these names, each at its best, ordered by how well they predicted the tuning rows.

    A model that tracks is tried with each kernel, with and without a learned power, and with some forgetting factors;
    what is `given` is not varied. With a longer `horizon` targets are learned later, and with `robust` bounded, as they
    will be along the stream.
    """

    def density(model: OnlineRegressor) -> float:
        embedding = Embedding(horizon=horizon)
        return _density(Predictor(model, Scaling.none(Z.shape[1]), embedding, robust=robust), Z, t)

    trials = [_best(name, tuned, budget, given or {}, density) for name in names]
    return sorted(trials, key=lambda trial: -trial.log_density)


def _best(
    name: str, tuned: list[Tuned], budget: int, given: dict[str, Any], density: Callable[[OnlineRegressor], float]
) -> Trial:
    chosen = algorithm(name)
    known = set(chosen.parameters)

    def trial(hyper: Tuned, power: str, forgetting: float) -> Trial:
        suggested = chosen.suggested(hyper.kernel, hyper.noise, budget=budget, forgetting=forgetting, power=power)
        params = suggested | {key: value for key, value in given.items() if key in known}
        return Trial(name, params, density(chosen.estimator(**params)))

    powers = ("learned", "fixed") if "power" in known - set(given) else ("fixed",)
    trials = [trial(hyper, power, FORGETTING[0]) for hyper in tuned for power in powers]
    best = max(trials, key=lambda one: one.log_density)
    if "forgetting" in known - set(given):
        hyper, power = tuned[trials.index(best) // len(powers)], powers[trials.index(best) % len(powers)]
        for factor in FORGETTING[1:]:
            slower, best = best, max(best, trial(hyper, power, factor), key=lambda one: one.log_density)
            if best is slower:
                break
    return best


def _density(predictor: Predictor, Z: Array, t: Array) -> float:
    """Return the mean log density of the second half of the rows, each predicted before it was learned."""
    half = slice(len(t) // 2, None)
    with np.errstate(all="ignore"):
        try:
            mean, std, _ = predictor.step(Z, t)
            density = log_density(t[half], mean[half], std[half])
        except (ValueError, FloatingPointError):  # it broke down: not a model for these rows
            return -np.inf
    return float(density.mean()) if np.isfinite(density).all() else -np.inf
