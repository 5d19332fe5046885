"""Does a model still make sense? One that has broken down says so, and does not go on with confidence."""

from __future__ import annotations

from collections.abc import Callable
from math import isfinite
from typing import TYPE_CHECKING, Any

import numpy as np

from onlinegp.checks import Array
from onlinegp.predictions import Predictions

if TYPE_CHECKING:
    from onlinegp.learner import Learner
    from onlinegp.models.base import OnlineRegressor
    from onlinegp.trace import Trace

FAR = 1e3  # a mean beyond this many times the largest |y| is not explained by any data,
SURE = 1e5  # and if the error is also beyond this many standard deviations, the model is wrong and sure of it
LOST = 1e9  # times the largest |y|: beyond, a model whose standard deviation is that of its errors is wrong in any case
EVERY = 64  # rows learned between two checks, where learning does not predict


class BreakdownError(ValueError):
    """A model whose predictions are not finite, or absurd and certain.

    Attributes
    ----------
    reason : what is wrong with the prediction
    row : where it was noticed, counted from the start of the model's stream; None if it was asked without learning
    trace : the predictions of the rows before, if they were made by `run`
    """

    def __init__(self, message: str, row: int | None = None, reason: str = "") -> None:
        super().__init__(message)
        self.row, self.reason = row, reason
        self.trace: Trace | None = None


class Health:
    """Watches what a model predicts, from the start of its stream on.

    Attributes
    ----------
    largest : the largest |y| learned so far, but for a factor of two where samples were learned one by one
    broken : what was raised when the model broke down; it is not saved any more
    """

    def __init__(self) -> None:
        self.largest = 0.0
        self.broken: BreakdownError | None = None
        self._last: tuple[Array, Array, int] | None = None  # the row learned last, and how many there were

    def after_running(self, model: OnlineRegressor, said: Predictions, Y: Array, before: int) -> None:
        """Raise a BreakdownError for the first row, counted from `before`, that was predicted without sense."""
        first = max(self.largest, float(np.abs(Y[0]).max()))
        if np.abs(said.mean).max() <= FAR * first and said.std.max() < np.inf:  # the rule, in few passes; NaN fails it
            self.largest = max(first, float(np.abs(Y).max()))
            return
        largest = np.maximum.accumulate(np.abs(Y).max(axis=1))
        largest = np.maximum(largest, self.largest)
        good = _make_sense(model, said.mean, said.std, Y, largest)
        i = len(Y) - 1 if good.all() else int(np.argmin(good))
        self.largest = float(largest[i])
        if not good[i]:
            raise self.error(model, before + i, said.mean[i], said.std[i])

    def after_learning(self, model: OnlineRegressor, learner: Learner, X: Array, Y: Array, before: int) -> None:
        """Check a prediction of the last row, once in a while: it was learned, so it should not be far off."""
        self.largest = max(self.largest, float(np.abs(Y).max()))
        self.remember(learner, X, Y)
        if learner.seen // EVERY > before // EVERY:
            self.before_saving(model, learner)

    def after_failing(self, Y: Array) -> None:
        """Take account of the rows that were learned before a call failed or was interrupted."""
        self.largest = max(self.largest, float(np.abs(Y).max(initial=0.0)))

    def after_learning_one(self, model: OnlineRegressor, learner: Learner, X: Array, Y: Array) -> None:
        """Check a row that its learner took at once and did not find ordinary; it knows no |y| of other rows."""
        self.largest = max(self.largest, float(np.abs(Y).max()))
        self.remember(learner, X, Y)
        self.before_saving(model, learner)

    def remember(self, learner: Learner, X: Array, Y: Array) -> None:
        """Keep the row learned last: what it did shows in no prediction yet."""
        self._last = X[-1:].copy(), Y[-1:].copy(), learner.seen

    def before_saving(self, model: OnlineRegressor, learner: Learner) -> None:
        """Refuse to keep a model that has broken down."""
        if self.broken is not None:
            raise self.broken
        if self._last is not None and self._last[-1] == learner.seen:  # else rows were learned at once since then
            X, Y, _ = self._last
            self.after_running(model, learner.predict(X), Y, learner.seen - 1)

    def after_predicting(self, model: OnlineRegressor, said: Predictions) -> None:
        """Raise a BreakdownError if a prediction is not finite."""
        if not (np.isfinite(said.mean).all() and np.isfinite(said.std).all()):
            raise self.error(model, None)

    def sound(self, mean: float, std: float) -> bool:
        return isfinite(mean) and isfinite(std)

    def error(
        self, model: OnlineRegressor, row: int | None, mean: Array | None = None, std: Array | None = None
    ) -> BreakdownError:
        """Note that the model has broken down; return the error that names it, the row and the remedy."""
        where = "" if row is None else f" at row {row} of its stream"
        what = _what_is_wrong(mean, std, self.largest)
        self.broken = BreakdownError(f"{model!r} broke down{where}: {what}. {model.remedy}", row, what)
        return self.broken


