"""A detector of unusual rows in a series, or of unusual errors of a model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY
from functools import partial
from itertools import groupby
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from onlinegp import frames
from onlinegp.checks import Array, probability
from onlinegp.engine import is_native
from onlinegp.learner import Learner, Sizes, begin_series, skip
from onlinegp.models.alarms.alarms import Alarms
from onlinegp.models.alarms.constants import NEAR, RECENT, WIDTH, C
from onlinegp.models.alarms.events import Event
from onlinegp.models.alarms.watched import Watched
from onlinegp.models.base import OnlineRegressor
from onlinegp.models.combined.base import OuterLearner, OuterRegressor
from onlinegp.models.facts import Facts
from onlinegp.models.recipe import parameters
from onlinegp.models.undo import Undo
from onlinegp.predictions import Gaussian, Predictions
from onlinegp.state import Fields, integer, learner

SIGMA = 1.2533141373155001  # standard deviation of a normal distribution / its mean absolute error


@parameters
class Detector(OuterRegressor):
    """Detect unusual rows of a series, or unusual errors of a model. Report them as events with reasons.

    The detector computes thirteen statistics of the target, learns the tail of each statistic, and combines their
    evidence. An event opens when the evidence is so large that it should occur only at a rate of `rate` per row. Around
    a model with inputs, the detector uses the normal scores of the model's predictions, and the value and level of the
    target. Around a model with only lags it uses the target itself, because such a model would learn to predict the
    fault. An event has a kind (spike, level, trend, variance, season broken, stuck, missing) and a reason. It can
    escalate, and clears when rows are usual again. A new level is reported once, and then accepted.

    Without a model, a linear filter on the last eight values and on values a season ago predicts the target. A skewed
    series without negative values is converted to a logarithmic scale if this is more likely. The first 150 rows never
    open an event. A low rate needs a long history: at a rate of 0.0001, the detector needs about 2,000 rows before it
    can find an event.

    `detect` and `run` return `Watched`: predictions with a probability, a score and an event for each row. Files and
    fleets work as for every model.

    Cost: about a microsecond per sample, and the model inside
    Memory: 30 kB, and the model; 1 kB per feature
    Equation: evidence = .43 + .6 s(1) + .4 mean(s(1) ... s(4)), s = -log10 of learned tails
    Variance of y: as for the inner model; alone, by its mean absolute error

    Parameters
    ----------
    model : OnlineRegressor, optional
        The model whose predictions are checked. None to check the target alone.
    rate : float
        The expected number of events that open, per row, on a stream that does not change.
    season : int, optional
        The number of rows after which the series repeats. 0 for no season, None to find the season.
    daily : bool
        Whether the season is a day, so that the value a week ago is used, too.
    engine : {"auto", "native", "python"}
        The engine of the detector.

    Examples
    --------
    >>> import numpy as np, onlinegp as ogp
    >>> y = np.sin(np.arange(3000) / 10) + 0.1 * np.random.default_rng(0).standard_normal(3000)
    >>> y[2000] += 1.0
    >>> worst = max(ogp.Detector().detect(y).events, key=lambda event: event.severity)
    >>> print(worst.kind, worst.start)
    spike 2000
    """

    model: OnlineRegressor | None = None  # type: ignore[assignment]
    _: KW_ONLY
    rate: float = 0.001
    season: int | None = None
    daily: bool = False
    engine: str = "auto"

    facts: ClassVar[Facts] = Facts(std_from_errors=True)

    def check(self) -> None:
        probability(rate=self.rate)
        is_native(self.engine)
        if self.season is not None and (isinstance(self.season, bool) or not isinstance(self.season, int | np.integer)):
            raise TypeError(f"season must be a number of rows or None, got {self.season!r}.")
        if self.season and not NEAR < self.season <= RECENT:
            raise ValueError(
                f"season must be 0, or from {NEAR + 1} to {RECENT} rows, got {self.season}. Use None to find it."
            )
        if self.model is not None:
            super().check()

    @property
    def features_optional(self) -> bool:
        return self.model is None or super().features_optional

    @property
    def delay(self) -> int:
        return 1 if self.model is None else super().delay

    @property
    def inner_facts(self) -> Facts:
        return self.facts if self.model is None else super().inner_facts

    def start(self, features: int, outputs: int) -> DetectorLearner:
        self.check()
        inner = None if self.model is None else self.model.start(features, outputs)

        alarms = [
            Alarms(
                self.rate,
                features=features,
                scores=inner is not None and features > 0,
                season=self.season,
                daily=bool(self.daily),
                native=is_native(self.engine),
                output=output,
            )
            for output in range(outputs)
        ]
        return DetectorLearner(features, outputs, inner, alarms)

    def detect(self, y: ArrayLike, X: ArrayLike | None = None) -> Watched:
        """Check rows in order and learn them. Return how unusual each row is, and the events. NaN in y means missing.

        Parameters
        ----------
        y : (n,) or (n, outputs)
        X : (n, d), optional
            The inputs of the model. Reasons name the unusual inputs.

        Returns
        -------
        Watched
            Predictions, each made before its row was learned, with `odds`, `score`, `event` and `events`.
        """
        target = frames.series(y)
        gone = np.isnan(target)
        if target.ndim == 2 and (gone.any(axis=1) != gone.all(axis=1)).any():
            raise ValueError("y must have either all outputs of a row or no output. Use one detector per output.")
        parts: list[Predictions] = []
        with self._lock:
            learner, rows, Y = self.rows_to_learn(X, np.where(gone, 0.0, target))  # type: ignore[arg-type]
            for missing, some in groupby(range(len(Y)), lambda i: bool(gone[i].any())):
                numbers = list(some)
                part = slice(numbers[0], numbers[-1] + 1)
                parts.append(skip(learner, rows[part]) if missing else learner.run(rows[part], Y[part])[0])
            watched = Predictions.joined(parts)
            assert isinstance(watched, Watched)
            return watched.output(0) if self._single else watched

    def judge(self, X: ArrayLike, y: ArrayLike) -> Predictions:
        """Check rows that the inner model must not learn, such as impossible values."""
        with self._lock:
            learner, X, Y = self.rows_to_learn(X, y)
            judge = partial(learner.change, "judge") if isinstance(learner, Undo) else learner.judge  # type: ignore[attr-defined]
            return self._checked_predictions(judge(X, Y))

    @property
    def events_(self) -> list[Event]:
        """The latest events, at most eight per output. An open event is the last one."""
        learner = self._working
        assert isinstance(learner, DetectorLearner)
        return [event for alarms in learner.alarms for event in alarms.events]

    def forget_events(self) -> None:
        """Count events from one again. What was learned about the stream is kept."""
        with self._lock:
            for alarms in self._working.alarms if self._learner is not None else ():  # type: ignore[attr-defined]
                alarms.forget_events()

    def confirm(self, event: Event | int) -> None:
        """Confirm that an event was real. The detector forgets its rows, so that a similar event is found again."""
        if isinstance(event, bool) or not isinstance(event, Event | int | np.integer):
            raise TypeError(f"event must be an Event or its number, got {event!r}. Use one of events_.")
        number, output = (event.number, event.output) if isinstance(event, Event) else (event, 0)
        with self._lock:
            learner = self._learner
            if learner is None:
                raise ValueError("event must be one of events_, and there are none yet. Call detect first.")
            if isinstance(learner, Undo):
                learner.change("confirm", np.array([number, output]))
            else:
                learner.confirm(np.array([number, output]))  # type: ignore[attr-defined]


class DetectorLearner(OuterLearner):
    """Learner with alarms for each output. They check the predictions of the inner learner if there is one."""

    inner: Any

    def __init__(self, features: int, outputs: int, inner: Learner | None, alarms: list[Alarms]) -> None:
        self.features, self.outputs, self.inner, self.alarms = features, outputs, inner, alarms
        self.seen = 0

    @property
    def fields(self) -> Fields:
        return {"seen": integer(), **{name: learner() for name in self.children()}}

    def children(self) -> dict[str, Any]:
        inside = {} if self.inner is None else {"model": self.inner}
        return {f"output{i}": alarms for i, alarms in enumerate(self.alarms)} | inside

    def holds(self) -> list[Learner]:
        return [] if self.inner is None else [self.inner]

    def hold(self, change: Callable[[Learner], Learner]) -> None:
        if self.inner is not None:
            self.inner = change(self.inner)

    @property
    def size(self) -> int:
        return 0 if self.inner is None else self.inner.size

    def learn(self, X: Array, Y: Array) -> None:
        self.run(X, Y)

    def run(self, X: Array, Y: Array) -> tuple[Predictions, Sizes]:
        predicted, size = None, np.zeros(len(X), dtype=np.int64)
        if self.inner is not None:
            predicted, size = self.inner.run(X, Y)
        watched = self._watch(X, Y, predicted)
        self.seen += len(X)
        return watched, size

    def skip(self, X: Array, Y: Array | None = None) -> Predictions:
        return self._skip(X, Y, np.full((len(X), self.outputs), np.nan) if Y is None else Y)

    def judge(self, X: Array, Y: Array) -> Predictions:
        """Check rows that the inner learner does not learn. As past values, it uses its predictions instead."""
        return self._skip(X, None, Y)

    def _skip(self, X: Array, known: Array | None, Y: Array) -> Watched:
        return self._watch(X, Y, self._next(len(X)) if self.inner is None else skip(self.inner, X, known))

    def _watch(self, X: Array, Y: Array, predicted: Predictions | None) -> Watched:
        """Pass rows and their predictions to the alarms. If predictions are None, the alarms predict the target."""
        z = bounds = None
        if self.inner is not None and predicted is not None:
            with np.errstate(all="ignore"):
                z, bounds = predicted.z(Y) if self.features else None, predicted.interval(0.95)
        found = [
            alarms.add(
                Y[:, i],
                None if z is None else z[:, i],
                X,
                None if bounds is None else (bounds[0][:, i], bounds[1][:, i]),
            )
            for i, alarms in enumerate(self.alarms)
        ]
        columns, changes = (np.stack(parts, axis=1) for parts in zip(*found, strict=True))
        if predicted is None:
            predicted = _expected(columns, self.seen + np.arange(len(X)))
        tail, score, event = (columns[:, :, C[name]] for name in ("tail", "score", "event"))
        return Watched(predicted, 10.0**-tail, score, event.astype(np.int64), changes)

    def predict(self, X: Array) -> Predictions:
        return self._next(len(X)) if self.inner is None else self.inner.predict(X)

    def _next(self, n: int) -> Predictions:
        """Return n copies of the alarms' prediction of the next row."""
        rows = np.array([[alarms.watch.next() for alarms in self.alarms]])
        return _expected(np.repeat(rows, n, axis=0), np.full(n, self.seen))

    def begin_series(self) -> None:
        for alarms in self.alarms:
            alarms.watch.begin_series()
        if self.inner is not None:
            begin_series(self.inner)

    def confirm(self, event: NDArray[np.int64]) -> None:
        """Forget the rows of an event, given by (number, output)."""
        self.alarms[event[1]].confirm(int(event[0]))


def _expected(columns: Array, seen: NDArray[Any]) -> Predictions:
    """Return predictions from the intervals in `columns`. They are wide at first, and never have a std of zero."""
    mean, low, high = (columns[:, :, C[name]] for name in ("expected", "low", "high"))
    return Gaussian(mean, np.hypot(SIGMA / (2.0 * WIDTH) * (high - low), 1.0 / (seen[:, None] + 1.0) ** 2))
