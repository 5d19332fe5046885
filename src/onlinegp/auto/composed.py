"""A model chosen from rows, and its learner, which gets an additional member after a change."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import inf
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from onlinegp.auto.members import FRESH, RETUNED, with_member
from onlinegp.auto.targets import isolated
from onlinegp.background import Job, Progress, submit
from onlinegp.checks import Array
from onlinegp.engine.compiled import changing, compiled, outer
from onlinegp.learner import Learner
from onlinegp.models.base import OnlineRegressor
from onlinegp.models.combined import Conformal, Mixture, Robust, Scaled, Transformed
from onlinegp.models.combined.base import OuterLearner, OuterRegressor, innermost, innermost_learner
from onlinegp.models.combined.change_detector import ChangeDetector
from onlinegp.models.combined.conformal import ConformalLearner
from onlinegp.models.combined.mixture_learner import MixtureLearner, add_usual
from onlinegp.predictions.transformed import transformed
from onlinegp.state import Contents, dump, load

WIDER = 4.0  # intervals are wider at first, by WIDER / number of learned rows
# Rows after a change: when the tuning of a member starts, when the member learns the rows since then, when it is used
RETUNINGS = (150, 250, 300), (700, 850, 900, 950, 1000)
PAUSES = tuple(age for ages in RETUNINGS for age in ages)
MOST_RETUNED = 1000  # rows
LEAST_HALVED = 600  # rows since a change, of which the newer half may be used alone
BETTER = 20.0  # nats by which it must be better
CATCH_UP = 8  # rows that a candidate learns in a call to catch up, or more if few calls are left
PATIENT = 32  # a candidate waits for a retuned member unless it would then need calls with more rows than this


Tune = Callable[[Array, Array, Progress], OuterRegressor]


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

    def retune(self, X: Array, Y: Array, progress: Progress = ...) -> OuterRegressor | None:
        """Return a member tuned on the rows since a change, or None if nothing can be tuned."""


class Composed:
    """A model and its learner.

    Attributes
    ----------
    chosen : the unfitted model
    inner : its learner
    unexplained : the share of the variance that was not predicted in the second half of the tuning rows
    last : whether it is from the last tuning. Only then are members tuned after a change: before, a tuning of all
        members is due soon.
    """

    def __init__(self, parts: Chooser, chosen: OuterRegressor, features: int, outputs: int, *, last: bool) -> None:
        inside = chosen.model if type(chosen) is Transformed else chosen
        if type(inside) is not Scaled or type(inside.model) is not Conformal:
            raise ValueError(f"the chosen model must be Scaled(Conformal(...)), got {chosen!r}.")
        self.chosen, self.unexplained, self.last = chosen, 1.0, last
        self._parts, self._features, self._outputs = parts, features, outputs
        self._retuning: Retuning | None = None
        learner = chosen.start(features, outputs)
        mixture = innermost_learner(learner)
        if isinstance(mixture, MixtureLearner) and mixture.detector is not None:
            mixture.detector.pauses, mixture.pause = PAUSES, self._retune
            mixture.usable = self._without_outliers
        self.inner: Learner = compiled(learner)

    def load(self, contents: Contents) -> None:
        """Continue from the contents of the learner, and restart the tuning of a member that was not finished."""
        load(self.inner, contents)
        mixture = self.mixture
        detector = None if mixture is None else mixture.detector
        if self.last and detector is not None and len(detector.rows):
            ages = _retuning_at(detector.age)
            if ages and detector.age < ages[-1]:
                self._retuning = self._new_retuning(detector, ages)

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
        kept = _usable(X, own, robust=_is_robust(chosen))
        X, Y = X[kept], Y[kept]
        predictions, _ = self.inner.run(X, Y)
        half = slice(len(Y) // 2, None)
        variance, error = np.var(Y[half], axis=0), np.mean((Y - predictions.mean)[half] ** 2, axis=0)
        varies = variance > 0.0
        self.unexplained = float(np.mean(error[varies] / variance[varies])) if varies.any() else 1.0
        _restart_stretch(self.inner, float(np.log1p(WIDER / len(Y))))

    def _without_outliers(self, X: Array, Y: Array) -> tuple[Array, Array]:
        kept = _usable(X, Y, robust=_is_robust(self.chosen))
        return X[kept], Y[kept]

    @property
    def waiting(self) -> bool:
        """Whether a member is being tuned."""
        return self._retuning is not None and not self._retuning.ready

    def _retune(self, mixture: MixtureLearner) -> None:
        """After a change, tune a member on the rows since then, let it learn later rows, or use it if it is due."""
        detector = mixture.detector
        assert detector is not None
        if not len(detector.rows):
            return
        ages, age = _retuning_at(detector.age), detector.age
        if age in (ages[0], ages[-1]):
            detector.look()
        if age == PAUSES[0] and _is_robust(self.chosen):  # by now the member can detect outliers by itself
            mixture.restart([FRESH], detector.since_change)
        if not self.last:
            return
        retuning, self._retuning = self._retuning, None  # after an interruption, a new one does the same
        if retuning is None or age == ages[0]:
            retuning = self._new_retuning(detector, ages)
        ends = [detector.since_change - (age - one) for one in ages if one <= age]
        if age < ages[-1]:
            retuning.catch_up(detector, ends)
            self._retuning = retuning
        elif (found := retuning.found(detector, ends)) is not None:
            model, member, usual = found
            start = partial(model.start, self._features, self._outputs)
            mixture.put(RETUNED, start, member, usual, like=FRESH)
            self.chosen = with_member(self.chosen, RETUNED, model)

    def _new_retuning(self, detector: ChangeDetector, ages: tuple[int, ...]) -> Retuning:
        before = detector.since_change - (detector.age - ages[0])
        X, Y = (one[:before] for one in detector.latest(detector.since_change))
        return Retuning(self._parts, X, Y, robust=_is_robust(self.chosen))


def _restart_stretch(learner: Learner, log_scale: float) -> None:
    """Forget which rows were inside the intervals, and stretch them by exp(log_scale)."""
    with changing(learner) as one:
        if isinstance(one, ConformalLearner):
            one.restart(log_scale)
        else:
            assert isinstance(one, OuterLearner)
            _restart_stretch(one.inner, log_scale)


def _retuning_at(age: int) -> tuple[int, ...]:
    """Return the element of RETUNINGS that contains an age, or an empty tuple."""
    return next((ages for ages in RETUNINGS if ages[0] <= age <= ages[-1]), ())


def _is_robust(model: OnlineRegressor) -> bool:
    """Whether a model or an inner model rejects outliers."""
    if isinstance(model, Mixture):
        return any(_is_robust(one) for _, one in model.named())
    rejects = isinstance(model, Robust) and model.reject < inf
    return rejects or (isinstance(model, OuterRegressor) and _is_robust(model.model))


def _usable(X: Array, Y: Array, *, robust: bool) -> NDArray[np.bool_]:
    """Return the rows without outliers, for a model that has learned too little to detect outliers by itself."""
    return ~isolated(X, Y) if robust else np.ones(len(Y), dtype=bool)


Retuned = tuple[OuterRegressor, Learner, Array]  # a member, its learner, and its usual std; see `MixtureLearner.put`


class Retuning:
    """A member that is tuned in the background on the rows since a change, and then learns the rows after them.

    If `robust`, it does not learn outliers.
    """

    def __init__(self, parts: Chooser, X: Array, Y: Array, *, robust: bool) -> None:
        def started(found: tuple[OuterRegressor, Contents, Array] | None) -> Retuned | None:
            if found is None:
                return None
            member = found[0].start(X.shape[1], Y.shape[1])
            load(member, found[1])
            return found[0], member, found[2]

        self._robust, self._learned = robust, len(X)
        self._job = submit(_retuned, parts, X, Y, robust, then=started)

    @property
    def ready(self) -> bool:
        return self._job.ready

    def catch_up(self, detector: ChangeDetector, ends: list[int]) -> None:
        """If the tuning has ended, learn the rows since its start.

        The rows up to each of `ends` decide which of them are outliers, so that results do not depend on the clock.
        """
        if self._job.ready and (found := self._job.result(lambda share: None)) is not None:
            _, member, usual = found
            X, Y = detector.latest(detector.since_change)
            for end in ends:
                if end > self._learned:
                    kept = _usable(X[:end], Y[:end], robust=self._robust)
                    kept[: self._learned] = False
                    _learn(member, usual, X[:end][kept], Y[:end][kept])
                    self._learned = end

    def found(self, detector: ChangeDetector, ends: list[int]) -> Retuned | None:
        """Return the member, which has learned all rows since the change, or None if there was nothing to tune."""
        found: Retuned | None = self._job.result(lambda share: None)
        self.catch_up(detector, ends)
        return found


def _retuned(
    parts: Chooser, X: Array, Y: Array, robust: bool, progress: Progress
) -> tuple[OuterRegressor, Contents, Array] | None:
    """Return a member for the rows since a change, what it has learned from them, and its usual std.

    A slow change is detected while old and new rows still alternate, so a member for the newer half of the rows is
    returned if it predicts the last quarter much better.
    """
    kept = _usable(X, Y, robust=robust)
    found = []
    for first in (0, len(Y) // 2) if len(Y) >= LEAST_HALVED else (0,):
        model = parts.retune(X[first:][-MOST_RETUNED:], Y[first:][-MOST_RETUNED:], progress)
        if model is None:
            return None
        member, usual = model.start(X.shape[1], Y.shape[1]), np.zeros(2)
        densities = [_learn(member, usual, X[part][kept[part]], Y[part][kept[part]]) for part in _split(first, len(Y))]
        found.append((densities[-1], model, member, usual))
    _, model, member, usual = found[-1] if found[-1][0] > found[0][0] + BETTER else found[0]
    return model, dump(member), usual


def _split(first: int, rows: int) -> tuple[slice, slice]:
    """Return the rows from `first` on in two parts, of which the second is the last quarter of all rows."""
    return slice(first, rows - rows // 4), slice(rows - rows // 4, rows)


def _learn(member: Learner, usual: Array, X: Array, Y: Array) -> float:
    """Learn rows, and return the log density of the predictions before each of them."""
    if not len(X):
        return 0.0
    predictions, _ = member.run(X, Y)
    add_usual(usual, predictions)
    return float(predictions.log_density(Y).sum())


def _tuned(
    tune: Tune, parts: Chooser, X: Array, Y: Array, last: bool, progress: Progress
) -> tuple[OuterRegressor, float, Contents]:
    """Return a tuned model, the share of the variance that it did not predict, and what it has learned."""
    composed = Composed(parts, tune(X, Y, progress), X.shape[1], Y.shape[1], last=last)
    composed.repeat(X, Y)
    return composed.chosen, composed.unexplained, dump(composed.inner)


class Candidate:
    """A model that is tuned in the background, and then learns the rows that arrived in the meantime.

    Attributes
    ----------
    rows : the number of rows to tune on
    """

    def __init__(
        self, tune: Tune, parts: Chooser, X: Array, Y: Array, rows: int, *, last: bool, behind: bool = True
    ) -> None:
        def started(found: tuple[OuterRegressor, float, Contents]) -> Composed:
            composed = Composed(parts, found[0], X.shape[1], Y.shape[1], last=last)
            composed.unexplained = found[1]
            composed.load(found[2])
            composed.inner.predict(X[:1])  # compile now, so that no row waits
            return composed

        self.rows, self._learned = rows, 0
        self._job = (submit if behind else Job)(_tuned, tune, parts, X, Y, last, then=started)

    def catch_up(self, X: Array, Y: Array, left: int) -> None:
        """If the tuning has ended, learn some of the rows since its start (X, Y), all of them within `left` calls."""
        if not self._job.ready:
            return
        composed, behind = self._job.result(lambda share: None), len(X) - self._learned
        if not composed.waiting or behind > PATIENT * left:
            part = slice(self._learned, self._learned + min(behind, max(CATCH_UP, -(-behind // left))))
            composed.inner.learn(X[part], Y[part])
            self._learned = part.stop

    def found(self, X: Array, Y: Array, progress: Progress) -> Composed:
        """Return the tuned model after it has learned all rows since the start of the tuning."""
        composed: Composed = self._job.result(progress)
        composed.inner.learn(X[self._learned :], Y[self._learned :])
        self._learned = len(X)
        return composed