def _make_sense(model: OnlineRegressor, mean: Array, std: Array, Y: Array, largest: Array) -> Any:
    """Return for each row whether its prediction, (n, p) each, makes sense, where |y| was up to `largest` (n,)."""
    largest = largest[:, None]
    good = (np.abs(Y - mean) <= SURE * std) | (np.abs(mean) <= FAR * largest)
    good &= np.isfinite(mean) & np.isfinite(std)
    if model.std_from_errors:
        good &= np.abs(mean) <= LOST * largest
    return good.all(axis=1)


def _what_is_wrong(mean: Array | None, std: Array | None, largest: float) -> str:
    """Return what is wrong with a prediction, (p,) each."""
    if mean is None or std is None or not (np.isfinite(mean).all() and np.isfinite(std).all()):
        return "its prediction is not finite, or absurd and certain"
    j = int(np.abs(mean).argmax())
    return f"it predicts {mean[j]:.3g} +- {std[j]:.3g}, and no |y| so far exceeds {largest:.3g}"


def check_events(
    model: OnlineRegressor, said: Predictions, which: Any, Y: Array, largest: Array, name: Callable[[int], str]
) -> Predictions:
    """Return predictions of a fleet's events, or raise a BreakdownError for the first without sense.

    The rule is that of a model. Event i belongs to member which[i], and `name` says whose it is. `largest` has the
    largest |y| of each member so far, infinite where it is not known, and goes on with these events.
    """
    own = np.abs(Y).max(axis=1)
    known = np.maximum(largest[which], own)
    mean, std = np.abs(said.mean), said.std
    good = (mean <= FAR * known[:, None]) & (mean < np.inf) & (std < np.inf)  # the rule, in few passes; NaN fails it
    odd = np.flatnonzero(~good.all(axis=1))
    odd = odd[~_make_sense(model, said.mean[odd], std[odd], Y[odd], known[odd])]
    for i in odd.tolist():
        earlier = own[:i].max(where=which[:i] == which[i], initial=0.0)  # in this call
        known[i] = max(known[i], earlier)
        one = slice(i, i + 1)
        if not _make_sense(model, said.mean[one], std[one], Y[one], known[one]):
            np.maximum.at(largest, which, own)
            what = _what_is_wrong(said.mean[i], std[i], known[i])
            raise BreakdownError(f"{name(i)} broke down: {what}. {model.remedy}", reason=what)
    np.maximum.at(largest, which, own)
    return said


def all_finite(said: Predictions, name: Callable[[int], str], remedy: str) -> Predictions:
    """Return predictions, or raise a BreakdownError if one is not finite; `name` says whose that of a row is."""
    good = (np.isfinite(said.mean) & np.isfinite(said.std)).all(axis=tuple(range(1, said.mean.ndim)))
    if not good.all():
        raise BreakdownError(f"{name(int(np.argmin(good)))} broke down: its prediction is not finite. {remedy}")
    return said
