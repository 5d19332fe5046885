"""`Tuned`: tune the kernel, noise and scales of any model on the first rows of the stream."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import cache
from inspect import signature
from typing import Any, ClassVar

from onlinegp.auto.composed import Chooser
from onlinegp.auto.members import Parts, Tuning, around, guarded, scaled, standardized
from onlinegp.auto.self_tuning import REMEDY, SelfTuning
from onlinegp.auto.targets import isolated
from onlinegp.batch.likely_kernels import Hyperparameters
from onlinegp.batch.maximum_posterior import Progress
from onlinegp.batch.parameter_search import best_of, hyperparameters, prequential, starts
from onlinegp.batch.search_space import search_of, suggested
from onlinegp.checks import Array, check_Xy
from onlinegp.kernels import RBF
from onlinegp.learner import Learner
from onlinegp.models.alarms.detector import Detector
from onlinegp.models.base import OnlineRegressor
from onlinegp.models.combined import Conformal, Mixture, Scaled
from onlinegp.models.combined.base import OuterRegressor
from onlinegp.models.combined.iterated_forecaster import WithLags
from onlinegp.models.combined.standardize import moments
from onlinegp.models.facts import Facts
from onlinegp.models.recipe import parameters
from onlinegp.processes import single_threaded_blas

# Finds likely kernels and noises. The search tries factors of forgetting for each model by itself
KERNELS = Parts(forgetting=1.0)


@parameters
class Tuned(SelfTuning):
    """Wrap a model and tune its kernel, noise and other parameters on the first rows, in the units of the data.

    The first rows are predicted by their mean and spread, then by linear regression, the last value and the nearest
    rows. After `earliest` rows the model is tuned in the background, in standard units. Then it learns all rows so far
    and replaces the first models. This is repeated each time the number of rows has doubled, up to `rows` rows. The
    variance is corrected by past errors (:class:`HeavyTailed`), and the 95% interval by past misses
    (:class:`Conformal`).

    Kernel and noise maximize the posterior density, with or without a linear part in the kernel. A search chooses other
    parameters, such as step, radius or forgetting, that predict the second half of the rows best; see
    `onlinegp.batch.search_space`. The members of a :class:`Mixture` are tuned one by one. A model without parameters to
    tune is scaled and corrected. Results depend only on the data.

    Use it if :class:`Auto` is too slow: after the tuning, a row takes the same time as with the inner model alone.

    Cost: as for the inner model; a tuning takes seconds for a thousand rows
    Memory: as for the inner model, plus the first rows
    Equation: kernel and noise of maximum posterior; other parameters by the density of the next rows
    Variance of y: as for the inner model, corrected by its errors, in the units of the data

    Parameters
    ----------
    model : OnlineRegressor
        The inner model. A copy with other parameters learns; this object does not change.
    rows : int
        The number of rows of the last tuning.
    earliest : int, optional
        The number of rows of the first tuning, at most `rows`; 80 if None.
    tuning_delay : float
        A tuning on n rows runs in the background. The result is used tuning_delay x n rows later, at most n. If it is
        not ready by then, the stream waits. With zero the stream waits for each tuning.
    fixed : sequence of str, optional
        The parameters of the inner model that are not tuned, in standard units. If None, parameters that differ from
        their defaults are not tuned. Parameters that are never searched, such as a budget, always stay.

    Attributes
    ----------
    chosen_ : OnlineRegressor or None
        The tuned model, unfitted; None before the first tuning.

    Examples
    --------
    >>> import numpy as np, onlinegp as ogp
    >>> X = np.random.default_rng(0).uniform(0, 100, (200, 2))
    >>> y = 70 + 5 * np.sin(X[:, 0] / 10) + 0.1 * X[:, 1]
    >>> model = ogp.Tuned(ogp.KRLST(budget=50), rows=100).fit(X, y)
    >>> bool(model.score(X, y) > 0.9)
    True
    """

    model: OnlineRegressor
    _: KW_ONLY
    rows: int = 1000
    earliest: int | None = None
    tuning_delay: float = 0.5
    fixed: Sequence[str] | None = None

    facts: ClassVar[Facts] = Facts(remedy=REMEDY)

    def check(self) -> None:
        self._chooser()
        self._timing()
        self._inside().check()

    @property
    def features_optional(self) -> bool:
        return self._inside().features_optional

    @property
    def delay(self) -> int:
        return self._inside().delay

    def start(self, features: int, outputs: int) -> Learner:
        inside = self._inside()
        if isinstance(inside, WithLags):  # past values are inputs like all others
            own = self.get_params(deep=False)
            return around(inside, Tuned(**own | {"model": inside.model})).start(features, outputs)
        return super().start(features, outputs)

    def tuned_on(self, X: Array, y: Array, progress: Progress = lambda share: None) -> OnlineRegressor:
        """Return an unfitted model tuned on all of these rows, with scales and corrected intervals.

        All models of a fleet can start from this model.
        """
        X, y = check_Xy(X, y)
        if not moments(Y := y.reshape(len(y), -1))[2].any():
            raise ValueError("y must vary, got the same value in all rows. Use more rows.")
        return self._chooser().compose(X, Y, progress)

    def _chooser(self) -> Chooser:
        inside = self._inside()
        while isinstance(inside, WithLags):
            inside = _checked(inside.model)
        known = {name for leaf in _leaves(inside) for name in leaf.parameter_names()}
        names = None if self.fixed is None else tuple([self.fixed] if isinstance(self.fixed, str) else self.fixed)
        if odd := sorted(set(names or ()) - known):
            raise ValueError(
                f"fixed must name parameters of the inner model: {', '.join(sorted(known))}, got {odd[0]!r}."
            )
        inside.check()
        return OneModel(inside.unfitted(), names)

    def _inside(self) -> OnlineRegressor:
        """Return the inner model. Raise an error if it cannot be tuned."""
        return _checked(self.model)


def _checked(model: Any) -> OnlineRegressor:
    if not isinstance(model, OnlineRegressor):
        remedy = f"Make one: {model.__name__}()." if isinstance(model, type) else "Try onlinegp.KRLST()."
        raise TypeError(f"model must be an estimator of onlinegp, got {model!r}. {remedy}")
    return model


def _leaves(model: OnlineRegressor) -> list[OnlineRegressor]:
    """Return the models to tune inside a model. Raise an error for models that cannot be tuned."""
    name = type(model).__name__
    if model.tunes_itself:
        raise TypeError(f"model must not tune itself, got {name}. Use {name} without Tuned.")
    if isinstance(model, Detector):
        raise TypeError("model must not contain a Detector. Use Detector(Tuned(...)).")
    if isinstance(model, WithLags):
        raise TypeError(f"{name} must be directly inside Tuned, around other wrappers: Tuned(Lagged(Robust(KRLST()))).")
    if isinstance(model, OuterRegressor):
        return _leaves(model.model)
    if isinstance(model, Mixture):
        return [leaf for _, member in model.named() for leaf in _leaves(member)]
    return [model]


@dataclass(frozen=True)
class OneModel:
    """Choose the parameters of one model; see `Chooser`."""

    model: OnlineRegressor
    fixed: tuple[str, ...] | None = None

    def compose(self, X: Array, Y: Array, progress: Progress = lambda share: None) -> Scaled:
        return self._composed(X, Y, KERNELS.likely, progress)

    def compose_quickly(self, X: Array, Y: Array, progress: Progress = lambda share: None) -> Scaled:
        return self._composed(X, Y, KERNELS.quickly_likely, progress)

    @single_threaded_blas
    def _composed(self, X: Array, Y: Array, tune: Tuning, progress: Progress) -> Scaled:
        off = isolated(X, Y)
        x, y, Z, T = standardized(X[~off], Y[~off])
        model = _Search(self.fixed, Z, T, lambda: list(tune(Z, T, progress).values())).of(self.model)
        return scaled(Conformal(guarded(model, Y, outliers=bool(off.any()))), x, y)

    def untuned(self, X: Array, Y: Array) -> Scaled:
        return Parts().untuned(X, Y)

    def retune(self, X: Array, Y: Array, progress: Progress = lambda share: None) -> None:
        return None


class _Search:
    """Tune models on rows in standard units. All models share the most likely kernels, which `likely` returns."""

    def __init__(
        self, fixed: tuple[str, ...] | None, Z: Array, T: Array, likely: Callable[[], list[Hyperparameters]]
    ) -> None:
        self.fixed, self.Z, self.T, self.likely = fixed, Z, T, cache(likely)

    def of(self, model: OnlineRegressor) -> OnlineRegressor:
        """Return a copy of a model with tuned parameters, also inside."""
        if isinstance(model, OuterRegressor):
            return around(model, self.of(model.model))
        if isinstance(model, Mixture):
            members = [(name, self.of(member)) for name, member in model.named()]
            return Mixture(**model.get_params(deep=False) | {"models": members})
        return self._leaf(model)

    def _leaf(self, model: OnlineRegressor) -> OnlineRegressor:
        cls, own = type(model), model.get_params(deep=False)
        given = {name: value for name, value in own.items() if name not in self._searched(model)}
        best = best_of(
            cls,
            starts(cls, self.Z, self.T, lambda: self._found(given)),
            lambda one: prequential(one, self.Z, self.T),
            budget=own.get("budget"),  # type: ignore[arg-type]
            given=given,
        )
        return best.build()

    def _searched(self, model: OnlineRegressor) -> set[str]:
        """Return the parameters to tune."""
        cls = type(model)
        search = search_of(cls)
        names = {*suggested(cls, RBF(), 1.0, None), *search.tried} - {"budget"}
        if self.fixed is not None:
            return names - set(self.fixed)
        defaults = {name: one.default for name, one in signature(cls).parameters.items()}
        return {name for name in names if _is_default(getattr(model, name, None), defaults.get(name))}

    def _found(self, given: dict[str, Any]) -> list[Hyperparameters]:
        """Return likely kernels and noises, or the given kernel with its likely noise."""
        return self.likely() if given.get("kernel") is None else hyperparameters(self.Z, self.T, given)


def _is_default(value: Any, default: Any) -> bool:
    return value is default or (type(value) is type(default) and bool(value == default))
