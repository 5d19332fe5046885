"""Build the model for the options of a command, and print messages about it."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from onlinegp import kernels
from onlinegp.auto import Tuned
from onlinegp.auto.learner import FEWEST, MOST, AutoLearner
from onlinegp.batch.maximum_posterior import Progress
from onlinegp.batch.parameter_search import BUDGET
from onlinegp.batch.tuning import NOTHING
from onlinegp.checks import Array
from onlinegp.kernels import Kernel
from onlinegp.models.alarms.detector import Detector
from onlinegp.models.base import OnlineRegressor
from onlinegp.models.combined import IteratedForecaster, Lagged, Robust, Scaled
from onlinegp.models.combined.base import innermost, working
from onlinegp.models.combined.iterated_forecaster import WithLags
from onlinegp.streams.errors import BadData
from onlinegp.streams.reading.source import Source
from onlinegp.streams.running.algorithms import algorithm, named
from onlinegp.streams.running.first_rows import FirstRows

NOTHING_EXPLAINED = (
    "warning: the tuned model predicts the tuning rows no better than their mean: the inputs contain little about the "
    "target. Look for other inputs, add --lags, or tune on more rows."
)
MOST_SHOWN = 6  # number of length scales to print for each member of a mixture
MAX_CHANGES = 10  # number of changes to print one by one
FARTHEST = 10_000  # limit of lags and horizon, because a block of inputs must fit in memory


@dataclass
class Requested:
    """The requested model: an algorithm, its fixed parameters, and its wrappers.

    Attributes
    ----------
    tune : number of rows to tune on; None for the default of the model, 0 for no tuning and no scaling
    which : the lags: "auto", or a list that ends with `lags`
    steps : number of steps of the forecasts that are checked during the run, after row `after`
    watch : the parameters of a detector around the model, if any
    """

    name: str = "auto"
    given: dict[str, Any] = field(default_factory=dict)
    tune: int | None = None
    robust: float | None = None
    lags: int = 0
    horizon: int = 1
    which: str | list[int] | None = None
    steps: int = 0
    after: int = 0
    watch: dict[str, Any] | None = None

    def build(self) -> OnlineRegressor:
        """Return the unfitted model."""
        model = self._around(self.alone())
        model.check()  # raises an error for an invalid parameter before files are opened
        return model

    def alone(self) -> OnlineRegressor:
        """Return the unfitted model without lags and detector."""
        estimator, bound = algorithm(self.name).estimator, self.robust
        if self.tune == 0:
            model = estimator(**self.given)
            return model if bound is None else Robust(model, bound=bound)
        rows = {} if self.tune is None else {"rows": min(max(self.tune, FEWEST), MOST)}
        if estimator.tunes_itself:
            model = estimator(**rows | self.given)
            return model if bound is None else Scaled(Robust(model, bound=bound))
        budget = {"budget": BUDGET} if "budget" in estimator.parameter_names() else {}
        model = estimator(**budget | self.given)
        return Tuned(model if bound is None else Robust(model, bound=bound), fixed=tuple(self.given), **rows)

    def tuned(
        self, X: Array, y: Array, progress: Progress = lambda share: None, *, learn_scale: bool = False
    ) -> OnlineRegressor:
        """Return an unfitted model with parameters tuned on rows X (with lags) and y.

        With `learn_scale`, y is standardized, and the model learns the center and scale of its targets by itself.
        """
        tuned = self.alone()
        assert isinstance(tuned, Tuned)
        model = tuned.tuned_on(X, y, progress)
        return self._around(model.set_params(y_center=None, y_scale=None) if learn_scale else model)

    def _around(self, model: OnlineRegressor) -> OnlineRegressor:
        lags = self.lags if self.which is None else self.which
        if self.steps and self.lags:
            return IteratedForecaster(model, lags=lags, horizon=self.horizon, steps=self.steps, after=self.after)
        if self.lags or self.horizon > 1:
            model = Lagged(model, lags=lags, horizon=self.horizon)
        return model if self.watch is None else Detector(model, **self.watch)


def past_of(model: OnlineRegressor) -> dict[str, int]:
    """Return the lags and the horizon of a model."""
    model = model.model if isinstance(model, Detector) and model.model is not None else model
    if not isinstance(model, WithLags):
        return {"lags": 0, "horizon": 1}
    return {"lags": model.longest_lag, "horizon": model.horizon}


def first_rows(source: Source, first: FirstRows) -> FirstRows:
    """Read the first rows of a source."""
    for block in source:
        first.keep(block.X, block.y)
        if first.done:
            break
        if block.error is not None:
            raise BadData(block.error.message(source.path))
    if not first.varies:
        raise BadData(f"the target is the same in every row of {source.path}, or missing: there is nothing to tune on.")
    return first


def inside(model: OnlineRegressor) -> OnlineRegressor:
    """Return the innermost model, without wrappers and `Tuned`."""
    model = innermost(model)
    return inside(model.model) if isinstance(model, Tuned) else model


class TuningMessages:
    """Print the choices of a model that tunes itself, after its last tuning or at the end of the stream."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self.say, self._told = say, False

    def __call__(self, model: OnlineRegressor | None, *, seconds: float, end: bool = False) -> None:
        """Print new choices of the model. `seconds` is the time that the stream has waited for tunings."""
        self._say_chosen(model, seconds, end)
        if end:
            self._say_changes(model)

    def _say_chosen(self, model: OnlineRegressor | None, seconds: float, end: bool) -> None:
        if self._told or model is None or not model.__sklearn_is_fitted__():
            return
        auto = working(model)
        if not isinstance(auto, AutoLearner) or auto.tuned_rows == 0 or not (end or auto.until_tuning == float("inf")):
            return
        self._told = True
        waited = f", for which the stream waited {seconds:.1f} s" if seconds >= 0.1 else ""
        told, members = f"model: {named(type(inside(model)))}, tuned on {auto.tuned_rows} rows{waited}", auto.members()
        if len(members) == 1:
            self.say(told)
            for line in described(members[0].model):
                self.say(f"       {line}")
        else:
            self.say(f"{told}. Members and their current weights:")
            for one in members:
                self.say(f"       {one.name} {one.weight:.2f}: {_shortened('; '.join(described(one.model)))}")
        if auto.unexplained > NOTHING:
            self.say(NOTHING_EXPLAINED)

    def _say_changes(self, model: OnlineRegressor | None) -> None:
        found = changes_of(model)
        for row, kind in found[:MAX_CHANGES]:
            what = {"relation": "relation of inputs and target", "target": "level or scale of the target"}.get(
                kind, kind
            )
            self.say(f"the {what} changed at row {row:,}")
        if len(found) > MAX_CHANGES:
            self.say(f"and {len(found) - MAX_CHANGES} later changes")


