"""A model chosen from rows, and its learner, which gets an additional member after a change."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from onlinegp.auto.members import FRESH, RETUNED, with_member
from onlinegp.auto.targets import isolated
from onlinegp.background import Job, Progress, submit
from onlinegp.checks import Array
from onlinegp.engine.compiled import compiled, outer
from onlinegp.learner import Learner
from onlinegp.models.base import OnlineRegressor
from onlinegp.models.combined import Conformal, HeavyTailed, Mixture, Robust, Scaled, Transformed
from onlinegp.models.combined.base import OuterRegressor, innermost, innermost_learner
from onlinegp.models.combined.mixture_learner import MixtureLearner
from onlinegp.predictions import Predictions
from onlinegp.predictions.transformed import transformed
from onlinegp.state import dump, load

STRETCH = ("log_scale", "rows", "more", "fewer")  # fields of Conformal
WIDER = 4.0  # intervals are wider at first, by WIDER / number of learned rows
RETUNED_AT = {300: 150, 1000: 700}  # rows after a change: {when a retuned member is used: when its tuning starts}
PAUSES = tuple(sorted({*RETUNED_AT, *RETUNED_AT.values()}))
MOST_RETUNED = 1000  # rows
CATCH_UP = 8  # rows that a candidate learns in a call to catch up, or more if few calls are left


class Member(NamedTuple):
    """A member of the mixture.

    Attributes
    ----------
    name : str
    weight : its weight for the next row
    error : the usual predicted standard deviation, corrected by the errors, in standard deviations of the target of the
        tuning rows; None for a single member
    behind : how far its recent log density is below the best member, in nats per row
    cost : the cost of a row, in words
    model : the model without its wrappers, unfitted
    """

    name: str
    weight: float
    error: float | None
    behind: float
    cost: str
    model: OnlineRegressor


class Chooser(Protocol):
    """Base class of objects that choose a model from rows.

    The model is scaled, with corrected intervals, `Scaled(Conformal(...))`. For skewed targets it is inside
    `Transformed`.
    """

    def compose(self, X: Array, Y: Array, progress: Progress = ...) -> OuterRegressor:
        """Return a model for a stream that starts with X (n, d) and Y (n, p). At least one output must vary."""

    def compose_quickly(self, X: Array, Y: Array, progress: Progress = ...) -> OuterRegressor:
        """Return a model like `compose`, with less tuning: about two milliseconds per row."""

    def untuned(self, X: Array, Y: Array) -> OuterRegressor:
        """Return a model like `compose` from few rows, within milliseconds."""

    def retune(self, X: Array, Y: Array, progress: Progress = ...) -> HeavyTailed | None:
        """Return a member tuned on the rows since a change, or None if nothing can be tuned."""


class Composed:
    """A model and its learner.

    Attributes
    ----------
    chosen : the unfitted model
    inner : its learner
    unexplained : the share of the variance that was not predicted in the second half of the tuning rows
    """

    def __init__(self, parts: Chooser, chosen: OuterRegressor, features: int, outputs: int) -> None:
        inside = chosen.model if type(chosen) is Transformed else chosen
        if type(inside) is not Scaled or type(inside.model) is not Conformal:
            raise ValueError(f"the chosen model must be Scaled(Conformal(...)), got {chosen!r}.")
        self.chosen, self.unexplained = chosen, 1.0
        self._parts, self._features, self._outputs = parts, features, outputs
        self._retuning: Job | None = None
        learner = chosen.start(features, outputs)
        mixture = innermost_learner(learner)
        if isinstance(mixture, MixtureLearner) and mixture.detector is not None:
            mixture.detector.pauses, mixture.pause = PAUSES, self._retune
            mixture.usable = self._without_outliers
        self.inner: Learner = compiled(learner)

    @property
    def mixture(self) -> MixtureLearner | None:
        """The current mixture as a Python learner, or None if another model was chosen."""
        mixture = innermost_learner(outer(self.inner))
        return mixture if isinstance(mixture, MixtureLearner) else None

    def members(self) -> list[Member]:
        """Return the members, in order."""
        mixture, learner = innermost(self.chosen), self.mixture
        if not isinstance(mixture, Mixture) or learner is None:
            return [Member(type(mixture).__name__, 1.0, None, 0.0, mixture.facts.cost, mixture)]
        models = {name: innermost(model) for name, model in mixture.named()}
        numbers = zip(learner.members, learner.weights(), learner.usual_std(), learner.behind(), strict=True)
        found = {name: (float(weight), float(std), float(behind)) for name, weight, std, behind in numbers}
        return [Member(name, *found[name], model.facts.cost, model) for name, model in models.items()]

    def repeat(self, X: Array, Y: Array) -> None:
        """Learn the rows from which the model was chosen.

        Intervals contain these rows too often, so the stretch of the intervals does not learn from them. With few rows,
        intervals are wider.
        """
        chosen = self.chosen
        own = transformed(Y, np.array(chosen.power), np.array(chosen.unit)) if type(chosen) is Transformed else Y
        kept = self._usable(X, own)
        X, Y = X[kept], Y[kept]
        predictions, _ = self.inner.run(X, Y)
        half = slice(len(Y) // 2, None)
        variance, error = np.var(Y[half], axis=0), np.mean((Y - predictions.mean)[half] ** 2, axis=0)
        varies = variance > 0.0
        self.unexplained = float(np.mean(error[varies] / variance[varies])) if varies.any() else 1.0
        contents = dump(self.inner)
        path = "model.model." if type(self.chosen) is Transformed else "model."
        for name in STRETCH:
            contents[path + name] = np.zeros_like(contents[path + name])
        contents[path + STRETCH[0]] += np.log1p(WIDER / len(Y))
        load(self.inner, contents)

    def _usable(self, X: Array, Y: Array) -> NDArray[np.bool_]:
        """Return the rows without outliers, for a model that has learned too little to detect outliers by itself."""
        return ~isolated(X, Y) if _is_robust(self.chosen) else np.ones(len(Y), dtype=bool)

    def _without_outliers(self, X: Array, Y: Array) -> tuple[Array, Array]:
        kept = self._usable(X, Y)
        return X[kept], Y[kept]

    def _retune(self, mixture: MixtureLearner) -> None:
        """After a change, tune a member on the rows since the change, or use it if it is due."""
        detector = mixture.detector
        assert detector is not None
        if not len(detector.rows):
            return
        detector.look()
        X, Y = detector.latest(detector.since_change)
        began = RETUNED_AT.get(detector.age)
        if began is None:
            if detector.age == PAUSES[0] and _is_robust(self.chosen):  # by now the member can detect outliers by itself
                mixture.restart([FRESH], detector.since_change)
            self._retuning = self._new_retuning(X, Y)
            return
        before = len(X) - (detector.age - began)
        retuning = self._retuning or self._new_retuning(X[:before], Y[:before])
        self._retuning = None
        found: tuple[HeavyTailed, Learner, Predictions] | None = retuning.result(lambda share: None)
        if found is not None:
            model, member, predictions = found
            rest = self._usable(X, Y)
            rest[:before] = False
            later, _ = member.run(X[rest], Y[rest])
            start = partial(model.start, self._features, self._outputs)
            mixture.put(RETUNED, start, member, Predictions.joined([predictions, later]), like=FRESH)
            self.chosen = with_member(self.chosen, RETUNED, model)

    def _new_retuning(self, X: Array, Y: Array) -> Job:
        def learn(model: HeavyTailed | None) -> tuple[HeavyTailed, Learner, Predictions] | None:
            if model is None:
                return None
            member = model.start(self._features, self._outputs)
            predictions, _ = member.run(*self._without_outliers(X, Y))
            return model, member, predictions

        return submit(self._parts.retune, X[-MOST_RETUNED:], Y[-MOST_RETUNED:], then=learn)


def _is_robust(model: OnlineRegressor) -> bool:
    """Whether a model or an inner model rejects outliers."""
    if isinstance(model, Mixture):
        return any(_is_robust(one) for _, one in model.named())
    return isinstance(model, Robust) or (isinstance(model, OuterRegressor) and _is_robust(model.model))


class Candidate:
    """A model that is tuned in the background, and then learns the rows that arrived in the meantime.

    Attributes
    ----------
    rows : the number of rows to tune on
    """

    def __init__(self, parts: Chooser, X: Array, Y: Array, rows: int, *, quick: bool, behind: bool = True) -> None:
        def learn(chosen: OuterRegressor) -> Composed:
            composed = Composed(parts, chosen, X.shape[1], Y.shape[1])
            composed.repeat(X, Y)
            composed.inner.predict(X[:1])  # compile now, so that no row waits
            return composed

        tune = parts.compose_quickly if quick else parts.compose
        self.rows, self._learned, self._job = rows, 0, (submit if behind else Job)(tune, X, Y, then=learn)

    def catch_up(self, X: Array, Y: Array, left: int) -> None:
        """If the tuning has ended, learn some of the rows since its start (X, Y), all of them within `left` calls."""
        if self._job.ready:
            behind = len(X) - self._learned
            part = slice(self._learned, self._learned + min(behind, max(CATCH_UP, -(-behind // left))))
            self._job.result(lambda share: None).inner.learn(X[part], Y[part])
            self._learned = part.stop

    def found(self, X: Array, Y: Array, progress: Progress) -> Composed:
        """Return the tuned model after it has learned all rows since the start of the tuning."""
        composed: Composed = self._job.result(progress)
        composed.inner.learn(X[self._learned :], Y[self._learned :])
        self._learned = len(X)
        return composed
