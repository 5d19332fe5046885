"""Choose lags from the seasons of a series while learning the series."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np

from onlinegp.checks import LARGEST, Array
from onlinegp.engine.plan import Plan
from onlinegp.learner import Learner, Sizes, skip
from onlinegp.models.combined.base import INSIDE, OuterLearner
from onlinegp.models.combined.lagged_learner import Groups, LaggedLearner
from onlinegp.predictions import Predictions
from onlinegp.seasons import MAX_ROWS, find_seasons
from onlinegp.state import Values, array, flags, integer

LOOKS = (0, 50, 100, 200, 400, 800, 1600, 3200)  # numbers of rows after which seasons are searched
LAST_LOOK = LOOKS[-1]
INPUTS = 8


def lags_of_seasons(seasons: tuple[int, ...]) -> Groups:
    """Return the lags of the 8 inputs for a series with these seasons. Each input is the mean over its lags.

    Without a season the inputs are the last 8 values. With a season s they are the last 3 values, the values s - 1, s,
    s + 1 and 2 s rows ago, and the mean of the values s and 2 s rows ago. A second season replaces the oldest inputs.
    """
    recent = [(lag,) for lag in range(1, 3 + INPUTS)]
    if not seasons:
        return tuple(recent[:INPUTS])
    s, *longer = seasons
    groups: list[tuple[int, ...]] = [(1,), (2,), (s,), (s + 1,), (s - 1,)]
    groups += [(r,) for r in (longer[0], longer[0] + 1)] if longer else [(s, 2 * s), (2 * s,)]
    groups += [(r, 2 * r) for r in longer]
    return tuple(dict.fromkeys([*groups, *recent]))[:INPUTS]  # lags of a short season may be equal


class AutomaticLagsLearner(OuterLearner):
    """Find seasons after 50, 100, 200, ..., 3,200 rows, and use their lags.

    If the seasons have changed, a new learner with the new lags learns the rows so far from scratch. After 3,200 rows
    the lags are final and the rows are no longer stored: from then on a compiled model runs at full speed. Rows without
    y count, too.
    """

    fields = {
        "looked": integer(most=LAST_LOOK),
        "season": integer(most=MAX_ROWS),
        "longer_season": integer(most=MAX_ROWS),
        "x": array("kept", "features", least=-LARGEST, most=LARGEST, attribute="_X"),
        "y": array("kept", "outputs", least=-LARGEST, most=LARGEST, attribute="_Y"),
        "known": flags("kept", attribute="_known"),
        **INSIDE,
    }
    lengths = {"kept": LAST_LOOK}

    def __init__(self, start: Callable[[], Learner], features: int, horizon: int) -> None:
        self._start, self.features, self.horizon, self.outputs = start, features, horizon, 1
        self._change: Callable[[Learner], Learner] = lambda learner: learner
        self.looked = self.season = self.longer_season = 0
        self._clear()
        self.inner: LaggedLearner = self._started()

    @property
    def found(self) -> tuple[int, ...]:
        """The seasons found so far, in rows."""
        return tuple(s for s in (self.season, self.longer_season) if s)

    @property
    def seen(self) -> int:
        return self.inner.seen

    def hold(self, change: Callable[[Learner], Learner]) -> None:
        self._change = change  # also of the learners that take its place
        self.inner.hold(change)

    def learn(self, X: Array, Y: Array) -> None:
        for part in self._parts(len(X)):
            self.inner.learn(X[part], Y[part])
            self._keep(X[part], Y[part], known=True)

    def run(self, X: Array, Y: Array) -> tuple[Predictions, Sizes]:
        predicted, size = [], np.empty(len(X), dtype=np.int64)
        for part in self._parts(len(X)):
            predictions, size[part] = self.inner.run(X[part], Y[part])
            predicted.append(predictions)
            self._keep(X[part], Y[part], known=True)
        return Predictions.joined(predicted), size

    def predict(self, X: Array) -> Predictions:
        return self.inner.predict(X)

    def skip(self, X: Array, Y: Array | None = None) -> Predictions:
        predicted = []
        for part in self._parts(len(X)):
            predictions = skip(self.inner, X[part], None if Y is None else Y[part])
            predicted.append(predictions)
            self._keep(X[part], predictions.mean if Y is None else Y[part], known=False)
        return Predictions.joined(predicted)

    def begin_series(self) -> None:
        """Start another series. It uses the current lags until the next search for seasons."""
        self.inner.begin_series()
        self._clear()
        if not self._final:
            self.looked = 0

    def plan(self) -> Plan | None:
        return self.inner.plan()

    def steady_after(self) -> int:
        """Return the number of rows until the lags are final; zero if they are."""
        return 0 if self._final else LAST_LOOK - len(self._Y)

    def check(self, values: Values) -> None:
        looked, kept, s1, s2 = values["looked"], len(values["y"]), values["season"], values["longer_season"]
        right = kept == 0 if looked == LAST_LOOK else looked == max(n for n in LOOKS if n <= kept)
        if not right:
            raise ValueError(f"looked must be the row of the last search for seasons, got {looked}.")
        if (s1 and s1 < 2) or (s2 and not 0 < s1 < s2):
            raise ValueError(f"longer_season must be greater than season, which is at least 2, got {s2} and {s1}.")

        memory = max(map(max, lags_of_seasons(tuple(s for s in (s1, s2) if s)))) + self.horizon - 1
        if len(values["model"]["past"]) > memory:
            raise ValueError(f"past must have at most {memory} values, got {len(values['model']['past'])}.")

    def rebuild(self) -> None:
        self.inner.use(lags_of_seasons(self.found))

    # Internals

    @property
    def _final(self) -> bool:
        return self.looked == LAST_LOOK

    def _started(self) -> LaggedLearner:
        learner = LaggedLearner(self._start(), self.features, lags_of_seasons(self.found), self.horizon)
        learner.longest_memory = 2 * MAX_ROWS + self.horizon
        learner.hold(self._change)
        return learner

    def _clear(self) -> None:
        self._X, self._Y, self._known = np.empty((0, self.features)), np.empty((0, 1)), np.empty(0, dtype=bool)

    def _parts(self, n: int) -> list[slice]:
        """Split the next n rows at the rows after which seasons are searched."""
        kept = len(self._Y)
        looks = [] if self._final else [look - kept for look in LOOKS if 0 < look - kept < n]
        return [slice(a, b) for a, b in pairwise([0, *looks, n])]

    def _keep(self, X: Array, Y: Array, *, known: bool) -> None:
        if self._final:
            return
        self._X, self._Y = np.concatenate([self._X, X]), np.concatenate([self._Y, Y])
        self._known = np.append(self._known, np.full(len(Y), known))
        if len(self._Y) in LOOKS:
            self.looked = len(self._Y)
            self._look()

    def _look(self) -> None:
        with np.errstate(all="ignore"):
            found = find_seasons(np.where(self._known, self._Y[:, 0], np.nan))
        seasons = tuple(dict.fromkeys(round(s) for s in found))
        if seasons != self.found:
            self.season, self.longer_season = [*seasons, 0, 0][:2]
            self._learn_again()
        if self._final:
            self._clear()

    def _learn_again(self) -> None:
        seen, self.inner = self.inner.seen, self._started()
        edges = np.flatnonzero(np.diff(self._known)) + 1
        for a, b in pairwise([0, *edges.tolist(), len(self._Y)]):
            if self._known[a]:
                self.inner.learn(self._X[a:b], self._Y[a:b])
            else:
                skip(self.inner, self._X[a:b], self._Y[a:b])
        self.inner.seen = seen
