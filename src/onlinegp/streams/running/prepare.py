"""From the tuning rows to a predictor: scaling, hyperparameters, model, and what to tell about them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from onlinegp.batch.choice import BUDGET, CANDIDATES, Trial, recommend
from onlinegp.batch.tuning import Hyperparameters, likely_kernels
from onlinegp.checks import Array
from onlinegp.kernels import Kernel
from onlinegp.metrics import log_density
from onlinegp.models.base import OnlineRegressor
from onlinegp.streams.errors import BadData
from onlinegp.streams.reading.source import Source
from onlinegp.streams.running.predictor import Embedding, Predictor, Scaling, WarmUp, sound_rows
from onlinegp.streams.running.registry import algorithm, named

BLOCK = 1000  # rows between two chances to be interrupted


@dataclass
class Preparation:
    """What is asked of the model: an algorithm or None for the best one, and parameters that are not to be tuned."""

    name: str | None = None
    given: dict[str, Any] = field(default_factory=dict)
    robust: float | None = None
    say: Callable[[str], None] = lambda text: None

    @property
    def budget(self) -> int:
        return self.given.get("budget", BUDGET)

    def tuned(self, X: Array, y: Array, warm: WarmUp) -> Predictor:
        """Return a predictor that has learned the tuning rows."""
        scaling = Scaling.of(X, y)
        model = self.choose(scaling.x(X), scaling.y(y), warm.embedding.horizon).build()
        predictor = Predictor(model, scaling, warm.embedding, robust=self.robust)
        predictor.teach(X, y)
        return predictor

    def choose(self, Z: Array, t: Array, horizon: int = 1) -> Trial:
        """Return the model, and say why: Z and t are standardized."""
        candidates = CANDIDATES if self.name is None else (algorithm(self.name).estimator,)

        def density(model: OnlineRegressor) -> float:
            return tuning_density(model, Z, t, horizon=horizon, robust=self.robust)

        found = hyperparameters(Z, t, self.given)
        trials = recommend(found, density, candidates=candidates, budget=self.budget, given=self.given)
        if trials[0].log_density == -float("inf"):
            raise ValueError(
                "no model can follow the tuning rows. Look for outliers, or use --robust or other parameters."
            )
        self._explain(trials, len(t))
        return trials[0]

    def untuned(self, width: int, embedding: Embedding) -> Predictor:
        """Return a predictor with the parameters as given, in the units of the data."""
        model = algorithm(self.name or "krlst").estimator(**self.given)
        model.check()  # refuses a wrong parameter before any file is opened
        return Predictor(model, Scaling.none(width), embedding, robust=self.robust)

    def _explain(self, trials: list[Trial], rows: int) -> None:
        best = trials[0]
        why = "as asked" if self.name else "it predicted the tuning rows best"
        self.say(f"model: {named(best.estimator)}, {why} (log density {best.log_density:.3f} per row of {rows})")
        if len(trials) > 1:
            self.say("       " + ", ".join(f"{named(one.estimator)} {one.log_density:.3f}" for one in trials[1:]))
        for text in described(best.build()):
            self.say(f"       {text}")


def first_rows(
    source: Source, rows: int, embedding: Embedding, *, say: Callable[[str], None]
) -> tuple[Array, Array, Embedding]:
    """Return inputs and targets of the first rows of a source; of more if the target is constant in those."""
    warm = WarmUp(rows, embedding, say=say)
    for block in source:
        warm.advance(block.X, block.y)
        if warm.done:
            break
        if block.error is not None:
            raise BadData(block.error.message(source.path))
    if not warm.varied:
        raise BadData(f"{warm.constant()} in every row of {source.path}: there is nothing to tune on.")
    return *warm.data(), embedding


def hyperparameters(Z: Array, t: Array, given: dict[str, Any]) -> list[Hyperparameters]:
    """Return the kernels and noises to try: the likely ones, or the one that was given."""
    kernel, noise = given.get("kernel"), given.get("noise")
    if kernel is None:
        return likely_kernels(Z, t)
    return [Hyperparameters(kernel, 1e-2 if noise is None else noise, 1.0, np.nan)]


def tuning_density(model: OnlineRegressor, Z: Array, t: Array, *, horizon: int, robust: float | None) -> float:
    """Return the mean log density of the second half of the rows, each predicted before it was learned.

    With a longer horizon targets are learned later, and with `robust` bounded, as they will be along the stream.
    """
    predictor = Predictor(model, Scaling.none(Z.shape[1]), Embedding(horizon=horizon), robust=robust)
    half = slice(len(t) // 2, None)
    with np.errstate(all="ignore"):
        try:
            parts = [predictor.step(Z[i : i + BLOCK], t[i : i + BLOCK])[:2] for i in range(0, len(t), BLOCK)]
            mean, std = np.hstack(parts)
            if sound_rows(mean, std, predictor.largest) < len(t):
                return -np.inf
            density = log_density(t[half], mean[half], std[half])
        except (ValueError, FloatingPointError):  # it broke down: not a model for these rows
            return -np.inf
    return float(density.mean()) if np.isfinite(density).all() else -np.inf


def described(model: OnlineRegressor) -> list[str]:
    """Return the parameters of a model, one a line, kernels in words."""
    params = {name: value for name, value in model.get_params(deep=False).items() if name != "engine"}
    return [f"{name} = {shown(value)}" for name, value in params.items()]


def shown(value: Any) -> str:
    """Return a parameter as it may be typed again, numbers to four digits."""
    if isinstance(value, Kernel):
        return _kernel(value)
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _kernel(kernel: Kernel) -> str:
    from onlinegp.kernels import Product, Scaled, Sum

    if isinstance(kernel, Scaled):
        return f"{kernel.variance:.4g} * {_kernel(kernel.kernel)}"
    if isinstance(kernel, (Sum, Product)):
        return f"({_kernel(kernel.left)} {'+' if isinstance(kernel, Sum) else '*'} {_kernel(kernel.right)})"
    numbers = [_numbers(getattr(kernel, name)) for name in kernel.__dataclass_fields__]
    return f"{type(kernel).__name__.lower()}({', '.join(numbers)})"


def _numbers(value: Any) -> str:
    if isinstance(value, (tuple, list)):
        return "[" + ", ".join(f"{number:.4g}" for number in value) + "]"
    return f"{value:.4g}" if isinstance(value, float) else repr(value)
