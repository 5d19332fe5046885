"""From the tuning rows to a predictor: scaling, hyperparameters, model, and what to tell about them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from onlinegp.checks import Array
from onlinegp.kernels import Kernel
from onlinegp.models.base import OnlineRegressor
from onlinegp.streams.running.choose import BUDGET, CANDIDATES, Trial, Tuned, hyperparameters, recommend
from onlinegp.streams.running.predictor import Embedding, Predictor, Scaling, WarmUp
from onlinegp.streams.running.registry import algorithm


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
        kernel, noise = self.given.get("kernel"), self.given.get("noise")
        tuned = hyperparameters(Z, t) if kernel is None else [Tuned(kernel, 1e-2 if noise is None else noise)]
        names = CANDIDATES if self.name is None else (self.name,)
        trials = recommend(
            Z,
            t,
            tuned,
            names=names,
            budget=self.budget,
            given=self.given,
            horizon=horizon,
            robust=self.robust,
        )
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
        self.say(f"model: {best.name}, {why} (log density {best.log_density:.3f} a row of {rows})")
        if len(trials) > 1:
            self.say("       " + ", ".join(f"{one.name} {one.log_density:.3f}" for one in trials[1:]))
        for text in described(best.build()):
            self.say(f"       {text}")


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
