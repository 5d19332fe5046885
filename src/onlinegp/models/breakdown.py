"""Detect models that have diverged."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from onlinegp.checks import Array
from onlinegp.learner import Learner
from onlinegp.models.facts import Facts
from onlinegp.predictions import Predictions
from onlinegp.trace import Trace

ABSURD_RATIO = 1e3  # a mean above this multiple of the largest |y| is absurd
SURE = 1e5  # a model has diverged if the mean is absurd and the error exceeds this number of standard deviations
LOST = 1e9  # a model with a standard deviation from errors has diverged if the mean exceeds this multiple of |y|
EVERY = 64  # rows between two checks while learning without predictions


class Model(Protocol):
    """The attributes of a model that the checks use; see `OnlineRegressor`."""

    @property
    def inner_facts(self) -> Facts: ...


class BreakdownError(ValueError):
    """Raised if a model has diverged: a prediction is not finite, or absurd with a small standard deviation.

    Attributes
    ----------
    reason : what is wrong with the prediction
    row : the row where this was detected, counted from the start of the stream; None outside of learning
    trace : the predictions of the rows before, if `run` was called
    """

    def __init__(self, message: str, row: int | None = None, reason: str = "") -> None:
        super().__init__(message)
        self.row, self.reason = row, reason
        self.trace: Trace | None = None


class Health:
    """Checks the predictions of a model from the start of its stream.

    Attributes
    ----------
    largest : the largest |y| learned so far, up to a factor of two if samples were learned one by one
    broken : the error that was raised when the model diverged; such a model cannot be saved
    """

    def __init__(self) -> None:
        self.largest = 0.0
        self.broken: BreakdownError | None = None
        self._last: tuple[Array, Array, int] | None = None  # the last learned row, and the number of rows so far

    def after_running(self, model: Model, predicted: Predictions, Y: Array, before: int) -> None:
        """Raise a BreakdownError for the first row, counted from `before`, with an absurd prediction."""
        first = max(self.largest, float(np.abs(Y[0]).max()))
        if (
            np.abs(predicted.mean).max() <= ABSURD_RATIO * first and predicted.std.max() < np.inf
        ):  # fast test that all rows are plausible; false for NaN
            self.largest = max(first, float(np.abs(Y).max()))
            return
        largest = np.maximum.accumulate(np.abs(Y).max(axis=1))
        largest = np.maximum(largest, self.largest)
        good = _make_sense(model, predicted.mean, predicted.std, Y, largest)
        i = len(Y) - 1 if good.all() else int(np.argmin(good))
        self.largest = float(largest[i])
        if not good[i]:
            raise self.error(model, before + i, predicted.mean[i], predicted.std[i])

    def after_learning(self, model: Model, learner: Learner, X: Array, Y: Array, before: int) -> None:
        """Every EVERY rows, check the prediction of the last learned row, which should be close to its y."""
        self.largest = max(self.largest, float(np.abs(Y).max()))
        self.remember(learner, X, Y)
        if learner.seen // EVERY > before // EVERY:
            self.before_saving(model, learner)

    def after_failing(self, Y: Array) -> None:
        """Record the rows that were learned before a call failed or was interrupted."""
        self.largest = max(self.largest, float(np.abs(Y).max(initial=0.0)))

    def after_learning_one(self, model: Model, learner: Learner, X: Array, Y: Array) -> None:
        """Check a row that the fast path of the learner found unusual without knowing the |y| of earlier rows."""
        self.largest = max(self.largest, float(np.abs(Y).max()))
        self.remember(learner, X, Y)
        self.before_saving(model, learner)

    def remember(self, learner: Learner, X: Array, Y: Array) -> None:
        """Store the last learned row, whose effect on predictions has not been checked yet."""
        self._last = X[-1:].copy(), Y[-1:].copy(), learner.seen

    def before_saving(self, model: Model, learner: Learner) -> None:
        """Raise an error if the model has diverged."""
        if self.broken is not None:
            raise self.broken
        if self._last is not None and self._last[-1] == learner.seen:  # false if the fast path has learned more rows
            X, Y, _ = self._last
            self.after_running(model, learner.predict(X), Y, learner.seen - 1)

    def after_predicting(self, model: Model, predicted: Predictions) -> None:
        """Raise a BreakdownError if a prediction is not finite."""
        if not (np.isfinite(predicted.mean).all() and np.isfinite(predicted.std).all()):
            raise self.error(model, None)

    def error(
        self, model: Model, row: int | None, mean: Array | None = None, std: Array | None = None
    ) -> BreakdownError:
        """Record that the model has diverged, and return the error with the model, the row and the remedy."""
        where = "" if row is None else f" at row {row} of its stream"
        what = _what_is_wrong(mean, std, self.largest)
        self.broken = BreakdownError(f"{model!r} broke down{where}: {what}. {model.inner_facts.remedy}", row, what)
        return self.broken


def _make_sense(model: Model, mean: Array, std: Array, Y: Array, largest: Array) -> Any:
    """Return whether each prediction is plausible. mean, std: (n, p). largest: the largest |y| so far, (n,)."""
    largest = largest[:, None]
    good = (np.abs(Y - mean) <= SURE * std) | (np.abs(mean) <= ABSURD_RATIO * largest)
    good &= np.isfinite(mean) & np.isfinite(std)
    if model.inner_facts.std_from_errors:
        good &= np.abs(mean) <= LOST * largest
    return good.all(axis=1)


def _what_is_wrong(mean: Array | None, std: Array | None, largest: float) -> str:
    """Describe what is wrong with a prediction, (p,) each."""
    if mean is None or std is None or not (np.isfinite(mean).all() and np.isfinite(std).all()):
        return "its prediction is not finite, or absurd with a small standard deviation"
    j = int(np.abs(mean).argmax())
    return f"it predicts {mean[j]:.3g} +- {std[j]:.3g}, but no |y| so far exceeds {largest:.3g}"


def check_events(
    model: Model, predicted: Predictions, which: Any, Y: Array, largest: Array, name: Callable[[int], str]
) -> Predictions:
    """Return the predictions of events of a fleet. Raise a BreakdownError for the first absurd prediction.

    The rule is the same as for a single model. Event i belongs to member which[i], and `name` returns its name for the
    error. `largest` holds the largest |y| of each member so far (infinite if unknown), and is updated.
    """
    own = np.abs(Y).max(axis=1)
    known = np.maximum(largest[which], own)
    mean, std = np.abs(predicted.mean), predicted.std
    good = (
        (mean <= ABSURD_RATIO * known[:, None]) & (mean < np.inf) & (std < np.inf)
    )  # fast test that all rows are plausible; false for NaN
    odd = np.flatnonzero(~good.all(axis=1))
    odd = odd[~_make_sense(model, predicted.mean[odd], std[odd], Y[odd], known[odd])]
    for i in odd.tolist():
        earlier = own[:i].max(where=which[:i] == which[i], initial=0.0)  # largest |y| of this member in this call
        known[i] = max(known[i], earlier)
        one = slice(i, i + 1)
        if not _make_sense(model, predicted.mean[one], std[one], Y[one], known[one]):
            np.maximum.at(largest, which, own)
            what = _what_is_wrong(predicted.mean[i], std[i], known[i])
            raise BreakdownError(f"{name(i)} broke down: {what}. {model.inner_facts.remedy}", reason=what)
    np.maximum.at(largest, which, own)
    return predicted


def all_finite(predicted: Predictions, name: Callable[[int], str], remedy: str) -> Predictions:
    """Return the predictions. Raise a BreakdownError if one is not finite. `name` returns the name of a row."""
    good = (np.isfinite(predicted.mean) & np.isfinite(predicted.std)).all(axis=tuple(range(1, predicted.mean.ndim)))
    if not good.all():
        raise BreakdownError(f"{name(int(np.argmin(good)))} broke down: its prediction is not finite. {remedy}")
    return predicted
