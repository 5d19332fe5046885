"""A model composed from rows, and its learner, which gets another member after a change."""

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

STRETCH = ("log_scale", "rows", "more", "fewer")  # of Conformal
WIDER = 4.0  # intervals are wider at first, by this over the number of rows learned
RETUNED_AT = {300: 150, 1000: 700}  # in rows after a change: when a member is adopted, and the start of its tuning
PAUSES = tuple(sorted({*RETUNED_AT, *RETUNED_AT.values()}))
MOST_RETUNED = 1000  # rows
CATCH_UP = 8  # rows of the backlog that a candidate learns in one call, or more if few calls are left


class Member(NamedTuple):
    """A member of the mixture.

    Attributes
    ----------
    name : str
    weight : its weight for the next row
    error : the usual standard deviation that it predicts, corrected by its errors, in standard deviations of the target
        of the tuning rows; None if it is alone
    behind : how far its recent log densities are below those of the best member, in nats per row
    cost : of one row, in words
    model : the model without its wrappers, unfitted
    """

    name: str
    weight: float
    error: float | None
    behind: float
    cost: str
    model: OnlineRegressor


class Chooser(Protocol):
    """Chooses a model for rows: scaled, with corrected intervals, `Scaled(Conformal(...))`.

    Where targets are skewed, it is inside `Transformed`.
    """

    def compose(self, X: Array, Y: Array, progress: Progress = ...) -> OuterRegressor:
        """Return a model for a stream that starts with X (n, d) and Y (n, p). At least one output must vary."""

    def compose_quickly(self, X: Array, Y: Array, progress: Progress = ...) -> OuterRegressor:
        """Return such a model after at most about two milliseconds per row."""

    def untuned(self, X: Array, Y: Array) -> OuterRegressor:
        """Return such a model from few rows, within milliseconds."""

    def retune(self, X: Array, Y: Array, progress: Progress = ...) -> HeavyTailed | None:
        """Return a member for the rows since a change, None if there is nothing to tune."""


class Composed:
    """A model and its learner.

    Attributes
    ----------
    chosen : the model, unfitted
    inner : its learner
    unexplained : the share of the variance that it did not predict in the second half of its tuning rows
    """

    def __init__(self, parts: Chooser, chosen: OuterRegressor, features: int, outputs: int) -> None:
        inside = chosen.model if type(chosen) is Transformed else chosen
        if type(inside) is not Scaled or type(inside.model) is not Conformal:
            raise ValueError(f"what was chosen must be scaled, with corrected intervals, got {chosen!r}.")
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
        """The readable mixture, up to date; None if another model was chosen."""
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
        """Learn the rows that it was composed from.

        Its intervals contain these rows too often, so the stretch of the intervals does not learn from them. After few
        rows the intervals are wider.
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
        """Return which rows a model that has learned little may learn: it cannot tell outliers from others."""
        return ~isolated(X, Y) if _is_robust(self.chosen) else np.ones(len(Y), dtype=bool)

    def _without_outliers(self, X: Array, Y: Array) -> tuple[Array, Array]:
        kept = self._usable(X, Y)
        return X[kept], Y[kept]

    def _retune(self, mixture: MixtureLearner) -> None:
        """Tune a member on the rows since the last change, if there was one, or adopt it."""
        detector = mixture.detector
        assert detector is not None
        if not len(detector.rows):
            return
        detector.look()
        X, Y = detector.latest(detector.since_change)
        began = RETUNED_AT.get(detector.age)
        if began is None:
            if detector.age == PAUSES[0] and _is_robust(self.chosen):  # by now outliers are seen as such
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
    """Whether a model, or a model inside it, rejects outliers."""
    if isinstance(model, Mixture):
        return any(_is_robust(one) for _, one in model.named())
    return isinstance(model, Robust) or (isinstance(model, OuterRegressor) and _is_robust(model.model))


class Candidate:
    """A model that is tuned in the background, and then learns the rows that arrived meanwhile.

    Attributes
    ----------
    rows : the number of rows that it is tuned on
    """

    def __init__(self, parts: Chooser, X: Array, Y: Array, rows: int, *, quick: bool, behind: bool = True) -> None:
        def learn(chosen: OuterRegressor) -> Composed:
            composed = Composed(parts, chosen, X.shape[1], Y.shape[1])
            composed.repeat(X, Y)
            composed.inner.predict(X[:1])  # compiles it, so that no row waits for that
            return composed

        tune = parts.compose_quickly if quick else parts.compose
        self.rows, self._learned, self._job = rows, 0, (submit if behind else Job)(tune, X, Y, then=learn)

    def catch_up(self, X: Array, Y: Array, left: int) -> None:
        """Learn some of the rows X and Y since the tuning began, if it has ended: all of them in `left` calls."""
        if self._job.ready:
            behind = len(X) - self._learned
            part = slice(self._learned, self._learned + min(behind, max(CATCH_UP, -(-behind // left))))
            self._job.result(lambda share: None).inner.learn(X[part], Y[part])
            self._learned = part.stop

    def found(self, X: Array, Y: Array, progress: Progress) -> Composed:
        """Return the tuned model, which has learned all rows since the tuning began."""
        composed: Composed = self._job.result(progress)
        composed.inner.learn(X[self._learned :], Y[self._learned :])
        self._learned = len(X)
        return composed