def changes_of(model: OnlineRegressor | None) -> list[tuple[int, str]]:
    """Return the changes that an `Auto` detected: the number of the row, from 1, and what changed."""
    if model is None or not model.__sklearn_is_fitted__() or not isinstance(auto := working(model), AutoLearner):
        return []
    waited = model.n_samples_seen_ - auto.seen  # rows that were needed to collect lags
    return [(waited + row + 1, kind) for row, kind in auto.changes()]


def described(model: OnlineRegressor) -> list[str]:
    """Return the parameters of a model, one per line."""
    params = {name: value for name, value in model.get_params(deep=False).items() if name != "engine"}
    return [f"{name} = {shown(value)}" for name, value in params.items()]


def _shortened(text: str) -> str:
    """Return a text in which long lists of numbers are cut: eight models of 24 inputs would fill a screen."""
    lists = re.findall(r"\[([^]]*)\]", text)
    for numbers in (one for one in lists if one.count(",") >= MOST_SHOWN):
        first = ", ".join(numbers.split(", ")[:3])
        text = text.replace(f"[{numbers}]", f"[{first}, ... {numbers.count(',') + 1} numbers]")
    return text


def shown(value: Any) -> str:
    """Return a parameter in the notation of the command line, with rounded numbers."""
    if isinstance(value, Kernel):
        return _kernel(value)
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _kernel(kernel: Kernel) -> str:
    if isinstance(kernel, kernels.Scaled):
        return f"{kernel.variance:.4g} * {_kernel(kernel.kernel)}"
    if isinstance(kernel, kernels.Sum | kernels.Product):
        return f"({_kernel(kernel.left)} {'+' if isinstance(kernel, kernels.Sum) else '*'} {_kernel(kernel.right)})"
    numbers = [_numbers(getattr(kernel, name)) for name in kernel.__dataclass_fields__]
    return f"{type(kernel).__name__.lower()}({', '.join(numbers)})"


def _numbers(value: Any) -> str:
    if isinstance(value, (tuple, list)):
        return "[" + ", ".join(f"{number:.4g}" for number in value) + "]"
    return f"{value:.4g}" if isinstance(value, float) else repr(value)
