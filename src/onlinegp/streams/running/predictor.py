"""A model at work on rows: lags, scaling, robustness, missing targets; row by row or, which is the same, by block."""

from __future__ import annotations

from collections import deque
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np

from onlinegp.checks import Array
from onlinegp.models.base import OnlineRegressor

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
        """Mean and standard deviation of the columns; a constant column keeps its scale."""

        def spread(values: Array) -> Array:
            std = values.std(axis=0)
            return np.where(std > 0.0, std, 1.0)

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

    def advance(self, X: Array, y: Array) -> Predicted:
        """Predict the rows X (n, features), then learn those whose y is not missing."""
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
            mean, std, size = self.step(self.scaling.x(inputs), self.scaling.y(y[early:]), missing)
            if not np.isfinite(std).all() or not np.isfinite(mean).all():
                raise ValueError(
                    f"the model {self.model} broke down: its prediction is not finite. "
                    f"Use a larger --noise, another --kernel or --model."
                )
            said.mean[part] = self.scaling.y_center + self.scaling.y_scale * mean
            said.std[part] = self.scaling.y_scale * std
            said.size[part] = size
        if missing:
            y = np.where(np.isnan(said.mean[start : start + len(y)]), self._last(), said.mean[start : start + len(y)])
            y = y[~np.isnan(y)]
        self.embedding.push(y)

    def step(self, Z: Array, t: Array, missing: bool = False) -> tuple[Array, Array, Any]:
        """Predict, then learn scaled inputs Z (n, d) and targets t (n,): means, standard deviations, sizes."""
        if missing or not self.learn:
            mean, std = self.model.predict(Z, return_std=True)
            return mean, std, self.size
        if self.robust is None and self.embedding.horizon == 1:
            trace = self.model.run(Z, t)
            return trace.mean, trace.std, trace.size
        mean, std, sizes = np.empty(len(t)), np.empty(len(t)), np.empty(len(t))
        for i, z in enumerate(Z):
            mean[i], std[i] = self.model.predict_one(z, return_std=True)
            self._learn(z, float(t[i]), float(mean[i]), float(std[i]))
            sizes[i] = self.size
        return mean, std, sizes

    def _learn(self, z: Array, t: float, mean: float, std: float) -> None:
        if self.robust is not None:
            t = mean + min(max(t - mean, -self.robust * std), self.robust * std)
        self.waiting.append((z, t))
        if len(self.waiting) == self.embedding.horizon:
            self.model.learn_one(*self.waiting.popleft())

    def teach(self, X: Array, y: Array) -> None:
        """Learn rows of inputs, lags included; what would have been predicted does not matter."""
        self.step(self.scaling.x(X), self.scaling.y(y))

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
        }

    @classmethod
    def restored(cls, model: OnlineRegressor, state: dict[str, Any], *, learn: bool = True) -> Predictor:
        scaling: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in state["scaling"].items()}
        predictor = cls(model, Scaling(**scaling), Embedding(**state["embedding"]), robust=state["robust"], learn=learn)
        predictor.waiting.extend((np.array(z), t) for z, t in state["waiting"])
        return predictor


class WarmUp:
    """Before there is a model: each row is predicted by mean and spread of the targets before it, and kept.

    Honest, if modest: nothing that comes later is used. A prediction needs two targets that differ.
    """

    def __init__(self, rows: int, embedding: Embedding) -> None:
        self.rows, self.embedding = rows, embedding
        self.seen = self.n = 0
        self.average = self.squares = 0.0  # Welford's mean and sum of squared deviations
        self._X: list[Array] = []
        self._y: list[Array] = []

    @property
    def wanted(self) -> int:
        """Rows still to come before the model can be tuned."""
        return self.rows - self.seen

    def advance(self, X: Array, y: Array) -> Predicted:
        said = Predicted.empty(len(y))
        for i, value in enumerate(y.tolist()):
            if self.n >= 2 and self.squares > 0.0:
                said.mean[i] = self.average
                said.std[i] = np.sqrt(self.squares / (self.n - 1) * (1.0 + 1.0 / self.n))
            if value == value:
                self.n += 1
                delta = value - self.average
                self.average += delta / self.n
                self.squares += delta * (value - self.average)
        self._keep(X, y)
        self.seen += len(y)
        return said

    def _keep(self, X: Array, y: Array) -> None:
        for part, missing in _runs(np.isnan(y)):
            known = np.full(part.stop - part.start, self.average) if missing else y[part]
            early, inputs = self.embedding.inputs(X[part], len(known), known)
            if not missing and len(inputs):
                self._X.append(inputs)
                self._y.append(known[early:])
            self.embedding.push(known)

    def data(self) -> tuple[Array, Array]:
        """The rows so far that can be learned from: inputs and targets."""
        if not self._X:
            raise ValueError("no row with a target has come yet, so there is nothing to tune on. Use a larger --tune.")
        return np.concatenate(self._X), np.concatenate(self._y)


def _runs(missing: Array) -> list[tuple[slice, bool]]:
    """Return the stretches of rows with and without a target, in order."""
    cuts = np.flatnonzero(np.diff(missing)) + 1
    edges = [0, *cuts.tolist(), len(missing)]
    return [(slice(a, b), bool(missing[a])) for a, b in pairwise(edges) if b > a]
