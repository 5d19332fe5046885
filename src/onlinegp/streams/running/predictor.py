"""A model at work on rows: lags, scaling, robustness, missing targets; row by row or, which is the same, by block."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from math import isfinite
from typing import Any

import numpy as np

from onlinegp.checks import Array
from onlinegp.models.base import OnlineRegressor
from onlinegp.models.health import BreakdownError
from onlinegp.streams.errors import BrokeDown

CONSTANT = 1e-12  # a spread that is a smaller share of the largest value is rounding
BEYOND = 1e6  # a mean of more than so many times the largest target, or its own std, is no prediction any more

FARTHEST = 10_000  # lags, and rows ahead: a block of inputs must fit in memory


@dataclass(frozen=True)
class Scaling:
    """Standardization, fixed before learning: x -> (x - center) / scale, and y likewise."""

    x_center: tuple[float, ...]
    x_scale: tuple[float, ...]
    y_center: float
    y_scale: float

    @classmethod
    def none(cls, width: int) -> Scaling:
        return cls((0.0,) * width, (1.0,) * width, 0.0, 1.0)

    @classmethod
    def of(cls, X: Array, y: Array) -> Scaling:
        """Mean and standard deviation of the columns; a column that is constant, but for rounding, keeps its scale."""

        def spread(values: Array) -> Array:
            std = values.std(axis=0)
            return np.where(std > CONSTANT * np.abs(values).max(axis=0), std, 1.0)

        return cls(tuple(X.mean(axis=0).tolist()), tuple(spread(X).tolist()), float(y.mean()), float(spread(y)))

    def x(self, X: Array) -> Array:
        return (X - np.asarray(self.x_center)) / np.asarray(self.x_scale)

    def y(self, y: Array) -> Array:
        return (y - self.y_center) / self.y_scale


@dataclass(frozen=True)
class Predicted:
    """What was said of each row before its target was learned; NaN where nothing could be. `size` counts centers."""

    mean: Array
    std: Array
    size: Array

    @classmethod
    def empty(cls, n: int) -> Predicted:
        return cls(np.full(n, np.nan), np.full(n, np.nan), np.zeros(n))

    def __len__(self) -> int:
        return len(self.mean)

    def first(self, n: int) -> Predicted:
        return Predicted(self.mean[:n], self.std[:n], self.size[:n])


@dataclass
class Embedding:
    """The inputs of a row: its features, then `lags` values of the target, the newest `horizon` rows back."""

    lags: int = 0
    horizon: int = 1
    history: list[float] = field(default_factory=list)  # the last lags + horizon - 1 targets

    @property
    def memory(self) -> int:
        return self.lags + self.horizon - 1 if self.lags else 0

    def inputs(self, X: Array, n: int, y: Array) -> tuple[int, Array]:
        """Return how many of n rows come too early, and the inputs of the others. Needs y up to the row before last."""
        if not self.lags:
            return 0, X
        past = np.concatenate([self.history, y])
        early = min(n, max(0, self.memory - len(self.history)))
        start = len(self.history) + early - self.memory
        if early == n:
            return n, np.empty((0, X.shape[1] + self.lags))
        windows = np.lib.stride_tricks.sliding_window_view(past[start:], self.lags)[: n - early]
        return early, np.hstack([X[early:], windows])

    def push(self, y: Array) -> None:
        if self.lags:
            self.history = [*self.history, *y.tolist()][-self.memory :]


class Predictor:
    """A model with the scaling of its data; `advance` predicts rows and learns them.

    Parameters
    ----------
    robust : float or None
        Bounds what one sample can do: it learns mean + clip(y - mean, -robust std, robust std) in place of y, which is
        Huber's weight on the innovation.
    learn : bool
        Whether to learn at all.
    """

    def __init__(
        self,
        model: OnlineRegressor,
        scaling: Scaling,
        embedding: Embedding,
        *,
        robust: float | None = None,
        learn: bool = True,
    ) -> None:
        self.model, self.scaling, self.embedding = model, scaling, embedding
        self.robust, self.learn = robust, learn
        self.waiting: deque[tuple[Array, float]] = deque()  # what a longer horizon does not let the model know yet
        self.largest = np.inf if model.__sklearn_is_fitted__() else 0.0  # |t| learned so far, infinite if not known
        self._newest: Array | None = None  # the last inputs that were learned

    def advance(self, X: Array, y: Array) -> Predicted:
        """Predict the rows X (n, features), then learn those whose y is not missing; BrokeDown if the model does."""
        said = Predicted.empty(len(y))
        for part, missing in _runs(np.isnan(y)):
            self._advance(X[part], y[part], missing, said, part.start)
        return said

    def _advance(self, X: Array, y: Array, missing: bool, said: Predicted, start: int) -> None:
        if missing and self.embedding.lags and len(y) > 1:  # each prediction stands in for the value it predicts
            for i in range(len(y)):
                self._advance(X[i : i + 1], y[i : i + 1], True, said, start + i)
            return
        early, inputs = self.embedding.inputs(X, len(y), y)
        part = slice(start + early, start + len(y))
        if len(inputs):
            t = self.scaling.y(y[early:])
            known = self._known(t)
            try:
                with np.errstate(all="ignore"):  # what comes of it is judged below
                    mean, std, size = self.step(self.scaling.x(inputs), t, missing)
            except ValueError as error:
                if not self.size:  # it has not learned anything yet, so a parameter is wrong
                    raise
                raise BrokeDown(self.model, str(error), said=said.first(part.start)) from error
            said.mean[part] = self.scaling.y_center + self.scaling.y_scale * mean
            said.std[part] = self.scaling.y_scale * std
            said.size[part] = size
            if (sound := sound_rows(mean, std, known)) < len(mean):
                reason = unsound(mean[sound], std[sound], known[sound])
                raise BrokeDown(self.model, reason, said=said.first(part.start + sound))
        if missing:
            y = np.where(np.isnan(said.mean[start : start + len(y)]), self._last(), said.mean[start : start + len(y)])
            y = y[~np.isnan(y)]
        self.embedding.push(y)

    def _known(self, t: Array) -> Array:
        """Return the largest |t| that is learned before each of these rows."""
        coming = np.abs(t[:-1]) if self.learn else np.zeros(len(t) - 1)
        return np.fmax.accumulate(np.concatenate([[self.largest], coming]))

    def step(self, Z: Array, t: Array, missing: bool = False) -> tuple[Array, Array, Any]:
        """Predict, then learn scaled inputs Z (n, d) and targets t (n,): means, standard deviations, sizes."""
        if missing or not self.learn:
            mean, std = self.model.predict(Z, return_std=True)
            return mean, std, self.size
        self.largest, self._newest = max(self.largest, float(np.abs(t).max(initial=0.0))), Z[-1:]
        if self.robust is None and self.embedding.horizon == 1:
            return self._run(Z, t)
        mean, std, sizes = np.full(len(t), np.nan), np.full(len(t), np.nan), np.zeros(len(t))
        for i, z in enumerate(Z):
            try:
                m, s = self.model.predict_one(z, return_std=True)
                if not (isfinite(m) and isfinite(s)):
                    break
                self._learn(z, float(t[i]), m, s)
            except ValueError:
                if not self.size:
                    raise
                break  # what is in hand is NaN from here on
            mean[i], std[i], sizes[i] = m, s, self.size
        return mean, std, sizes

    def _run(self, Z: Array, t: Array) -> tuple[Array, Array, Array]:
        """Means, standard deviations and sizes, NaN from the row on at which the model broke down."""
        try:
            trace = self.model.run(Z, t)
        except BreakdownError as error:
            if error.trace is None:
                raise
            trace = error.trace
        rest = np.full(len(t) - len(trace), np.nan)
        return np.append(trace.mean, rest), np.append(trace.std, rest), np.append(trace.size, np.zeros(len(rest)))

    def _learn(self, z: Array, t: float, mean: float, std: float) -> None:
        if self.robust is not None:
            t = mean + min(max(t - mean, -self.robust * std), self.robust * std)
        self.waiting.append((z, t))
        if len(self.waiting) == self.embedding.horizon:
            self.model.learn_one(*self.waiting.popleft())

    def teach(self, X: Array, y: Array) -> None:
        """Learn rows of inputs, lags included; what would have been predicted does not matter."""
        with np.errstate(all="ignore"):
            mean, std, _ = self.step(self.scaling.x(X), self.scaling.y(y))
        if (row := sound_rows(mean, std, self.largest)) < len(mean):
            reason = unsound(mean[row], std[row], self.largest)
            raise BrokeDown(self.model, reason, where=f" on row {row + 1} of those for tuning")

    def refuse_broken(self, where: str) -> None:
        """Raise BrokeDown if the last row that the model learned broke it, so that no such model is kept."""
        if self._newest is None:
            return
        with np.errstate(all="ignore"):
            try:
                mean, std = self.model.predict(self._newest, return_std=True)
            except ValueError as error:
                raise BrokeDown(self.model, str(error), where=where) from None
        if sound_rows(mean, std, self.largest) == 0:
            raise BrokeDown(self.model, unsound(mean[0], std[0], self.largest), where=where)

    @property
    def size(self) -> int:
        return self.model.size_ if self.model.__sklearn_is_fitted__() else 0

    def _last(self) -> float:
        return self.embedding.history[-1] if self.embedding.history else np.nan

    def state(self) -> dict[str, Any]:
        """What `restored` needs besides the model, in plain values."""
        return {
            "scaling": asdict(self.scaling),
            "embedding": asdict(self.embedding),
            "robust": self.robust,
            "waiting": [[z.tolist(), t] for z, t in self.waiting],
            "largest": None if np.isinf(self.largest) else self.largest,
        }

    @classmethod
    def restored(cls, model: OnlineRegressor, state: dict[str, Any], *, learn: bool = True) -> Predictor:
        scaling: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in state["scaling"].items()}
        predictor = cls(model, Scaling(**scaling), Embedding(**state["embedding"]), robust=state["robust"], learn=learn)
        predictor.waiting.extend((np.array(z), t) for z, t in state["waiting"])
        if state.get("largest") is not None:
            predictor.largest = state["largest"]
        return predictor


class WarmUp:
    """Before there is a model: each row is predicted by mean and spread of the targets before it, and kept.

    Honest, if modest: nothing that comes later is used. A prediction needs two targets that differ. A target that is
    constant over the first `rows` rows has no scale to tune with: then it goes on until the target has changed, and for
    as many rows after that.
    """

    def __init__(self, rows: int, embedding: Embedding, *, say: Callable[[str], None] = lambda text: None) -> None:
        self.rows, self.embedding, self.say = rows, embedding, say
        self.seen = self.n = 0
        self.until = rows
        self.average = self.squares = self.largest = 0.0  # Welford's mean and sum of squared deviations; largest |y|
        self._X: list[Array] = []
        self._y: list[Array] = []

    @property
    def done(self) -> bool:
        """Whether the model can be tuned."""
        return self.seen >= self.until

    @property
    def varied(self) -> bool:
        """Whether the target has taken two values that differ by more than rounding."""
        return self.squares > self.n * (CONSTANT * self.largest) ** 2

    def advance(self, X: Array, y: Array) -> Predicted:
        """Take rows up to the last one that tuning needs, and return what was said of those."""
        said, averages = Predicted.empty(len(y)), []
        for i, value in enumerate(y.tolist()):
            if self.done:
                break
            if self.varied:
                said.mean[i] = self.average
                said.std[i] = np.sqrt(self.squares / (self.n - 1) * (1.0 + 1.0 / self.n))
            averages.append(self.average)
            self._count(value)
        n = len(averages)
        self._keep(X[:n], y[:n], np.array(averages))
        return said.first(n)

    def _count(self, value: float) -> None:
        self.seen += 1
        if value == value:
            self.n += 1
            delta = value - self.average
            self.average += delta / self.n
            self.squares += delta * (value - self.average)
            self.largest = max(self.largest, abs(value))
        if self.seen >= self.rows and not self.varied:
            if self.seen == self.rows:
                self.say(f"{self.constant()} in the first {self.rows} rows: tuning waits until it changes")
            self.until = self.seen + self.rows

    def constant(self) -> str:
        """Return what to say of a target that has not varied."""
        return f"the target is {self.average:g}" if self.n else "the target is missing"

    def _keep(self, X: Array, y: Array, averages: Array) -> None:
        """Keep the rows; in the lags of later ones a missing target is the average before it."""
        for part, missing in _runs(np.isnan(y)):
            known = averages[part] if missing else y[part]
            early, inputs = self.embedding.inputs(X[part], len(known), known)
            if not missing and len(inputs):
                self._X.append(inputs)
                self._y.append(known[early:])
            self.embedding.push(known)
        while not self.varied and sum(map(len, self._y[1:])) >= self.rows:  # no need for more of the same
            del self._X[0], self._y[0]

    def data(self) -> tuple[Array, Array]:
        """The rows so far that can be learned from, at most `rows` and the newest: inputs and targets."""
        if not self._X:
            raise ValueError("no row with a target has come yet, so there is nothing to tune on. Use a larger --tune.")
        newest = slice(-self.rows, None)
        return np.concatenate(self._X)[newest], np.concatenate(self._y)[newest]


def sound_rows(mean: Array, std: Array, known: Array | float) -> int:
    """Return how many rows come before the first one whose prediction means nothing.

    That is one that is not finite, or |mean| > BEYOND max(known, std), where `known` is the largest |t| learned before
    it. A wide interval is honest however large the mean.
    """
    with np.errstate(invalid="ignore", over="ignore"):
        sound = np.isfinite(mean) & np.isfinite(std) & (np.abs(mean) <= BEYOND * np.maximum(known, std))
    return len(mean) if sound.all() else int(np.argmin(sound))


def unsound(mean: float, std: float, known: float) -> str:
    """Return why a prediction means nothing."""
    if not (isfinite(mean) and isfinite(std)):
        return "its prediction is not finite"
    return f"its mean is {mean:.3g}, with a std of {std:.3g}, and the largest target before is {known:.3g} in its units"


def _runs(missing: Array) -> list[tuple[slice, bool]]:
    """Return the stretches of rows with and without a target, in order."""
    cuts = np.flatnonzero(np.diff(missing)) + 1
    edges = [0, *cuts.tolist(), len(missing)]
    return [(slice(a, b), bool(missing[a])) for a, b in pairwise(edges) if b > a]
