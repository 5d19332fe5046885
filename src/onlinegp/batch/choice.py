"""Which model would have predicted some rows best, each with parameters that go with the tuned hyperparameters."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from onlinegp.batch.tuning import Hyperparameters
from onlinegp.checks import Array
from onlinegp.models import KNLMS, KRLST, QKLMS, SWKRLS, OnlineRegressor

BUDGET = 300
FORGETTING = (0.999999, 0.9999, 0.999, 0.99)  # the first: a memory of a million rows
CANDIDATES: tuple[type[OnlineRegressor], ...] = (KRLST, SWKRLS, QKLMS, KNLMS)  # bounded cost, one of each kind

Density = Callable[[OnlineRegressor], float]


@dataclass(frozen=True)
class Trial:
    """A model that was tried: its class, its parameters, and the mean log density of the second half of the rows."""

    estimator: type[OnlineRegressor]
    params: dict[str, Any]
    log_density: float

    def build(self) -> OnlineRegressor:
        """Return the model, which has not learned anything."""
        return self.estimator(**self.params)


def recommend(
    found: list[Hyperparameters],
    density: Density,
    *,
    candidates: Iterable[type[OnlineRegressor]] = CANDIDATES,
    budget: int = BUDGET,
    given: dict[str, Any] | None = None,
) -> list[Trial]:
    """Return each candidate at its best, ordered by how well they predict.

    A model that tracks is tried with each kernel, with and without a learned power, and with some forgetting factors.

    Parameters
    ----------
    found : list of Hyperparameters
        What `likely_kernels` found; each is tried.
    density : callable
        Returns the mean log density that a model gives to rows that it predicts before it learns them, such as
        ``lambda model: prequential_density(model, X, y)``; minus infinity if it breaks down.
    candidates : classes of models
    budget : int
        For the models that have one.
    given : dict, optional
        Parameters that are not varied.
    """
    trials = [_best(candidate, found, budget, given or {}, density) for candidate in candidates]
    return sorted(trials, key=lambda trial: -trial.log_density)


def prequential_density(model: OnlineRegressor, X: Array, y: Array) -> float:
    """Return the mean log density of the second half of the rows, each predicted before it was learned."""
    half = slice(len(y) // 2, None)
    with np.errstate(all="ignore"):
        try:
            density = model.run(X, y).log_density[half]
        except (ValueError, FloatingPointError):  # it broke down: not a model for these rows
            return -np.inf
    return float(density.mean()) if np.isfinite(density).all() else -np.inf


def _best(
    candidate: type[OnlineRegressor],
    found: list[Hyperparameters],
    budget: int,
    given: dict[str, Any],
    density: Density,
) -> Trial:
    known = set(candidate.parameter_names())
    fixed = {name: value for name, value in given.items() if name in known}

    def trial(one: Hyperparameters, power: str, forgetting: float) -> Trial:
        suggested = candidate.suggested(one.kernel, one.noise, budget=budget, forgetting=forgetting, power=power)
        params = suggested | fixed
        return Trial(candidate, params, density(candidate(**params)))

    powers = ("learned", "fixed") if "power" in known - set(given) else ("fixed",)
    trials = [trial(one, power, FORGETTING[0]) for one in found for power in powers]
    best = max(trials, key=lambda one: one.log_density)
    if "forgetting" in known - set(given):
        one, power = found[trials.index(best) // len(powers)], powers[trials.index(best) % len(powers)]
        for factor in FORGETTING[1:]:
            slower, best = best, max(best, trial(one, power, factor), key=lambda each: each.log_density)
            if best is slower:
                break
    return best
