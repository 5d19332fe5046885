"""Make a model from the tuning rows: scaling, hyperparameters, wrappers, and messages about them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from onlinegp.auto.learner import FEWEST, MOST, AutoLearner, watched
from onlinegp.batch.maximum_posterior import Progress
from onlinegp.batch.parameter_search import BUDGET, Outcome, Trial, best_of, hyperparameters, prequential
from onlinegp.batch.tuning import NOTHING, explains
from onlinegp.checks import Array
from onlinegp.kernels import Kernel
from onlinegp.models.alarms.detector import Detector
from onlinegp.models.base import OnlineRegressor
from onlinegp.models.combined import IteratedForecaster, Lagged, Robust
from onlinegp.models.combined.base import working
from onlinegp.models.combined.scaled import Scaling
from onlinegp.streams.errors import BadData, BrokeDown
from onlinegp.streams.reading.source import Source
from onlinegp.streams.running.algorithms import algorithm
from onlinegp.streams.running.predict_then_learn import advance
from onlinegp.streams.running.warm_up import WarmUp

NOTHING_EXPLAINED = (
    "warning: the tuned model predicts the tuning rows no better than their mean does: the inputs say little about the "
    "target. Look for other inputs, add --lags, or tune on more rows."
)
FARTHEST = 10_000  # the most lags and rows ahead: a block of inputs must fit in memory


@dataclass
class Preparation:
    """The requested model: an algorithm, and the parameters that are fixed instead of tuned."""

    name: str = "auto"
    given: dict[str, Any] = field(default_factory=dict)
    robust: float | None = None
    lags: int = 0
    horizon: int = 1
    steps: int = 0  # of the forecasts that are checked during the run
    watch: dict[str, Any] | None = None  # the parameters of a detector around the model, if any
    say: Callable[[str], None] = lambda text: None
    warn: Callable[[str], None] = lambda text: None
    progress: Progress = lambda share: None  # called with the finished share of the tuning

    @property
    def budget(self) -> int:
        return self.given.get("budget", BUDGET)

    def tuned(self, warm: WarmUp) -> OnlineRegressor:
        """Return the tuned model for a stream, which has learned the tuning rows."""
        if algorithm(self.name).estimator.tunes_itself:
            return self._tuned_by_itself(warm, len(warm.data()[1]))
        model = self.chosen(warm)
        teach(model, *warm.rows_for_learning())
        return model

    def chosen(self, warm: WarmUp) -> OnlineRegressor:
        """Return the tuned model for a stream, which has learned nothing."""
        X, y = warm.data()
        scaling = Scaling.of(X, y)
        trial = self.choose(*scaling(X, y))
        return self.wrapped(trial.build(), scaling)

    def _tuned_by_itself(self, warm: WarmUp, rows: int) -> OnlineRegressor:
        """Return a model that tunes itself on all of the rows."""
        rows = min(max(rows, FEWEST), MOST)
        auto = algorithm(self.name).estimator(**{"rows": rows, "earliest": rows, "tuning_delay": 0.0} | self.given)
        model = self.wrapped(auto, after=len(warm.rows_for_learning()[1]))
        with watched(self.progress):
            teach(model, *warm.rows_for_learning())
        self._tell(model, rows)
        return model

    def _tell(self, model: OnlineRegressor, rows: int) -> None:
        """Tell the user which members a self-tuning model has chosen, with their weights."""
        auto = working(model)
        assert isinstance(auto, AutoLearner)
        self.say(f"model: {self.name}, tuned on {rows} rows. Its members, with their weights now:")
        for name, weight, member in auto.members():
            self.say(f"       {name} {weight:.2f}: {'; '.join(described(member))}")
        if auto.unexplained > NOTHING:
            self.warn(NOTHING_EXPLAINED)

    def choose(self, Z: Array, t: Array) -> Trial:
        """Return the best model for the standardized rows Z and t, and tell the user about it."""

        def judge(model: OnlineRegressor) -> Outcome:
            return judged(model, Z, t, horizon=self.horizon, robust=self.robust)

        found = hyperparameters(Z, t, self.given, progress=self.progress)
        if not explains(found[0], Z, t):
            self.warn(NOTHING_EXPLAINED)
        best = best_of(algorithm(self.name).estimator, found, judge, budget=self.budget, given=self.given)
        if best.log_density == -float("inf"):
            raise ValueError(
                "no model can follow the tuning rows. Look for outliers, or use --robust or other parameters."
            )
        self.say(f"model: {self.name}, as asked (log density {best.log_density:.3f} per row of {len(t)})")
        for text in described(best.build()):
            self.say(f"       {text}")
        return best

    def untuned(self) -> OnlineRegressor:
        """Return a model with the parameters as given, in the units of the data."""
        model = self.wrapped(algorithm(self.name).estimator(**self.given))
        model.check()  # refuses a wrong parameter before any file is opened
        return model

    def untuned_on(self, warm: WarmUp) -> OnlineRegressor:
        """Return an untuned model that has learned the first rows, from which the columns were encoded."""
        model = self.untuned()
        teach(model, *warm.rows_for_learning())
        return model

    def wrapped(self, model: OnlineRegressor, scaling: Scaling | None = None, *, after: int = 0) -> OnlineRegressor:
        """Return the model with the requested lags, scaling and bounds."""
        model = wrapped(model, scaling, lags=self.lags, horizon=self.horizon, robust=self.robust)
        if self.steps and isinstance(model, Lagged):
            return IteratedForecaster(model.model, lags=self.lags, horizon=self.horizon, steps=self.steps, after=after)
        return model if self.watch is None else Detector(model, **self.watch)


def wrapped(
    model: OnlineRegressor,
    scaling: Scaling | None = None,
    *,
    lags: int = 0,
    horizon: int = 1,
    robust: float | None = None,
) -> OnlineRegressor:
    """Wrap a model for a stream, as the commands do."""
    if robust is not None:
        model = Robust(model, bound=robust)
    if scaling is not None:
        model = scaling.around(model)
    return Lagged(model, lags=lags, horizon=horizon) if lags or horizon > 1 else model


def past_of(model: OnlineRegressor) -> dict[str, int]:
    """Return lags and horizon of a wrapped model."""
    model = model.model if isinstance(model, Detector) and model.model is not None else model
    if not isinstance(model, Lagged):
        return {"lags": 0, "horizon": 1}
    return {"lags": model.longest_lag, "horizon": model.horizon}


def teach(model: OnlineRegressor, X: Array, y: Array) -> None:
    """Learn the tuning rows and drop the predictions."""
    try:
        advance(model, X, y)
        if isinstance(model, Detector):
            model.forget_events()  # which nobody saw
    except BrokeDown as error:
        where = f" on row {len(error.predicted) + 1} of those for tuning"
        raise BrokeDown(error.model, error.reason, where=where) from None


def first_rows(source: Source, warm: WarmUp) -> WarmUp:
    """Read the first rows of a source, and more of them while the target is constant."""
    for block in source:
        warm.advance(block.X, block.y)
        if warm.done:
            break
        if block.error is not None:
            raise BadData(block.error.message(source.path))
    if not warm.varied:
        raise BadData(f"{warm.constant()} in every row of {source.path}: there is nothing to tune on.")
    return warm


def judged(model: OnlineRegressor, Z: Array, t: Array, *, horizon: int, robust: float | None = None) -> Outcome:
    """Return how well the model predicts the second half of the rows, each before it is learned.

    Horizon and `robust` apply as in the run: targets are learned later, and bounded.
    """
    return prequential(wrapped(model, horizon=horizon, robust=robust), Z, t)


def described(model: OnlineRegressor) -> list[str]:
    """Return the parameters of a model, one per line."""
    params = {name: value for name, value in model.get_params(deep=False).items() if name != "engine"}
    return [f"{name} = {shown(value)}" for name, value in params.items()]


def shown(value: Any) -> str:
    """Return a parameter as it can be typed on the command line, with rounded numbers."""
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
