"""Base classes of the models that wrap another model."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from onlinegp.checks import Array
from onlinegp.engine.compiled import outer
from onlinegp.kernels.importance import KernelInUse
from onlinegp.learner import Learner, Sizes, skip
from onlinegp.models.base import OnlineRegressor
from onlinegp.models.facts import Facts
from onlinegp.predictions import Components, Gaussian, Predictions
from onlinegp.state import Fields, WithFields, learner

MAX_BLOCK_ROWS = 10_000  # limits the memory of a call
INSIDE: Fields = {"model": learner(attribute="inner")}  # the field of the inner learner


class OuterRegressor(OnlineRegressor):
    """Base class of the models that wrap one other model.

    Parameters
    ----------
    model : OnlineRegressor
        The inner model. A copy with the same parameters learns; this object does not change.
    """

    model: OnlineRegressor

    def check(self) -> None:
        self._inside().check()

    @property
    def inner_facts(self) -> Facts:
        return self._inside().inner_facts

    @property
    def features_optional(self) -> bool:
        return self._inside().features_optional

    @property
    def delay(self) -> int:
        return self._inside().delay

    def kernels_in_use(self, learner: Learner) -> list[KernelInUse]:
        inner = getattr(outer(learner), "inner", None)
        return [] if inner is None or self.model is None else self.model.kernels_in_use(inner)

    def _inside(self) -> OnlineRegressor:
        """Return the inner model. Raise an error if it is not a model."""
        if isinstance(self.model, OnlineRegressor):
            return self.model
        remedy = f"Make one: {self.model.__name__}()." if isinstance(self.model, type) else "Try onlinegp.KRLST()."
        raise TypeError(f"model must be an estimator of onlinegp, got {self.model!r}. {remedy}")


class OuterLearner(WithFields, ABC):
    """A learner that contains another learner, `inner`."""

    inner: Learner
    features: int
    outputs: int

    def holds(self) -> list[Learner]:
        """Return the inner learners."""
        return [self.inner]

    def hold(self, change: Callable[[Learner], Learner]) -> None:
        """Replace the inner learner by `change(inner)`."""
        self.inner = change(self.inner)

    @property
    def size(self) -> int:
        return self.inner.size

    @property
    def until_tuning(self) -> float:
        return getattr(self.inner, "until_tuning", np.inf)

    @property
    def together(self) -> int:
        return getattr(self.inner, "together", 0)


class SpreadLearner(OuterLearner):
    """Run the inner learner unchanged, and correct its predictions from past errors."""

    def __init__(self, inner: Learner) -> None:
        self.inner, self.features, self.outputs = inner, inner.features, inner.outputs

    @property
    def seen(self) -> int:
        return self.inner.seen

    @abstractmethod
    def update(self, predicted: Predictions, Y: Array, before: int) -> Predictions:
        """Correct each prediction from the errors of earlier rows, and learn the errors of these rows."""

    @abstractmethod
    def current(self, predicted: Predictions) -> Predictions:
        """Correct predictions from the errors so far."""

    def learn(self, X: Array, Y: Array) -> None:
        for i in range(0, len(X), MAX_BLOCK_ROWS):
            self.run(X[i : i + MAX_BLOCK_ROWS], Y[i : i + MAX_BLOCK_ROWS])

    def run(self, X: Array, Y: Array) -> tuple[Predictions, Sizes]:
        before = self.seen
        predicted, size = self.inner.run(X, Y)
        return self.update(predicted, Y, before), size

    def predict(self, X: Array) -> Predictions:
        return self.current(self.inner.predict(X))

    def skip(self, X: Array, Y: Array | None = None) -> Predictions:
        return self.current(skip(self.inner, X, Y))


def stretched(predicted: Predictions, factor: Array) -> Predictions:
    """Stretch distributions by `factor` around their mean. An earlier stretch of the intervals alone is dropped."""
    if type(predicted) is Gaussian:
        return Gaussian(predicted.mean, factor * predicted.std)
    if isinstance(predicted, Components):
        predicted = replace(predicted, stretch=1.0)
    return predicted.affine(predicted.mean - factor * predicted.mean, factor)


def innermost(model: OnlineRegressor) -> OnlineRegressor:
    """Return the innermost model, or the model itself if it wraps no other model."""
    while isinstance(model, OuterRegressor) and model.model is not None:
        model = model.model
    return model


def working(model: OnlineRegressor) -> Learner:
    """Return the innermost learner of a fitted model."""
    return innermost_learner(model.learner)


def innermost_learner(learner: Learner) -> Learner:
    """Return the innermost learner, or the learner itself if it contains no other learner."""
    learner = outer(learner)
    while isinstance(learner, OuterLearner) and learner.inner is not None:
        learner = outer(learner.inner)
    return learner
